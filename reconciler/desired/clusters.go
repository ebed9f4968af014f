package desired

import (
	"cmp"

	"github.com/quorate/quorate/schema"
)

// Clusters returns the clusters that a commit declares. One whose document has errors
// is returned with them, so that it is held rather than forgotten. before are the
// clusters that earlier commits declared: where a document is so broken that its name
// cannot be read, those that stood in the same file are held.
func Clusters(set schema.Set, commit string, before map[string]Origin) []Cluster {
	var clusters []Cluster
	named := map[string]bool{}
	add := func(c Cluster) {
		if !named[c.Key()] {
			named[c.Key()] = true
			clusters = append(clusters, c)
		}
	}
	for _, r := range set.Restores {
		add(restoredCluster(r, set, commit))
	}
	for _, c := range set.Clusters {
		add(Cluster{EtcdCluster: c.EtcdCluster, Commit: commit})
	}
	holdAll := func(file string, problems []schema.Problem) {
		for _, o := range before {
			if o.File == file {
				add(heldCluster(o.Namespace, o.Name, commit, problems))
			}
		}
	}
	for _, h := range set.Held {
		switch {
		case h.Kind == schema.KindRestore && h.Name != "":
			// Which cluster it makes cannot be read: the one that it made before, or
			// one of the same name.
			key := cmp.Or(restoredBy(before, h.Namespace, h.Name), h.Name)
			add(heldCluster(h.Namespace, key, commit, h.Problems))
		case h.Kind != "" && h.Kind != schema.KindCluster && h.Kind != schema.KindRestore:
		case h.Name != "":
			add(heldCluster(h.Namespace, h.Name, commit, h.Problems))
		default:
			holdAll(h.Origin.File, h.Problems)
		}
	}
	for _, p := range Unreadable(set, before) {
		holdAll(p.File, []schema.Problem{p})
	}
	return clusters
}

// restoredCluster returns the cluster that a restore makes. If Git declares a cluster
// of the same name as deleted, the restore replaces that one.
func restoredCluster(r schema.Restore, set schema.Set, commit string) Cluster {
	c := Cluster{Commit: commit, Restore: &Restore{
		Name: r.Metadata.Name, SpecHash: schema.RestoreHash(r.Spec), Source: r.Spec.Source, From: restoreFrom(r, set),
	}}
	c.Metadata, c.Spec = r.Metadata, r.Spec.ClusterTemplate
	c.Metadata.Name = r.Spec.ClusterName
	for _, former := range set.Clusters {
		if former.Metadata.Namespace == c.Metadata.Namespace && former.Metadata.Name == c.Metadata.Name {
			c.Restore.Former = &former.EtcdCluster
		}
	}
	return c
}

// restoreFrom returns where the backups are that a restore names by schedule or
// cluster; nil for an object URL.
func restoreFrom(r schema.Restore, set schema.Set) *RestoreFrom {
	s, ns := r.Spec.Source, r.Metadata.Namespace
	from := RestoreFrom{Cluster: s.ClusterName}
	switch {
	case s.ObjectURL != "":
		return nil
	case s.Schedule != "":
		from.Schedule = ns + "/" + s.Schedule
		for _, d := range set.Schedules {
			if d.Metadata.Namespace == ns && d.Metadata.Name == s.Schedule {
				from.Cluster = cmp.Or(d.Spec.BackupTemplate.Source.ClusterName, s.Schedule)
				from.Destination = d.Spec.BackupTemplate.Destination
			}
		}
	}
	for _, c := range set.Clusters {
		if c.Metadata.Namespace == ns && c.Metadata.Name == from.Cluster {
			from.Destination = from.Destination.Or(c.Spec.Backup.Destination)
		}
	}
	return &from
}

// restoredBy returns the cluster that a restore made when its document could last be
// read, or "".
func restoredBy(before map[string]Origin, namespace, name string) string {
	for _, o := range before {
		if o.Restore == name && o.Namespace == namespace {
			return o.Name
		}
	}
	return ""
}

// Unreadable returns the files that declared a cluster before and cannot be read any
// more: what seems a document of another kind may be what is left of a cluster's.
func Unreadable(set schema.Set, before map[string]Origin) []schema.Problem {
	var found []schema.Problem
	for _, p := range set.Unreadable {
		for _, o := range before {
			if o.File == p.File {
				found = append(found, p)
				break
			}
		}
	}
	return found
}

// heldCluster returns a cluster of which only the name is known.
func heldCluster(namespace, name, commit string, problems []schema.Problem) Cluster {
	c := Cluster{Commit: commit}
	c.Metadata.Namespace, c.Metadata.Name = namespace, name
	for _, p := range problems {
		c.Problems = append(c.Problems, p.String())
	}
	if len(c.Problems) == 0 {
		c.Problems = []string{"its document cannot be read"}
	}
	return c
}
