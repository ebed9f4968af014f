package convert

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/schema"
)

// check lets the schema judge every document. What it refuses and what is not
// essential is taken out, with the schema's words as the note; a document that
// is refused for anything else is left out. Each turn makes the documents
// smaller or fewer, so it ends.
func (c *conversion) check() {
	for again := true; again; {
		again = false
		for _, p := range c.refusals() {
			i, _ := strconv.Atoi(p.File) // refusals names the files by number.
			d := c.drafts[i]
			if len(d.reasons) > 0 {
				continue
			}
			again = true
			if !d.prune(p) {
				d.leaveOut("%s", strings.TrimPrefix(p.Field+": "+printable(p.Message), ": "))
			}
		}
	}
}

// refusals are the errors of the schema, the place being the index of a draft.
// A line is meaningless here; the same field is reported once a turn.
func (c *conversion) refusals() []schema.Problem {
	var files []schema.File
	for i, d := range c.drafts {
		if len(d.reasons) == 0 && encode(d.root) == "" {
			d.leaveOut("it holds a value that YAML cannot say")
		}
		if len(d.reasons) == 0 {
			files = append(files, schema.File{Path: strconv.Itoa(i), Data: []byte(d.document().Text)})
		}
	}
	set := schema.Parse(files)
	var found []schema.Problem
	seen := map[string]bool{}
	for _, p := range set.Problems {
		if key := p.File + " " + p.Field; !p.Warning && !seen[key] {
			seen[key] = true
			found = append(found, p)
		}
	}
	return append(found, set.Unreadable...)
}

// prune takes a field out that the schema refuses, if the document means
// something without it.
func (d *draft) prune(p schema.Problem) bool {
	inSpec := strings.TrimPrefix(strings.TrimPrefix(p.Field, "spec."), "clusterTemplate.")
	optional := strings.HasPrefix(inSpec, "etcd.") || strings.HasPrefix(inSpec, "podTemplate.") ||
		strings.HasPrefix(p.Field, "metadata.labels") || strings.HasPrefix(p.Field, "metadata.annotations")
	if !optional {
		return false
	}
	key, found := remove(d.root, "", p.Field)
	if !found {
		return false
	}
	line := d.line
	if key != nil && key.Line > 0 {
		line = key.Line
	}
	d.note(line, plainPath(p.Field), "%s was left out (%s)", p.Field, p.Message)
	return true
}

// plainPath is the part of a path before the first bracket.
func plainPath(path string) string {
	path, _, _ = strings.Cut(path, "[")
	return path
}

// remove takes the field with a path out, and what becomes empty by that. It
// names fields as the schema does.
func remove(node *yaml.Node, path, want string) (key *yaml.Node, found bool) {
	step := 1
	if node.Kind == yaml.MappingNode {
		step = 2
	}
	for i := 0; i+step <= len(node.Content); i += step {
		value := node.Content[i+step-1]
		part := fmt.Sprintf("%s[%d]", path, i)
		if step == 2 {
			part = child(path, node.Content[i].Value)
		}
		found := part == want
		if !found && strings.HasPrefix(want, part) {
			key, found = remove(value, part, want)
			if found && len(value.Content) > 0 {
				return key, true
			}
		}
		if found {
			if key == nil {
				key = node.Content[i]
			}
			node.Content = append(node.Content[:i], node.Content[i+step:]...)
			return key, true
		}
	}
	return nil, false
}

// child is the path of a key within a field. A key with dots or slashes stands
// in brackets.
func child(path, key string) string {
	plain := key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
	switch {
	case !plain && len(key) > 80:
		return path + "[" + key[:80] + "…]"
	case !plain:
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}
