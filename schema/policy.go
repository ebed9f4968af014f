package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// KindPolicy is the kind of a policy. It is no kind of the repository: a Parser is given one.
const KindPolicy = "Policy"

// Policy is what a platform team lets the files of each team declare. It is kept where those
// who write the files cannot change it. What is against it is an error of the document, which
// is held, so that the last good state of its object stays in force.
type Policy struct {
	// APIVersion and Kind are quorate.dev/v1alpha1 and Policy.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Rules are asked in their order: the first one that is for a file decides on what it
	// declares. A file that none is for may declare nothing.
	Rules []PolicyRule `json:"rules"`

	// file is the policy's own, and lines are where its fields stand.
	file  string
	lines func(field string) int
}

// PolicyRule is what some files may declare. What it leaves out it does not limit, but for
// namespaces. In namespaces and values, a pattern is a text, or what a text begins with and *.
type PolicyRule struct {
	// Name of the rule, for people.
	Name string `json:"name"`
	// Files that the rule is for, from the root of the repository: a file, a directory with
	// a slash at its end, a pattern such as clusters/*.yaml, or * for all.
	Files []string `json:"files"`
	// Namespaces of the objects.
	Namespaces []string `json:"namespaces"`
	// Stores are the places where backups may be put, and read, as in
	// "s3://backups/{{ .Namespace }}/", see ObjectURLPlace. The daemon's --backup-url is
	// allowed always.
	Stores []string `json:"stores,omitempty"`
	// Recipients are public keys (age1…) for each of which all backups must be encrypted.
	Recipients []string `json:"recipients,omitempty"`
	// Values are what fields of an EtcdCluster, or of the clusterTemplate of an EtcdRestore,
	// may hold where they are set: their value, the keys of a map, or the elements of a list,
	// by their names where they have one. No pattern at all lets a field not be set.
	Values map[string][]string `json:"values,omitempty"`
	// Limits of what the files may ask for together, and each for itself.
	Limits PolicyLimits `json:"limits,omitzero"`
}

// PolicyLimits are limits of size. Zero is none.
type PolicyLimits struct {
	// Clusters is how many clusters the files of the rule may declare together, and
	// Members how many members each may have.
	Clusters int   `json:"clusters,omitempty"`
	Members  int32 `json:"members,omitempty"`
	// Storage is how large the volume of a member may be.
	Storage resource.Quantity `json:"storage,omitzero"`
}

// ParsePolicy reads a policy. The file is named in errors, and in what it refuses.
func ParsePolicy(file string, data []byte) (*Policy, error) {
	root, problem := readYAML(chunk{data: data, line: 1})
	if problem != nil {
		problem.File = file
		return nil, errors.New(problem.String())
	}
	fields, problems := root.values()
	if len(problems) > 0 {
		problems[0].File = file
		return nil, errors.New(problems[0].String())
	}
	p := &Policy{file: file, lines: func(field string) int {
		line, _ := root.place(field)
		return line
	}}
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(p); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if field, why := p.mistake(); why != "" {
		return nil, fmt.Errorf("%s:%d: %s: %s", file, p.lines(field), field, why)
	}
	return p, nil
}

// mistake is the first thing that is wrong with a policy, and its field. What could be
// misspelt is looked at: a policy must not allow more than its author meant.
func (p *Policy) mistake() (field, why string) {
	if p.APIVersion != APIVersion || p.Kind != KindPolicy {
		return "kind", fmt.Sprintf("a policy begins with apiVersion: %s and kind: %s", APIVersion, KindPolicy)
	}
	if len(p.Rules) == 0 {
		return "rules", "name at least one rule: without any, no file may declare anything"
	}
	for i, r := range p.Rules {
		at := fmt.Sprintf("rules[%d].", i)
		switch {
		case r.Name == "":
			return at + "name", "give the rule a name, which people read where it refuses"
		case len(r.Files) == 0:
			return at + "files", "name the files that the rule is for, or * for all"
		case len(r.Namespaces) == 0:
			return at + "namespaces", "name the namespaces, or * for all"
		case r.Limits.Clusters < 0 || r.Limits.Members < 0 || r.Limits.Storage.Sign() < 0:
			return at + "limits", "a limit must not be below zero"
		}
		for j, pattern := range r.Files {
			if _, err := path.Match(pattern, ""); err != nil || strings.HasPrefix(pattern, "/") {
				return fmt.Sprintf("%sfiles[%d]", at, j), fmt.Sprintf("%q is not a pattern of files, such as clusters/*.yaml", pattern)
			}
		}
		for j, store := range r.Stores {
			if _, err := ObjectURLPlace(store, "any"); err != nil {
				return fmt.Sprintf("%sstores[%d]", at, j), err.Error()
			}
		}
		for j, recipient := range r.Recipients {
			if problem := recipientProblem(recipient); problem != "" {
				return fmt.Sprintf("%srecipients[%d]", at, j), "it " + problem
			}
		}
		for _, name := range slices.Sorted(maps.Keys(r.Values)) {
			if field, ok := strings.CutPrefix(name, "spec."); !ok || !hasField(reflect.TypeFor[ClusterSpec](), strings.Split(field, ".")) {
				return at + "values", fmt.Sprintf("%s is no field of an EtcdCluster, such as spec.image.repository", name)
			}
		}
	}
	return "", ""
}

// hasField reports whether a type has a field, by the names of JSON.
func hasField(t reflect.Type, names []string) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if len(names) == 0 {
		return true
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	next, ok := jsonFields(t)[names[0]]
	return ok && hasField(next, names[1:])
}

// ruleFor is the number of the first rule that is for a file, or -1.
func (p *Policy) ruleFor(file string) int {
	return slices.IndexFunc(p.Rules, func(r PolicyRule) bool {
		return slices.ContainsFunc(r.Files, func(pattern string) bool { return MatchesFile(pattern, file) })
	})
}

// MatchesFile reports whether a pattern names a file: its path, a directory with a slash at
// its end, a pattern of path.Match, or * for all.
func MatchesFile(pattern, file string) bool {
	file = path.Clean(file)
	if strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(file, path.Clean(pattern)+"/")
	}
	matches, _ := path.Match(pattern, file)
	return matches || pattern == "*"
}

// matchesText reports whether one of the patterns is a text, or what it begins with and *.
func matchesText(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return text == pattern || open && strings.HasPrefix(text, prefix)
	})
}
