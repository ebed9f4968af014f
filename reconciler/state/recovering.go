package state

// RevisionBump is by how many revisions a restored or recovered cluster is ahead of
// what it was made from, at least: more than anything can have written since. What
// clients saw of the lost cluster is never a revision of the future, and a watch from
// there gets the error that it was compacted.
const RevisionBump = 1_000_000_000

// MaxRevision is the highest revision that a cluster is restored from or above: a
// real one is far below, and above it bumps might no longer fit into etcd's numbers.
const MaxRevision = 1 << 62

// First is the least revision at which the cluster must begin.
func (r Recovering) First() int64 { return max(r.Revision, r.Above) + RevisionBump }

// Restores reports whether it is a backup that becomes a new cluster.
func (r Recovering) Restores() bool { return r.ClusterID == "" }

// Noun is what the cluster is called meanwhile.
func (r Recovering) Noun() string {
	if r.Restores() {
		return "the restored cluster"
	}
	return "the recovered cluster"
}

// Kept tells where what was there before is.
func (r Recovering) Kept() string {
	if r.Restores() {
		return "the backup is unchanged"
	}
	return "the old data is kept on its volume, in a directory beside the new"
}

// HelpStart is what a person can do about a first member that does not start, or that
// answers to a user only, as etcd does with authentication on.
func (r Recovering) HelpStart(denied bool) string {
	if denied {
		return "the backup has authentication switched on, and quorate is not let in as user root, which it is by the common name of its client certificate, in tls.mode Managed always; else switch authentication off in the pod with `etcdctl --user root auth disable`, and on again at the end"
	}
	return r.Kept() + "; check its pod"
}
