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
	clusters := make([]Cluster, 0, len(set.Clusters)) // each is 1 KiB, and a list that grows copies it several times
	named := make(map[string]bool, len(set.Clusters))
	add := func(c Cluster) {
		if !named[c.Key()] {
			named[c.Key()] = true
			clusters = append(clusters, c)
		}
	}
	others := sourcesOf(set)
	for _, r := range set.Restores {
		add(restoredCluster(r, others, commit))
	}
	for _, c := range set.Clusters {
		add(Cluster{EtcdCluster: *c.EtcdCluster, Commit: commit, Digest: c.Digest})
	}
	files := byFile(set, before)
	holdAll := func(file string, problems []schema.Problem) {
		for _, o := range files[file] {
			add(heldCluster(o.Namespace, o.Name, commit, problems))
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

// sourceSet are the clusters and schedules that restores may name, by namespace/name.
type sourceSet struct {
	clusters  map[string]*schema.Cluster
	schedules map[string]*schema.Schedule
}

// sourcesOf returns those of a set; none where it has no restores.
func sourcesOf(set schema.Set) sourceSet {
	if len(set.Restores) == 0 {
		return sourceSet{}
	}
	s := sourceSet{map[string]*schema.Cluster{}, map[string]*schema.Schedule{}}
	for i := range set.Clusters {
		s.clusters[keyOf(set.Clusters[i].Metadata)] = &set.Clusters[i]
	}
	for i := range set.Schedules {
		s.schedules[keyOf(set.Schedules[i].Metadata)] = &set.Schedules[i]
	}
	return s
}

func keyOf(m schema.Metadata) string { return m.Namespace + "/" + m.Name }

// restoredCluster returns the cluster that a restore makes. If Git declares a cluster
// of the same name as deleted, the restore replaces that one.
func restoredCluster(r schema.Restore, others sourceSet, commit string) Cluster {
	c := Cluster{Commit: commit, Restore: &Restore{
		Name: r.Metadata.Name, SpecHash: schema.RestoreHash(r.Spec), Source: r.Spec.Source, From: restoreFrom(r, others),
	}}
	c.Metadata, c.Spec = r.Metadata, r.Spec.ClusterTemplate
	c.Metadata.Name = r.Spec.ClusterName
	if former := others.clusters[c.Key()]; former != nil {
		c.Restore.Former = former.EtcdCluster
	}
	return c
}

// restoreFrom returns where the backups are that a restore names by schedule or
// cluster; nil for an object URL.
func restoreFrom(r schema.Restore, others sourceSet) *RestoreFrom {
	s, ns := r.Spec.Source, r.Metadata.Namespace
	from := RestoreFrom{Cluster: s.ClusterName}
	switch {
	case s.ObjectURL != "":
		return nil
	case s.Schedule != "":
		from.Schedule = ns + "/" + s.Schedule
		if d := others.schedules[from.Schedule]; d != nil {
			from.Cluster = cmp.Or(d.Spec.BackupTemplate.Source.ClusterName, s.Schedule)
			from.Destination = d.Spec.BackupTemplate.Destination
		}
	}
	if c := others.clusters[ns+"/"+from.Cluster]; c != nil {
		from.Destination = from.Destination.Or(c.Spec.Backup.Destination)
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
	files := byFile(set, before)
	for _, p := range set.Unreadable {
		if len(files[p.File]) > 0 {
			found = append(found, p)
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
