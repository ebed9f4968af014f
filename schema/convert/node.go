package convert

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// text is a node for a text.
func text(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

// quoted is text in quotes, for what a reader may take for a number.
func quoted(value string) *yaml.Node {
	node := text(value)
	node.Style = yaml.DoubleQuotedStyle
	return node
}

// number is a node for a whole number in decimal.
func number(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: value}
}

// mapping is a node for an empty mapping.
func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

// put sets a key of a mapping.
func put(node *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			node.Content[i+1] = value
			return
		}
	}
	node.Content = append(node.Content, text(key), value)
}

// valueAt is the value of a key, or nil.
func valueAt(node *yaml.Node, key string) *yaml.Node {
	if _, value := pairAt(node, key); value != nil {
		return value
	}
	return nil
}

// pairAt is a key and its value, or nil.
func pairAt(node *yaml.Node, key string) (k, v *yaml.Node) {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i] != nil && node.Content[i].Value == key {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

// textAt is the text of a key, or "".
func textAt(node *yaml.Node, key string) string {
	if value := valueAt(node, key); value != nil && value.Kind == yaml.ScalarNode && value.Tag == "!!str" {
		return value.Value
	}
	return ""
}

// isNull reports whether a value is the same as none.
func isNull(node *yaml.Node) bool {
	return node == nil || node.Kind == yaml.ScalarNode && node.Tag == "!!null"
}

// isEmpty reports whether a value has no content.
func isEmpty(node *yaml.Node) bool {
	return isNull(node) || node.Kind != yaml.ScalarNode && len(node.Content) == 0 || node.Kind == yaml.ScalarNode && node.Value == ""
}

// clone is a deep copy, so that a change in one document is not one in another.
func clone(node *yaml.Node) *yaml.Node {
	out := *node
	out.Content = nil
	for _, child := range node.Content {
		out.Content = append(out.Content, clone(child))
	}
	return &out
}

// arrange sorts the keys of a mapping as listed; others follow in their order.
func arrange(node *yaml.Node, order ...string) {
	if node == nil {
		return
	}
	sorted := make([]*yaml.Node, 0, len(node.Content))
	for _, key := range order {
		if k, v := pairAt(node, key); k != nil {
			sorted = append(sorted, k, v)
		}
	}
	listed := " " + strings.Join(order, " ") + " "
	for i := 0; i+1 < len(node.Content); i += 2 {
		if !strings.Contains(listed, " "+node.Content[i].Value+" ") {
			sorted = append(sorted, node.Content[i], node.Content[i+1])
		}
	}
	node.Content = sorted
}
