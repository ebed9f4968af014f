package score

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Lines is an object as lines, each with the path of a value.
func Lines(kind string, o runtime.Object) (lines []string) {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		panic(err)
	}
	m, err := meta.Accessor(o)
	if err != nil {
		panic(err)
	}
	delete(fields, "apiVersion") // an object that was updated has them here, others have not
	delete(fields, "kind")
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		delete(fields["metadata"].(map[string]any), field)
	}
	if status, ok := fields["status"].(map[string]any); ok {
		delete(status, "observedGeneration")
	}
	walk(kind+" "+Plain(m.GetName()), fields, &lines)
	return lines
}

func walk(path string, v any, lines *[]string) {
	if strings.Contains(path, ".record.json.floor") {
		return // how far the members had written at the last look before a note
	}
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			walk(path+"."+key, value, lines)
		}
	case []any:
		for i, value := range v {
			walk(fmt.Sprintf("%s[%d]", path, i), value, lines)
		}
	case string:
		if strings.HasPrefix(path, "Secret ") && strings.Contains(path, ".data.") {
			v = "…"
		}
		var inner any
		if strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &inner) == nil ||
			strings.HasSuffix(path, ".yaml") && yaml.Unmarshal([]byte(v), &inner) == nil {
			walk(path, inner, lines)
			return
		}
		for _, line := range strings.Split(Plain(v), "\n") {
			*lines = append(*lines, path+" = "+line)
		}
	default:
		if strings.HasSuffix(path, ".record.json.revision") {
			return // counts the changes of the record
		}
		if strings.HasSuffix(path, ".seconds") || strings.HasSuffix(path, ".record.json.highestRevision") {
			return // how long a backup took, and what the last look has found before a deletion
		}
		*lines = append(*lines, fmt.Sprintf("%s = %v", path, v))
	}
}

// Plain is a text without what differs from one run to the next.
func Plain(s string) string {
	return varying.ReplaceAllString(s, "…")
}

// varying is what differs from one run to the next: UIDs, times, hashes and names made of them.
var varying = regexp.MustCompile(`uid-\d+|` +
	`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|` +
	`\b[0-9a-f]{13,64}\b|` +
	`\d{8}T?\d{6}Z?(-[0-9a-z]+)?`)

// Differ is what two pictures of the world do not share.
func Differ(want, got []string) string {
	var b strings.Builder
	for _, l := range want {
		if !slices.Contains(got, l) {
			fmt.Fprintf(&b, "  - %s\n", l)
		}
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			fmt.Fprintf(&b, "  + %s\n", l)
		}
	}
	return b.String()
}

// List is all objects of a list as lines.
func List(kind string, list runtime.Object) (lines []string) {
	items, err := meta.ExtractList(list)
	if err != nil {
		panic(err)
	}
	for _, o := range items {
		lines = append(lines, Lines(kind, o)...)
	}
	return lines
}
