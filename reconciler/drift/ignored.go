package drift

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// withoutIgnored leaves out what the wanted object itself says that others may set. It
// stands there, so that who looks at the object sees it, and so that no comparison and no
// apply can do without it.
func withoutIgnored(foreign *fieldpath.Set, want *typed.TypedValue) *fieldpath.Set {
	ignored := ignoredPaths(want)
	if len(ignored) == 0 {
		return foreign
	}
	rest := fieldpath.NewSet()
	for p := range foreign.All() {
		if !below(p, ignored) {
			rest.Insert(p.Copy())
		}
	}
	return rest
}

// ignoredPaths are the paths of an object's annotation.
func ignoredPaths(want *typed.TypedValue) (paths [][]string) {
	object, _ := want.AsValue().Unstructured().(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[naming.AnnotationIgnored].(string)
	for pointer := range strings.FieldsSeq(text) {
		if tokens, ok := schema.PointerTokens(pointer); ok && len(tokens) > 1 {
			paths = append(paths, tokens)
		}
	}
	return paths
}

// below reports whether a path is one of some, or below it.
func below(p fieldpath.Path, paths [][]string) bool {
	for _, tokens := range paths {
		same := len(p) >= len(tokens)
		for i := 0; same && i < len(tokens); i++ {
			same = isField(p[i], tokens[i])
		}
		if same {
			return true
		}
	}
	return false
}
