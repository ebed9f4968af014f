package convert

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/schema"
)

// draft is one document in the making.
type draft struct {
	file, kind, namespace, name string

	line   int
	root   *yaml.Node
	header string
	notes  []Note
	// reasons tell why the document must not be used unchanged.
	reasons []string
}

// draft begins a document for an old object.
func (c *conversion) draft(s source, kind, name string) *draft {
	d := &draft{file: s.file, line: s.node.Line, kind: kind, namespace: s.namespace, name: name, root: mapping()}
	d.header = fmt.Sprintf("Converted from %s %s of %s/%s, %s:%d.", s.kind, s.name, s.group, s.version, s.file, s.node.Line)
	put(d.root, "apiVersion", text(schema.APIVersion))
	put(d.root, "kind", text(kind))
	d.set("metadata.name", text(name))
	if s.namespace != "" {
		d.set("metadata.namespace", text(s.namespace))
	}
	if s.group == groupCoreos && s.version != "v1beta1" && s.version != "v1beta2" || s.group == groupImprobable && s.version != "v1alpha1" {
		d.leaveOut("the version %s of %s is unknown: convert it manually", clip(s.version), s.group)
	}
	c.drafts = append(c.drafts, d)
	return d
}

// set puts a value at a path of plain keys.
func (d *draft) set(path string, value *yaml.Node) {
	node := d.root
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		next := valueAt(node, key)
		if next == nil || next.Kind != yaml.MappingNode {
			next = mapping()
			put(node, key, next)
		}
		node = next
	}
	put(node, keys[len(keys)-1], value)
}

// at is the value at a path of plain keys, or nil.
func (d *draft) at(path string) *yaml.Node {
	node := d.root
	for key := range strings.SplitSeq(path, ".") {
		node = valueAt(node, key)
	}
	return node
}

// note says something about a line of the old file, above a field of the new.
func (d *draft) note(line int, at, format string, args ...any) {
	d.notes = append(d.notes, Note{File: d.file, Line: line, Message: printable(fmt.Sprintf(format, args...)), at: at})
}

// leaveOut turns the document into a comment.
func (d *draft) leaveOut(format string, args ...any) {
	reason := printable(fmt.Sprintf(format, args...))
	d.reasons = append(d.reasons, reason)
	d.notes = append(d.notes, Note{File: d.file, Line: d.line, at: leftOutMark, Message: fmt.Sprintf("%s %s is left out: %s", d.kind, clip(d.name), reason)})
}

// leftOutMark marks a note that is in the heading already.
const leftOutMark = "(heading)"

// document renders the draft with its notes as comments.
func (d *draft) document() Document {
	doc := Document{Kind: d.kind, Namespace: d.namespace, Name: d.name, LeftOut: len(d.reasons) > 0}
	head, root := []string{d.header}, clone(d.root)
	for _, n := range d.notes {
		switch key := keyAbove(root, n.at); {
		case n.at == leftOutMark:
		case key == nil:
			head = append(head, n.Message)
		default:
			key.HeadComment = strings.TrimPrefix(key.HeadComment+"\n"+comment(n.Message), "\n")
		}
	}
	for _, reason := range d.reasons {
		head = append(head, "NOT CONVERTED: "+reason)
	}
	body := encode(root)
	if doc.LeftOut {
		body = commentOut(body)
	}
	doc.Text = comment(strings.Join(head, "\n")) + "\n" + body
	return doc
}

// keyAbove is the key that a comment is above: that of the field, or of the
// nearest field around it.
func keyAbove(root *yaml.Node, path string) *yaml.Node {
	var found *yaml.Node
	node := root
	for key := range strings.SplitSeq(path, ".") {
		k, v := pairAt(node, key)
		if k == nil {
			break
		}
		found, node = k, v
	}
	return found
}

// encode writes nodes as YAML. Text that YAML cannot say gives "", which is
// found out when the document is checked.
func encode(node *yaml.Node) string {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if encoder.Encode(node) != nil || encoder.Close() != nil {
		return ""
	}
	return out.String()
}

// comment wraps lines of text as a YAML comment.
func comment(lines string) string {
	const width = 98
	var out []string
	for line := range strings.SplitSeq(lines, "\n") {
		current := "#"
		for word := range strings.FieldsSeq(printable(line)) {
			if len(current)+1+len(word) > width && current != "#" {
				out = append(out, current)
				current = "#"
			}
			current += " " + word
		}
		out = append(out, current)
	}
	return strings.Join(out, "\n")
}

// commentOut turns every line into a comment, so that taking the first two
// characters of each away gives the document back.
func commentOut(body string) string {
	var out strings.Builder
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\r\n")
		out.WriteString(strings.TrimRight("# "+printable(line), " ") + "\n")
	}
	return out.String()
}

// printable keeps what may be in one line of a comment.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if r == '\u2028' || r == '\u2029' || r == '\ufeff' || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, line)
}

// clip quotes a value of a file, cut to a length that a message bears.
func clip(value string) string {
	const most = 60
	if runes := []rune(value); len(runes) > most {
		value = string(runes[:most]) + "…"
	}
	return strconv.Quote(value)
}

// shorten cuts a name so that it takes a suffix within a limit.
func shorten(name, suffix string, limit int) string {
	if cut := limit - len(suffix); len(name) > cut {
		name = strings.TrimRight(name[:cut], "-")
	}
	return cmp.Or(name, "x") + suffix
}
