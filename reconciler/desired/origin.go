package desired

import (
	"github.com/quorate/quorate/schema"
)

// Origin is where a cluster was last declared and as what, and the name of the restore
// that makes it, if any. It is stored as JSON.
type Origin struct {
	Namespace, Name, File string
	Restore               string `json:",omitempty"`
	Version               string
	State                 schema.State `json:",omitempty"`
}

// Key is namespace/name.
func (o Origin) Key() string { return o.Namespace + "/" + o.Name }

// Origins returns where a commit declares its clusters, by key. A cluster whose
// document cannot be read stays where before has it.
func Origins(set schema.Set, before map[string]Origin) map[string]Origin {
	next := map[string]Origin{}
	for _, c := range set.Clusters {
		o := Origin{Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, File: c.Origin.File, Version: c.Spec.Version, State: c.Spec.State}
		next[o.Key()] = o
	}
	for _, r := range set.Restores {
		o := Origin{
			Namespace: r.Metadata.Namespace, Name: r.Spec.ClusterName, File: r.Origin.File, Restore: r.Metadata.Name,
			Version: r.Spec.ClusterTemplate.Version, State: r.Spec.ClusterTemplate.State,
		}
		next[o.Key()] = o
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
		// It may have moved to another file.
		o, known := before[h.Namespace+"/"+h.Name]
		if _, good := next[o.Key()]; known && !good && (h.Kind == "" || h.Kind == schema.KindCluster) {
			next[o.Key()] = o
		}
	}
	for _, p := range set.Unreadable {
		keep(p.File)
	}
	return next
}
