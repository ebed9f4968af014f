package preview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// fieldChanges compares two values by their JSON, down to the single values.
func fieldChanges(before, after any) ([]FieldChange, error) {
	from, err := jsonLeaves(before)
	if err != nil {
		return nil, err
	}
	to, err := jsonLeaves(after)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(from)
	maps.Copy(all, to)
	changes := []FieldChange{}
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if from[field] != to[field] && !isFilled(all, field) {
			changes = append(changes, FieldChange{Field: field, From: from[field], To: to[field]})
		}
	}
	return changes, nil
}

// isFilled reports whether a field that is an empty object or list in one value has values of its
// own in the other, which tell the difference.
func isFilled(all map[string]string, field string) bool {
	for other := range all {
		if below, is := strings.CutPrefix(other, field); is && (strings.HasPrefix(below, ".") || strings.HasPrefix(below, "[")) {
			return true
		}
	}
	return false
}

// jsonLeaves are the single values of a value's JSON, by their path.
func jsonLeaves(value any) (map[string]string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(text))
	// A number stays as written, however large.
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	found := map[string]string{}
	flatten("", tree, found)
	return found, nil
}

// flatten writes down every single value of a tree under its path. An empty object or list is one:
// an empty selector, for example, selects everything, and none at all nothing.
func flatten(path string, tree any, into map[string]string) {
	switch tree := tree.(type) {
	case map[string]any:
		if len(tree) == 0 {
			into[path] = "{}"
		}
		for key, value := range tree {
			flatten(joinField(path, key), value, into)
		}
	case []any:
		if len(tree) == 0 {
			into[path] = "[]"
		}
		for i, value := range tree {
			flatten(fmt.Sprintf("%s[%d]", path, i), value, into)
		}
	case nil:
	case string:
		into[path] = tree
		if tree == "" {
			into[path] = `""`
		}
	default:
		into[path] = fmt.Sprint(tree)
	}
}

// joinField appends a key to a path, in quotes where it contains dots.
func joinField(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./[]"):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}
