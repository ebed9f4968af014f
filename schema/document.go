package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is one parsed document.
type document struct {
	// node is the root of the document, a mapping.
	node *yaml.Node
	// before is the number of lines of the file before the document.
	before int
	// spots are the nodes of each field, filled by values.
	spots map[string]spot
}

// spot is where a field stands: its key, or its value where there is no key.
type spot struct {
	at, value *yaml.Node
}

// readYAML parses one document, and describes what is wrong with it.
func readYAML(c chunk) (*document, *Problem) {
	var root yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(c.data))
	if err := decoder.Decode(&root); err != nil {
		return nil, explainSyntax(c, err)
	}
	// What follows the root, such as a second object in braces, would be
	// dropped without a word.
	var rest yaml.Node
	if err := decoder.Decode(&rest); !errors.Is(err, io.EOF) {
		return nil, &Problem{ID: IDYAML, Line: c.line, Column: 1, Message: "there is more after the end of this document: write --- on a separate line between two documents"}
	}
	node := &root
	if node.Kind == yaml.DocumentNode && len(node.Content) > 0 {
		node = node.Content[0]
	}
	if node.Kind != yaml.MappingNode {
		return nil, &Problem{ID: IDYAML, Line: c.line + max(node.Line, 1) - 1, Column: max(node.Column, 1), Message: "the document is not an object: it must begin with apiVersion and kind"}
	}
	return &document{node: node, before: c.line - 1, spots: map[string]spot{}}, nil
}

// explainSyntax turns the parser's error into a problem at a line of the file.
// The commonest causes are named, which the parser does not do.
func explainSyntax(c chunk, err error) *Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line, message := 1, text
	if place, what, ok := strings.Cut(text, ": "); ok {
		if n, err := strconv.Atoi(strings.TrimPrefix(place, "line ")); err == nil {
			line, message = n, what
		}
	}
	if at, why := trap(c.data, line, message); at > 0 {
		line, message = at, why
	} else {
		message = "not YAML: " + message
	}
	line = max(line, 1)
	return &Problem{ID: IDYAML, Line: c.line + line - 1, Column: indentOf(lineAt(c.data, line)) + 1, Message: message}
}

// place is line and column in the file of a field, or of the nearest field
// above it where the field is missing.
func (d *document) place(field string) (line, column int) {
	for ; field != ""; field = parentOf(field) {
		if s, ok := d.spots[field]; ok {
			return s.at.Line + d.before, s.at.Column
		}
		if key, ok := keyNode(d.node, field); ok {
			return key.Line + d.before, key.Column
		}
	}
	return d.node.Line + d.before, d.node.Column
}

// keyNode finds a key of the root.
func keyNode(root *yaml.Node, key string) (*yaml.Node, bool) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == key {
			return root.Content[i], true
		}
	}
	return nil, false
}

// child is the path of a key within a field. A key with dots or slashes stands
// in brackets.
func child(field, key string) string {
	plain := key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
	switch {
	case !plain && len(key) > 80:
		return field + "[" + key[:80] + "…]"
	case !plain:
		return field + "[" + key + "]"
	case field == "":
		return key
	}
	return field + "." + key
}

// parentOf is the path of the field that holds a field.
func parentOf(field string) string {
	cut := strings.LastIndexByte(field, '.')
	if strings.HasSuffix(field, "]") {
		cut = strings.LastIndexByte(field, '[')
	}
	if cut < 0 {
		return ""
	}
	return field[:cut]
}

// expansion turns nodes into the values that JSON has.
type expansion struct {
	*document
	problems []Problem
	left     int
	overrun  bool
}

// values are the fields of the document, aliases and merges expanded. What
// cannot be a value is left out and reported.
func (d *document) values() (map[string]any, []Problem) {
	e := &expansion{document: d, left: maxValues}
	fields, _ := e.mapping(d.node, "", 0)
	if e.overrun {
		return nil, []Problem{{ID: IDYAML, Line: d.node.Line + d.before, Column: d.node.Column, Message: fmt.Sprintf(
			"the document expands to more than %d values or %d levels: use fewer aliases", maxValues, maxDepth)}}
	}
	return fields, e.problems
}

// fail notes a problem at a node.
func (e *expansion) fail(node *yaml.Node, field, format string, args ...any) {
	e.problems = append(e.problems, Problem{
		ID:   IDYAML,
		Line: node.Line + e.before, Column: node.Column, Field: field, Message: fmt.Sprintf(format, args...),
	})
}

// value is the value of a node; ok is false for one that is left out.
func (e *expansion) value(node *yaml.Node, field string, depth int) (value any, ok bool) {
	node = resolve(node)
	e.left--
	if e.left < 0 || depth > maxDepth {
		e.overrun = true
	}
	if node == nil || e.overrun {
		return nil, false
	}
	switch node.Kind {
	case yaml.MappingNode:
		return e.mapping(node, field, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for i, item := range node.Content {
			path := fmt.Sprintf("%s[%d]", field, i)
			e.spots[path] = spot{at: item, value: resolve(item)}
			v, ok := e.value(item, path, depth+1)
			if !ok {
				return nil, false
			}
			list = append(list, v)
		}
		return list, true
	}
	return e.scalar(node, field)
}

// mapping is the value of a mapping. Its own keys win over merged ones.
func (e *expansion) mapping(node *yaml.Node, field string, depth int) (map[string]any, bool) {
	fields := map[string]any{}
	lines := map[string]int{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch first := lines[key.Value]; {
		case key.ShortTag() == "!!merge":
			merged = append(merged, value)
			continue
		case key.Kind != yaml.ScalarNode:
			e.fail(key, field, "a key must be a plain string: if this is a template such as {{ .UID }}, put it in quotes")
			return nil, false
		case first > 0:
			e.fail(key, child(field, key.Value), "is written twice, first on line %d: keep one of them", first)
			continue
		}
		lines[key.Value] = key.Line + e.before
		path := child(field, key.Value)
		e.spots[path] = spot{at: key, value: resolve(value)}
		if v, ok := e.value(value, path, depth+1); ok {
			fields[key.Value] = v
		}
	}
	for _, value := range merged {
		e.merge(fields, lines, value, field, depth)
	}
	return fields, true
}

// merge adds the keys of "<<: *base" that the mapping does not have itself.
func (e *expansion) merge(fields map[string]any, lines map[string]int, node *yaml.Node, field string, depth int) {
	bases := []*yaml.Node{resolve(node)}
	if bases[0].Kind == yaml.SequenceNode {
		bases = bases[0].Content
	}
	for _, base := range bases {
		at := base
		base = resolve(base)
		if base.Kind != yaml.MappingNode {
			e.fail(at, field, "<< must name an object")
			continue
		}
		value, ok := e.value(base, field, depth+1)
		if !ok {
			return
		}
		merged, _ := value.(map[string]any) // A mapping node gives a mapping.
		for key, v := range merged {
			if _, own := lines[key]; !own {
				fields[key] = v
			}
		}
		for key := range merged {
			lines[key] = at.Line + e.before
		}
	}
}

// scalar is the value of a plain word, text or number.
func (e *expansion) scalar(node *yaml.Node, field string) (any, bool) {
	var value any
	switch tag := node.ShortTag(); tag {
	case "!!null":
		return nil, true
	case "!!bool", "!!int", "!!float":
		if err := node.Decode(&value); err != nil {
			e.fail(node, field, "%s is not a value of the type %s", clip(node.Value), tag)
			return nil, false
		}
		if f, ok := value.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
			e.fail(node, field, "%s is not a finite number", clip(node.Value))
			return nil, false
		}
		return value, true
	default:
		if !strings.HasPrefix(tag, "!!") {
			e.fail(node, field, "the YAML tag %s is not known: leave it out", clip(tag))
			return nil, false
		}
		return node.Value, true
	}
}
