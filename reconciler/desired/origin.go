package desired

import (
	"encoding/json"

	"github.com/quorate/quorate/schema"
)

// Origin is where a cluster was last declared and as what, and the name of the restore
// that makes it, if any. It is stored as JSON.
type Origin struct {
	Namespace, Name, File string
	Restore               string `json:",omitempty"`
	Version               string
	State                 schema.State `json:",omitempty"`
	// Image, Security and Storage are spec.image, the security context of the pods and
	// spec.storage as JSON; "" where the origin was stored by a release that did not keep
	// them.
	Image    string `json:",omitempty"`
	Security string `json:",omitempty"`
	Storage  string `json:",omitempty"`

	// of is what it was made of; nil for one that was stored, or that a restore makes.
	of *schema.EtcdCluster
}

// originOf returns what the spec of a cluster in a file comes to.
func originOf(namespace, name, file string, spec schema.ClusterSpec) Origin {
	return Origin{
		Namespace: namespace, Name: name, File: file, Version: spec.Version, State: spec.State,
		Image: text(spec.Image), Security: text(spec.PodTemplate.Spec.SecurityContext), Storage: text(spec.Storage),
	}
}

// text is a part of a spec as JSON. What was read from YAML can be written.
func text(part any) string {
	data, err := json.Marshal(part)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// Key is namespace/name.
func (o Origin) Key() string { return o.Namespace + "/" + o.Name }

// byFile are the origins in each file; none where the set holds nothing, since none is looked up then.
func byFile(set schema.Set, all map[string]Origin) map[string][]Origin {
	if len(set.Held)+len(set.Unreadable) == 0 {
		return nil
	}
	files := make(map[string][]Origin, len(all))
	for _, o := range all {
		files[o.File] = append(files[o.File], o)
	}
	return files
}

// Origins returns where a commit declares its clusters, by key. A cluster whose
// document cannot be read stays where before has it.
func Origins(set schema.Set, before map[string]Origin) map[string]Origin {
	next := make(map[string]Origin, len(set.Clusters))
	for _, c := range set.Clusters {
		key := keyOf(c.Metadata)
		o := before[key]
		if o.of != c.EtcdCluster { // most are read from the same file, which has not changed
			o = originOf(c.Metadata.Namespace, c.Metadata.Name, c.Origin.File, c.Spec)
			o.of = c.EtcdCluster
		}
		next[key] = o
	}
	for _, r := range set.Restores {
		o := originOf(r.Metadata.Namespace, r.Spec.ClusterName, r.Origin.File, r.Spec.ClusterTemplate)
		o.Restore = r.Metadata.Name
		next[o.Key()] = o
	}
	files := byFile(set, before)
	keep := func(file string) {
		for _, o := range files[file] {
			if _, known := next[o.Key()]; !known {
				next[o.Key()] = o
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
