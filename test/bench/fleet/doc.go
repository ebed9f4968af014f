// Package fleet measures quorate with many clusters and real sockets: a real API server with its
// etcd and the controller of StatefulSets, a real Git server, and the daemon as its own process,
// which alone is measured. Nodes are played, and one process answers as etcd for all members, each
// at an address of its own on loopback, half of the clusters with TLS. No root and no node is
// needed, but a limit of open files of four for each member.
package fleet
