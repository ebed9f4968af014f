// Package e2e tests quorate on a real Kubernetes, with real servers for Git and
// S3, real etcd, and quorate as a process that can be killed. It needs a
// cluster: the sandbox of test/sandbox, or the one that KUBECONFIG names. Only
// make's targets run it, because it changes that cluster:
//
//	make e2e RUN=TestBadImage
//
// Every test has a namespace, a repository and a daemon to itself. Two run at
// a time. Numbers in their names are those of the scenario catalogue.
// QUORATE_E2E_KEEP=1 leaves behind what a failed test made.
package e2e
