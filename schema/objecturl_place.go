package schema

import (
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"
	"text/template/parse"
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
	end := slices.IndexFunc(nodes, func(n parse.Node) bool { return slices.Contains([]string{"Name", "Version", "UID"}, fieldName(n)) })
	whole := end < 0
	if whole {
		end = len(nodes)
	}
	text, err := expandFields(nodes[:end], ObjectURLData{Namespace: namespace})
	if err != nil {
		return "", err
	}
	place, _, asks := strings.Cut(text, "?")
	if whole && !asks {
		place = strings.TrimSuffix(place, "/") + "/"
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

// InObjectURLPlace reports whether an object, or a directory of objects, lies in a place such
// as ObjectURLPlace and ObjectURLDirectory give, whatever the parameters of both.
func InObjectURLPlace(place, objectURL string) bool {
	in, inErr := url.Parse(place)
	u, err := url.Parse(objectURL)
	if inErr != nil || err != nil || u.User != nil || u.Opaque != "" || u.Fragment != "" {
		return false
	}
	clean := path.Clean(u.Path)
	if clean != u.Path && clean+"/" != u.Path {
		return false // it climbs, or names a directory without a name
	}
	return u.Scheme == in.Scheme && u.Host == in.Host && strings.HasPrefix(u.Path, in.Path)
}
