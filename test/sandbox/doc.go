// Command sandbox runs a real Kubernetes on this Linux machine, without Docker
// and without a virtual machine, and breaks it on request.
//
// It is what quorate's end-to-end and fault tests run against. Everything is
// the real thing: API server, controllers, scheduler and three nodes, each with
// its own kubelet, containerd and kube-proxy, and volumes that can be full.
//
//	root namespace    10.88.0.1 on quorate0: etcd, API server, controllers,
//	                  scheduler, DNS, provisioner; tests and their servers
//	quorate-switch    a bridge; one port for the root namespace, one a node
//	quorate-node-N    10.88.0.1N: kubelet, containerd, kube-proxy
//	pods of node N    10.244.N.0/24, behind the bridge cni0 of their node
//	services          10.96.0.0/16, answered by kube-proxy on every node
//
// A node is a network namespace, so all firewall rules live and die with it,
// cutting a node off is one link set down, and the machine's own network is
// left alone. No namespace has a way out: an image that was not loaded cannot
// be pulled, and says so at once.
//
// All state is under $QUORATE_SANDBOX_DIR (/var/tmp/quorate-sandbox), all that
// was built under $QUORATE_CACHE (~/.cache/quorate). `sandbox down` removes the
// first and leaves the second.
package main
