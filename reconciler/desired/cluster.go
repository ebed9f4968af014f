// Package desired is what one commit wants: clusters, restores and backups, each with
// the commit that declares it and the problems that hold it.
package desired

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/schema"
)

// Cluster is one cluster as Git has it.
type Cluster struct {
	schema.EtcdCluster
	// Commit is the Git commit that declares it.
	Commit string
	// Accepted is why that commit was let in, for people.
	Accepted schema.Acceptance
	// Problems of its file. With any, only the name can be trusted.
	Problems []string
	// Restore is the backup that it begins with; nil for none.
	Restore *Restore

	// digest of everything that the file says; "" until it is needed.
	Digest string
}

// Identified returns c with its digest.
func (c Cluster) Identified() Cluster {
	switch {
	case c.Digest != "":
	case c.Restore == nil:
		c.Digest = schema.Digest(c.EtcdCluster)
	default:
		c.Digest = schema.Digest(c.EtcdCluster, c.Restore)
	}
	return c
}

// BackupURL is the template of the place for the cluster's backups: its own, else
// the daemon's.
func (c Cluster) BackupURL(daemons string) string {
	return cmp.Or(c.Spec.Backup.Destination.ObjectURLTemplate, daemons)
}

// Key is namespace/name.
func (c Cluster) Key() string { return c.Metadata.Namespace + "/" + c.Metadata.Name }

// Values returns copies of clusters, in no order.
func Values(clusters map[string]*Cluster) []Cluster {
	list := make([]Cluster, 0, len(clusters))
	for _, c := range clusters {
		list = append(list, *c)
	}
	return list
}

// Same reports whether two commits want the same of a cluster.
func Same(a, b Cluster) bool {
	return a.Digest == b.Digest && slices.Equal(a.Problems, b.Problems)
}
