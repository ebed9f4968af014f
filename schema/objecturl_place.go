package schema

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// ObjectURLPlace is what the URLs of all backups of a namespace begin with that a template
// may give, without parameters: the template up to its first field that is not .Namespace,
// and from there back to the last slash. A template that names no such field is a place as a
// whole, such as "s3://archive/{{ .Namespace }}/".
//
// The error tells what to change, and does not repeat the template.
func ObjectURLPlace(template, namespace string) (string, error) {
	nodes, err := parseFields(template)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	whole := true
	for _, node := range nodes {
		if slices.Contains([]string{"Name", "Version", "UID"}, fieldName(node)) {
			whole = false
			break
		}
		part, err := expandNode(node, ObjectURLData{Namespace: namespace})
		if err != nil {
			return "", err
		}
		text.WriteString(part)
	}
	place, _, _ := strings.Cut(text.String(), "?")
	if whole && !strings.HasSuffix(place, "/") && !strings.Contains(text.String(), "?") {
		place += "/"
	}
	place = place[:strings.LastIndex(place, "/")+1]
	if strings.Count(place, "/") < 3 { // two before the bucket, one behind it
		return "", errors.New("it must name a bucket that is the same for all backups of a namespace, as in s3://bucket/{{ .Namespace }}/")
	}
	if _, err := checkObjectURL(place+"any", "{{ .Namespace }}/"); err != nil {
		return "", err
	}
	return place, nil
}

// InObjectURLPlace reports whether an object, or a directory of objects, lies in a place that
// ObjectURLPlace gives, whatever its parameters.
func InObjectURLPlace(place, objectURL string) bool {
	u, err := url.Parse(objectURL)
	if err != nil || u.User != nil || u.Opaque != "" {
		return false
	}
	clean := path.Clean(u.Path)
	if clean != u.Path && clean+"/" != u.Path {
		return false // it climbs, or names a directory without a name
	}
	return strings.HasPrefix(fmt.Sprintf("%s://%s%s", u.Scheme, u.Host, u.Path), place)
}
