// Package admission tests quorate against a real API server with real admission policies: what
// becomes of a cluster where these change what quorate applies, or refuse it? And do the policies of
// deploy/admission hold what they are for? The API server runs alone, with some controllers; a
// kubelet and etcd are played. It needs no root and no node, and is up in seconds.
package admission
