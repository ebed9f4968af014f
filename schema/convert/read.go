package convert

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/schema"
)

// Limits of one document after its aliases are expanded. They are far above any
// manifest: a dump of a whole namespace is a document of many objects.
const (
	maxValues = 200000
	maxDepth  = 100
)

// read finds the old objects of a file.
func (c *conversion) read(f schema.File) {
	if !utf8.Valid(f.Data) {
		c.unreadable = append(c.unreadable, Note{File: f.Path, Line: 1, Message: "the file is not UTF-8 text: save it as UTF-8"})
		return
	}
	line := 0
	for _, part := range splitDocuments(bytes.TrimPrefix(f.Data, []byte("\ufeff"))) {
		node, err := readYAML(part, line)
		if err != nil {
			c.unreadable = append(c.unreadable, Note{File: f.Path, Line: line + 1, Message: "not YAML: " + printable(err.Error())})
		}
		c.take(f.Path, node)
		line += bytes.Count(part, []byte("\n"))
	}
}

// splitDocuments cuts at the document markers, so that a document that is no
// YAML does not take its neighbours along. Each part begins with its marker.
func splitDocuments(data []byte) [][]byte {
	var parts [][]byte
	begin, at := 0, 0
	for line := range bytes.Lines(data) {
		word := bytes.TrimRight(line, " \t\r\n")
		if at > begin && (bytes.Equal(word, []byte("---")) || bytes.HasPrefix(line, []byte("--- "))) {
			parts = append(parts, data[begin:at])
			begin = at
		}
		at += len(line)
	}
	return append(parts, data[begin:])
}

// readYAML reads one document, aliases and merges expanded. JSON is YAML but for
// tabs between its tokens; within its texts there are none.
func readYAML(data []byte, before int) (*yaml.Node, error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		data = bytes.ReplaceAll(data, []byte("\t"), []byte(" "))
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if root.Kind != yaml.DocumentNode || len(root.Content) == 0 {
		return nil, nil
	}
	e := &expansion{left: maxValues, before: before}
	node := e.copy(root.Content[0], 0)
	if e.left < 0 {
		return nil, errors.New("the document expands to too many values: use fewer aliases")
	}
	return node, nil
}

// take notes the objects of a document; a list is taken apart.
func (c *conversion) take(file string, node *yaml.Node) {
	if node == nil || node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return
	}
	s := source{file: file, node: node, kind: textAt(node, "kind")}
	if items := valueAt(node, "items"); strings.HasSuffix(s.kind, "List") && items != nil && items.Kind == yaml.SequenceNode {
		for _, item := range items.Content {
			inherit(node, item)
			c.take(file, item)
		}
		return
	}
	s.group, s.version, _ = strings.Cut(textAt(node, "apiVersion"), "/")
	if s.group != schema.Group && !speaksOfEtcd(s.group, s.kind) {
		c.ignored++
		return
	}
	metadata := valueAt(node, "metadata")
	s.name, s.namespace = textAt(metadata, "name"), textAt(metadata, "namespace")
	c.sources = append(c.sources, s)
	if s.kind == schema.KindCluster && (s.group == groupCoreos || s.group == groupImprobable) {
		c.clusters[s.key()] = s
	}
}

// inherit gives an item of a typed list, such as an EtcdClusterList, the kind
// that it need not repeat.
func inherit(list, item *yaml.Node) {
	kind := strings.TrimSuffix(textAt(list, "kind"), "List")
	if item.Kind != yaml.MappingNode || kind == "" || valueAt(item, "kind") != nil || valueAt(item, "apiVersion") != nil {
		return
	}
	put(item, "apiVersion", text(textAt(list, "apiVersion")))
	put(item, "kind", text(kind))
}

// expansion copies nodes without aliases, merges, comments and styles.
type expansion struct {
	left   int
	before int
}

func (e *expansion) copy(node *yaml.Node, depth int) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	e.left--
	if node == nil || e.left < 0 || depth > maxDepth {
		e.left = min(e.left, -1)
		return nil
	}
	out := &yaml.Node{Kind: node.Kind, Tag: node.ShortTag(), Value: node.Value, Line: node.Line + e.before}
	if node.Kind == yaml.MappingNode {
		e.pairs(out, node, depth)
		return out
	}
	for _, child := range node.Content {
		out.Content = append(out.Content, e.copy(child, depth+1))
	}
	return out
}

// pairs copies a mapping. Its own keys win over merged ones.
func (e *expansion) pairs(out, node *yaml.Node, depth int) {
	var merged []*yaml.Node
	for i := 0; i+1 < len(node.Content) && e.left >= 0; i += 2 {
		key, value := node.Content[i], e.copy(node.Content[i+1], depth+1)
		if key.ShortTag() == "!!merge" && value != nil {
			merged = append(merged, bases(value)...)
			continue
		}
		out.Content = append(out.Content, e.copy(key, depth+1), value)
	}
	for _, base := range merged {
		for i := 0; i+1 < len(base.Content) && base.Kind == yaml.MappingNode; i += 2 {
			if base.Content[i] != nil && valueAt(out, base.Content[i].Value) == nil {
				out.Content = append(out.Content, base.Content[i], base.Content[i+1])
			}
		}
	}
}

// bases are the mappings that "<<" names: one, or a list of them.
func bases(node *yaml.Node) []*yaml.Node {
	if node.Kind == yaml.SequenceNode {
		return node.Content
	}
	return []*yaml.Node{node}
}
