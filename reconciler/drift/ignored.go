package drift

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// split parts what others have added into what is to be put back, and what the wanted
// object itself says that it stays and is reported. What it says that others may set is in
// neither. It stands there, so that who looks at the object sees it, and so that no
// comparison and no apply can do without it.
func split(foreign *fieldpath.Set, want *typed.TypedValue) (back, reported *fieldpath.Set) {
	back, reported = foreign, fieldpath.NewSet()
	ignored := annotatedPaths(want, naming.AnnotationIgnored)
	if len(ignored) == 0 {
		return back, reported
	}
	back = fieldpath.NewSet()
	told := annotatedPaths(want, naming.AnnotationReported)
	for p := range foreign.All() {
		switch {
		case !isBelowAny(p, ignored):
			back.Insert(p.Copy())
		case isBelowAny(p, told):
			reported.Insert(p.Copy())
		}
	}
	return back, reported
}

// annotatedPaths are the paths of one of an object's annotations.
func annotatedPaths(want *typed.TypedValue, annotation string) (paths [][]string) {
	object, _ := want.AsValue().Unstructured().(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[annotation].(string)
	for pointer := range strings.FieldsSeq(text) {
		if tokens, ok := schema.PointerTokens(pointer); ok && len(tokens) > 1 {
			paths = append(paths, tokens)
		}
	}
	return paths
}

// isBelowAny reports whether a path is one of some, or below it.
func isBelowAny(p fieldpath.Path, paths [][]string) bool {
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
