package convert

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// sequence is a node for a list.
func sequence(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: items}
}

// etcdEnv turns the variables of the etcd container into options. Which flags
// quorate owns and which a release has is for the schema to say, when the
// document is checked.
func (c clusterSpec) etcdEnv(f field) {
	if f.value.Kind != yaml.SequenceNode {
		c.note(f.line, c.path("etcd"), "%s is not a list and was left out", f.path)
		return
	}
	for _, item := range f.value.Content {
		var name, value field
		c.walk(field{path: f.path, line: item.Line, value: item}, handlers{
			"name":  func(f field) { name = f },
			"value": func(f field) { value = f },
			"valueFrom": func(f field) {
				c.note(f.line, c.path("etcd"), "%s has no equivalent: write the value itself under etcd.options, if it is not a secret", f.path)
			},
		})
		if name.value != nil && value.value != nil && value.value.Value != "" {
			c.variable(name.value.Value, value)
		}
	}
	arrange(c.draft.at(c.path("etcd")), "quotaBackendBytes", "autoCompaction", "options")
}

// variable turns one variable into a setting. Its value may be a secret, so no
// note repeats it.
func (c clusterSpec) variable(name string, value field) {
	flag, isEtcd := strings.CutPrefix(name, "ETCD_")
	flag = strings.ReplaceAll(strings.ToLower(flag), "_", "-")
	switch {
	case name == "GOMAXPROCS":
		c.note(value.line, c.path("etcd"), "the variable GOMAXPROCS was left out: quorate sets it from the CPU limit")
	case !isEtcd || flag == "":
		c.note(value.line, c.path("etcd"), "the variable %s has no equivalent: a file sets flags of etcd only", clip(name))
	case flag == "quota-backend-bytes":
		c.set(c.path("etcd.quotaBackendBytes"), text(value.value.Value))
	case flag == "auto-compaction-mode":
		c.set(c.path("etcd.autoCompaction.mode"), text(value.value.Value))
	case flag == "auto-compaction-retention":
		c.set(c.path("etcd.autoCompaction.retention"), quoted(value.value.Value))
	default:
		c.option(flag, value)
	}
}

// option sets one flag, which may have dots and the like in a bad name.
func (c clusterSpec) option(flag string, value field) {
	options := c.draft.at(c.path("etcd.options"))
	if options == nil {
		options = mapping()
		c.set(c.path("etcd.options"), options)
	}
	put(options, flag, quoted(value.value.Value))
	if key, _ := pairAt(options, flag); key != nil {
		key.Line = value.line
	}
}
