package convert

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// field is one field of an old object.
type field struct {
	// path as a person names it, for example "spec.pod.labels".
	path  string
	line  int
	value *yaml.Node
}

// handlers tell what to do with each field of a mapping.
type handlers map[string]func(field)

// nothing is for a field that needs no note: its absence means the same.
func nothing(field) {}

// walk calls the handler of each field. One without a handler is noted, so that
// nothing is lost in silence.
func (d *draft) walk(f field, h handlers) {
	if isNull(f.value) {
		return
	}
	if f.value.Kind != yaml.MappingNode {
		d.note(f.line, "", "%s is not an object and was left out: write fields with their values", f.path)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(f.value.Content); i += 2 {
		key, value := f.value.Content[i], f.value.Content[i+1]
		part := field{path: strings.TrimPrefix(f.path+"."+word(key.Value), "."), line: key.Line, value: value}
		handle, known := h[key.Value]
		switch {
		case seen[key.Value]:
			d.note(part.line, "", "%s is written twice: the first one was taken", part.path)
		case isNull(value):
		case !known:
			d.note(part.line, "", "%s is not a field of the old operator, and was left out: check whether another one was meant", part.path)
		default:
			handle(part)
		}
		seen[key.Value] = true
	}
}

// word is a key as it may appear in a path.
func word(key string) string {
	if len(key) > 60 || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return clip(key)
	}
	return key
}

// text is the text of a field. A number is accepted: many strings look like one.
func (d *draft) text(f field) (string, bool) {
	if f.value.Kind != yaml.ScalarNode {
		d.note(f.line, "", "%s is not a string and was left out", f.path)
		return "", false
	}
	return f.value.Value, f.value.Value != ""
}

// integer is the number of a field.
func (d *draft) integer(f field) (int64, bool) {
	n, err := strconv.ParseInt(f.value.Value, 10, 64)
	if f.value.Kind != yaml.ScalarNode || err != nil {
		d.note(f.line, "", "%s is not an integer and was left out", f.path)
		return 0, false
	}
	return n, true
}

// isTrue is the truth of a field.
func (d *draft) isTrue(f field) bool {
	on, err := strconv.ParseBool(f.value.Value)
	if f.value.Kind != yaml.ScalarNode || err != nil {
		d.note(f.line, "", "%s is neither true nor false and was left out", f.path)
	}
	return on
}

// keep copies the text of a field.
func (d *draft) keep(path string) func(field) {
	return func(f field) {
		if value, ok := d.text(f); ok {
			d.set(path, text(value))
		}
	}
}

// move copies a value of Kubernetes' own types unchanged.
func (d *draft) move(path string) func(field) {
	return func(f field) {
		if !isEmpty(f.value) {
			d.set(path, clone(f.value))
		}
	}
}

// say notes a field that has no equivalent.
func (d *draft) say(at, format string, args ...any) func(field) {
	return func(f field) {
		if !isEmpty(f.value) {
			d.note(f.line, at, f.path+" "+format, args...)
		}
	}
}

// object walks the parts that every object has.
func (d *draft) object(s source, spec func(field)) {
	d.walk(field{line: s.node.Line, value: s.node}, handlers{
		"apiVersion": nothing, "kind": nothing, "status": nothing, "spec": spec, "metadata": d.metadata,
	})
}

// metadata takes what a file may set. What the API server writes has no meaning
// in Git.
func (d *draft) metadata(f field) {
	d.walk(f, handlers{
		"name": nothing, "namespace": nothing,
		"creationTimestamp": nothing, "uid": nothing, "resourceVersion": nothing, "generation": nothing, "selfLink": nothing,
		"managedFields": nothing, "deletionTimestamp": nothing, "deletionGracePeriodSeconds": nothing,
		"labels": d.move("metadata.labels"), "annotations": d.annotations,
		"generateName":    d.say("metadata.name", "is not used: an object in Git has its own name"),
		"finalizers":      d.say("", "were left out: they belong to the old operator"),
		"ownerReferences": d.say("", "were left out: this object was made by another one, check whether it should be in Git at all"),
	})
}

// annotations leaves out those that tools keep for themselves.
func (d *draft) annotations(f field) {
	kept := mapping()
	d.each(f, func(key string, value *yaml.Node, line int) {
		switch {
		case key == "kubectl.kubernetes.io/last-applied-configuration":
		case strings.HasPrefix(key, groupCoreos+"/"), strings.HasPrefix(key, groupImprobable+"/"):
			d.note(line, "metadata.annotations", "the annotation %s was the old operator's and was left out", clip(key))
		default:
			put(kept, key, clone(value))
		}
	})
	if len(kept.Content) > 0 {
		d.set("metadata.annotations", kept)
	}
}

// each visits the pairs of a mapping of texts.
func (d *draft) each(f field, visit func(key string, value *yaml.Node, line int)) {
	if f.value.Kind != yaml.MappingNode {
		d.note(f.line, "", "%s is not an object and was left out", f.path)
		return
	}
	for i := 0; i+1 < len(f.value.Content); i += 2 {
		visit(f.value.Content[i].Value, f.value.Content[i+1], f.value.Content[i].Line)
	}
}
