package schema

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Group is the API group of every kind in this package.
const Group = "quorate.dev"

// header is what tells whose document it is.
type header struct {
	identity
	apiVersion string
}

// readHeader reads apiVersion, kind and names, as far as they are strings.
func readHeader(root *document) header {
	h := header{apiVersion: textAt(root.node, "apiVersion")}
	h.kind = textAt(root.node, "kind")
	metadata := valueAt(root.node, "metadata")
	h.name = textAt(metadata, "name")
	h.namespace = textAt(metadata, "namespace")
	return h
}

// verdict says whose a document is.
type verdict int

const (
	// foreign documents are another tool's.
	foreign verdict = iota
	// ours are objects to decode.
	ours
	// wrong documents are meant for quorate, and cannot be taken.
	wrong
)

// classify decides by apiVersion and kind alone.
//
//	apiVersion            kind            verdict
//	quorate.dev/v1alpha1  one of ours     ours
//	quorate.dev/v1alpha1  anything else   wrong: a list, or unknown
//	quorate.dev/other     anything        wrong
//	nearly quorate.dev    one of ours     wrong: did you mean
//	none                  one of ours     wrong: apiVersion is missing
//	v1                    List of ours    wrong: lists are not taken
//	anything else         anything        foreign
func classify(root *document, h header) (verdict, Problem) {
	group, _, _ := strings.Cut(h.apiVersion, "/")
	ourKind := slices.Contains(Kinds(), h.kind)
	fail := func(field, format string, args ...any) (verdict, Problem) {
		p := Problem{ID: IDHeader, Field: field, Message: fmt.Sprintf(format, args...)}
		p.Line, p.Column = root.place(field)
		return wrong, p
	}
	switch {
	case group == Group && h.apiVersion != APIVersion:
		return fail("apiVersion", "%s is unknown to this version of quorate: write %s", clip(h.apiVersion), APIVersion)
	case group == Group:
		return classifyKind(h, fail)
	case h.kind == "List" && listsOurs(root.node):
		return fail("kind", "lists are not supported: write each item as a separate document, with --- between them")
	case h.apiVersion == "" && (ourKind || ourVersionUnderOtherKey(root.node)):
		return fail("apiVersion", "is missing: write apiVersion: %s", APIVersion)
	case ourKind && didYouMean(group, []string{Group}) != "":
		return fail("apiVersion", "the group %s is not quorate's, did you mean %s?", clip(group), APIVersion)
	}
	return foreign, Problem{}
}

// classifyKind decides on a document of the right apiVersion.
func classifyKind(h header, fail func(field, format string, args ...any) (verdict, Problem)) (verdict, Problem) {
	switch {
	case slices.Contains(Kinds(), h.kind):
		return ours, Problem{}
	case h.kind == "":
		return fail("kind", "is missing: write kind: %s, or one of the others: %s", KindCluster, strings.Join(Kinds()[1:], ", "))
	case slices.Contains(Kinds(), strings.TrimSuffix(h.kind, "List")):
		return fail("kind", "lists are not supported: write each item as a separate document, with --- between them")
	}
	return fail("kind", "%s is not a kind of quorate%s", clip(h.kind), didYouMean(h.kind, Kinds()))
}

// listsOurs reports whether a List has an item of quorate's group.
func listsOurs(node *yaml.Node) bool {
	items := valueAt(node, "items")
	if items == nil || items.Kind != yaml.SequenceNode {
		return false
	}
	return slices.ContainsFunc(items.Content, func(item *yaml.Node) bool {
		return strings.HasPrefix(textAt(item, "apiVersion"), Group+"/")
	})
}

// ourVersionUnderOtherKey finds a slip in the key itself, such as apiversion.
func ourVersionUnderOtherKey(node *yaml.Node) bool {
	if node.Kind != yaml.MappingNode {
		return false
	}
	for i := 1; i < len(node.Content); i += 2 {
		if strings.HasPrefix(node.Content[i].Value, Group+"/") {
			return true
		}
	}
	return false
}

// valueAt is the value of a key, aliases followed, or nil.
func valueAt(node *yaml.Node, key string) *yaml.Node {
	node = resolve(node)
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return resolve(node.Content[i+1])
		}
	}
	return nil
}

// textAt is the text of a key, or "" when there is none.
func textAt(node *yaml.Node, key string) string {
	if value := valueAt(node, key); value != nil && value.Kind == yaml.ScalarNode && value.ShortTag() == "!!str" {
		return value.Value
	}
	return ""
}

// resolve follows an alias.
func resolve(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}
