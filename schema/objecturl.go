package schema

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"
	"unicode"
)

// ObjectURLData is what an object URL template may name.
type ObjectURLData struct {
	// Namespace and Name are those of the cluster.
	Namespace, Name string
	// Version is the etcd release of the cluster, as in "3.6.16".
	Version string
	// UID is unique to one backup.
	UID string
}

// field is the value that a template names, as in {{ .UID }}.
func (d ObjectURLData) field(name string) (string, bool) {
	switch name {
	case "Namespace":
		return d.Namespace, true
	case "Name":
		return d.Name, true
	case "Version":
		return d.Version, true
	case "UID":
		return d.UID, true
	}
	return "", false
}

// ExpandObjectURL expands a template into the URL of one backup object. The
// template is a Go template that may do nothing but name the fields of d, and
// must name .UID in the path: without it one backup would overwrite another.
//
// The error tells what to change. It never repeats the template, which may hold
// a secret that should not be there.
func ExpandObjectURL(template string, d ObjectURLData) (string, error) {
	nodes, err := parseFields(template)
	if err != nil {
		return "", err
	}
	text, err := expandFields(nodes, d)
	if err != nil {
		return "", err
	}
	object, err := checkObjectURL(text, uidExample)
	if err != nil {
		return "", err
	}
	// The same template with another UID must be another object.
	other := d
	other.UID += "x"
	otherText, err := expandFields(nodes, other)
	if err != nil {
		return "", err
	}
	otherObject, err := checkObjectURL(otherText, uidExample)
	if err != nil {
		return "", err
	}
	if object.Path == otherObject.Path {
		return "", errors.New("the path must contain {{ .UID }}, or one backup would overwrite another")
	}
	return text, nil
}

// uidExample is the name of an object in messages about templates.
const uidExample = "{{ .UID }}.db"

// errTemplate is the one answer to all that is not a field in braces.
var errTemplate = errors.New("only {{ .Namespace }}, {{ .Name }}, {{ .Version }} and {{ .UID }} may be used in the template")

// parseFields reads a template, and tells of one that is too long or broken what to
// change.
func parseFields(template string) ([]parse.Node, error) {
	const longest = 2048
	if len(template) > longest {
		return nil, fmt.Errorf("the template is longer than %d characters", longest)
	}
	trees, err := parse.Parse("url", template, "", "")
	if err != nil || len(trees) > 1 || trees["url"] == nil {
		return nil, errTemplate
	}
	return trees["url"].Root.Nodes, nil
}

// expandFields replaces each field in braces by its value.
func expandFields(nodes []parse.Node, d ObjectURLData) (string, error) {
	var text strings.Builder
	for _, node := range nodes {
		part, err := expandNode(node, d)
		if err != nil {
			return "", err
		}
		text.WriteString(part)
	}
	return text.String(), nil
}

// expandNode is the text of one piece of the template. Calls, pipes, loops and
// conditions are refused: a place to write to must be plain to the reader.
func expandNode(node parse.Node, d ObjectURLData) (string, error) {
	if text, ok := node.(*parse.TextNode); ok {
		return string(text.Text), nil
	}
	name := fieldName(node)
	value, ok := d.field(name)
	if !ok {
		return "", errTemplate
	}
	if !isPathWord(value) {
		return "", fmt.Errorf("the value of .%s cannot be part of a URL: it must be letters, digits, dots, dashes and underscores", name)
	}
	return value, nil
}

// fieldName is the field that a piece of the template names, "" for anything else.
func fieldName(node parse.Node) string {
	action, ok := node.(*parse.ActionNode)
	if !ok || len(action.Pipe.Decl) > 0 || len(action.Pipe.Cmds) != 1 || len(action.Pipe.Cmds[0].Args) != 1 {
		return ""
	}
	field, ok := action.Pipe.Cmds[0].Args[0].(*parse.FieldNode)
	if !ok || len(field.Ident) != 1 {
		return ""
	}
	return field.Ident[0]
}

// isPathWord accepts what means itself in every part of a URL. A value of dots
// only would climb to another directory.
func isPathWord(value string) bool {
	for _, r := range value {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_.", r):
		default:
			return false
		}
	}
	return strings.Trim(value, ".") != ""
}

// checkObjectURL parses the URL of an object and refuses secrets in it. The
// messages show how it is written with example as the object's name.
func checkObjectURL(text, example string) (*url.URL, error) {
	object, err := url.Parse(text)
	if err != nil {
		// The cause would repeat a part of the URL.
		return nil, fmt.Errorf("it is not a URL such as s3://bucket/%s", example)
	}
	if object.User != nil || strings.Contains(object.Opaque, "@") {
		return nil, errors.New("a user or password must not be in the URL: name a Secret as credentials.secretName, or give the daemon credentials by its environment or service account")
	}
	if err := checkQuery(object.Scheme, object.RawQuery); err != nil {
		return nil, err
	}
	if object.Fragment != "" || strings.Contains(text, "#") {
		return nil, errors.New("leave out the part after #: object stores do not use it")
	}
	return object, checkPlace(object, example)
}

// checkPlace checks scheme, bucket and path.
func checkPlace(object *url.URL, example string) error {
	switch object.Scheme {
	case "s3", "gs", "azblob":
		if object.Host == "" {
			return fmt.Errorf("name the bucket, as in %s://bucket/%s", object.Scheme, example)
		}
	case "file":
		if object.Host != "" || !strings.HasPrefix(object.Path, "/") {
			return fmt.Errorf("a file needs an absolute path, as in file:///backups/%s", example)
		}
	default:
		return fmt.Errorf("the scheme must be s3, gs, azblob or file, as in s3://bucket/%s", example)
	}
	switch {
	case strings.Trim(object.Path, "/") == "" || strings.HasSuffix(object.Path, "/"):
		return fmt.Errorf("name the object, as in s3://bucket/%s", example)
	case slices.Contains(strings.Split(object.Path, "/"), ".."):
		return errors.New("the path must not contain the segment ..: leave it out")
	}
	return nil
}

// looksSecret knows the names that stores and their tools give to secrets. The
// name of a key at a key service, or a path to a key, is none.
func looksSecret(key string) bool {
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_.", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, key)
	switch plain {
	case "sig", "key", "apikey", "pass", "pwd", "auth", "privatekey", "accountkey", "accessid", "se", "sp", "sv":
		return true
	}
	for _, part := range []string{"secret", "token", "passw", "credential", "signature", "accesskey", "sharedkey", "xamz"} {
		if strings.Contains(plain, part) {
			return true
		}
	}
	return false
}

// ObjectURLDirectory is the directory that the backups of a template lie in, with
// a slash at its end and the template's query: all that comes before the first
// part of the path in which two backups of d's cluster differ, by their UID or by
// the version that the cluster had then.
func ObjectURLDirectory(template string, d ObjectURLData) (string, error) {
	d.UID = "0"
	one, err := ExpandObjectURL(template, d)
	if err != nil {
		return "", err
	}
	plain, query, _ := strings.Cut(one, "?")
	directory := plain
	for _, other := range []ObjectURLData{{d.Namespace, d.Name, d.Version, "1"}, {d.Namespace, d.Name, d.Version + "x", "0"}} {
		text, err := ExpandObjectURL(template, other)
		if err != nil {
			return "", err
		}
		text, _, _ = strings.Cut(text, "?")
		shared := 0
		for shared < min(len(directory), len(text)) && directory[shared] == text[shared] {
			shared++
		}
		// A bucket for each version is another place.
		if slash := strings.LastIndex(directory[:shared], "/"); shared < len(directory) && strings.Count(directory[:shared], "/") >= 3 {
			directory = directory[:slash+1]
		}
	}
	if query != "" {
		directory += "?" + query
	}
	return directory, nil
}

// ObjectURLPattern matches the URLs that a template gives to backups of d's cluster, and no
// others: with any version, and a UID that the expression uid matches. It tells whether a
// URL that somebody names can be one of these.
func ObjectURLPattern(template string, d ObjectURLData, uid string) (*regexp.Regexp, error) {
	d.Version, d.UID = "any", "any"
	if _, err := ExpandObjectURL(template, d); err != nil {
		return nil, err
	}
	nodes, err := parseFields(template)
	if err != nil {
		return nil, err
	}
	var pattern strings.Builder
	for _, node := range nodes {
		text, err := expandNode(node, d)
		if err != nil {
			return nil, err
		}
		switch fieldName(node) {
		case "UID":
			pattern.WriteString("(?:" + uid + ")")
		case "Version":
			pattern.WriteString("[0-9A-Za-z][0-9A-Za-z._-]*") // it never begins with a dot, and so climbs nowhere
		default:
			pattern.WriteString(regexp.QuoteMeta(text))
		}
	}
	return regexp.Compile(`\A` + pattern.String() + `\z`)
}
