package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// parse reads the files of a snapshot, those that the parser does not know.
func parse(p *schema.Parser, s sources.Snapshot) schema.Set {
	files := make([]schema.File, len(s.Files))
	for i, f := range s.Files {
		files[i] = schema.File{Path: f.Path, Data: f.Data}
	}
	return p.Parse(files)
}

// readPaths reads files and directories of this machine.
func readPaths(ctx context.Context, paths []string) (schema.Set, error) {
	s, err := sources.ReadPaths(ctx, paths, sources.Limits{})
	if err != nil {
		return schema.Set{}, err
	}
	return parse(&schema.Parser{}, s), nil
}

// wishes turns what the files say into what the reconciler is to do. A cluster
// whose file has errors is named with them, so that it is held rather than
// forgotten. before are the clusters that earlier commits named: where a
// document is so broken that its name cannot be read, those that stood in the
// same file are held.
func wishes(set schema.Set, commit string, before map[string]origin) []desired.Cluster {
	var clusters []desired.Cluster
	named := map[string]bool{}
	add := func(c desired.Cluster) {
		if !named[c.Key()] {
			named[c.Key()] = true
			clusters = append(clusters, c)
		}
	}
	for _, r := range set.Restores {
		add(restoredCluster(r, set, commit))
	}
	for _, c := range set.Clusters {
		add(desired.Cluster{EtcdCluster: c.EtcdCluster, Commit: commit})
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
			// Which cluster it makes cannot be read; it was the one of that name
			// before, or has the same name.
			key := cmp.Or(restores(before, h.Namespace, h.Name), h.Name)
			add(heldCluster(h.Namespace, key, commit, h.Problems))
		case h.Kind != "" && h.Kind != schema.KindCluster && h.Kind != schema.KindRestore:
		case h.Name != "":
			add(heldCluster(h.Namespace, h.Name, commit, h.Problems))
		default:
			holdAll(h.Origin.File, h.Problems)
		}
	}
	for _, p := range remains(set, before) {
		holdAll(p.File, []schema.Problem{p})
	}
	return clusters
}

// restoredCluster is the cluster that a restore makes. Where a file of the same name
// says that an earlier one is deleted, the restore comes in its place.
func restoredCluster(r schema.Restore, set schema.Set, commit string) desired.Cluster {
	c := desired.Cluster{Commit: commit, Restore: &desired.Restore{
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

// restoreFrom is where the backups are that a restore means by the name of a
// schedule or a cluster; nil for an object URL.
func restoreFrom(r schema.Restore, set schema.Set) *desired.RestoreFrom {
	s, ns := r.Spec.Source, r.Metadata.Namespace
	from := desired.RestoreFrom{Cluster: s.ClusterName}
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

// restores is the cluster that a restore made when its document could be read, or "".
func restores(before map[string]origin, namespace, name string) string {
	for _, o := range before {
		if o.Restore == name && o.Namespace == namespace {
			return o.Name
		}
	}
	return ""
}

// remains are the files that cannot be read any more and named a cluster before:
// what looks like somebody else's may be what is left of ours.
func remains(set schema.Set, before map[string]origin) []schema.Problem {
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

// heldCluster is a cluster of which nothing but the name is known.
func heldCluster(namespace, name, commit string, problems []schema.Problem) desired.Cluster {
	c := desired.Cluster{Commit: commit}
	c.Metadata.Namespace, c.Metadata.Name = namespace, name
	for _, p := range problems {
		c.Problems = append(c.Problems, p.String())
	}
	if len(c.Problems) == 0 {
		c.Problems = []string{"its document cannot be read"}
	}
	return c
}

// origin is where a cluster was last seen and what was said of it, and the name of
// the restore that makes it, if any.
type origin struct {
	Namespace, Name, File string
	Restore               string `json:",omitempty"`
	Version               string
	State                 schema.State `json:",omitempty"`
}

func (o origin) key() string { return o.Namespace + "/" + o.Name }

// origins remembers where the clusters of a commit stood.
func origins(set schema.Set, before map[string]origin) map[string]origin {
	next := map[string]origin{}
	for _, c := range set.Clusters {
		o := origin{Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, File: c.Origin.File, Version: c.Spec.Version, State: c.Spec.State}
		next[o.key()] = o
	}
	for _, r := range set.Restores {
		o := origin{
			Namespace: r.Metadata.Namespace, Name: r.Spec.ClusterName, File: r.Origin.File, Restore: r.Metadata.Name,
			Version: r.Spec.ClusterTemplate.Version, State: r.Spec.ClusterTemplate.State,
		}
		next[o.key()] = o
	}
	keep := func(file string) {
		for key, o := range before {
			if _, known := next[key]; !known && o.File == file {
				next[key] = o
			}
		}
	}
	for _, h := range set.Held {
		keep(h.Origin.File)
		// It may stand in another file than before.
		o, known := before[h.Namespace+"/"+h.Name]
		if _, good := next[o.key()]; known && !good && (h.Kind == "" || h.Kind == schema.KindCluster) {
			next[o.key()] = o
		}
	}
	for _, p := range set.Unreadable {
		keep(p.File)
	}
	return next
}

// countProblems is "1 error, 2 warnings".
func countProblems(problems []schema.Problem) (text string, errors int) {
	warnings := 0
	for _, p := range problems {
		if p.Warning {
			warnings++
		} else {
			errors++
		}
	}
	return fmt.Sprintf("%s, %s", plural(errors, "error"), plural(warnings, "warning")), errors
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
