package drift

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/quorate/quorate/reconciler/naming"
)

// injectedFields are fields of the pod template that endanger a member and have no owner: what
// the admission of the API server adds has none, and most of it is harmless, such as another
// container. Not so a probe that kills a member while it waits for its quorum, a setting
// of etcd, or another disk where its data is.
func injectedFields(live *typed.TypedValue, wanted, owned *fieldpath.Set, others []metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	all, err := live.ToFieldSet()
	if err != nil {
		return nil, err
	}
	injected := fieldpath.NewSet()
	for p := range all.All() {
		if endangers(p) {
			injected.Insert(p.Copy())
		}
	}
	if injected.Empty() {
		return injected, nil
	}
	injected = unnamed(injected, wanted).Difference(owned)
	for _, e := range others {
		held, err := entryFields(e)
		if err != nil {
			return nil, err
		}
		injected = injected.Difference(held)
	}
	return injected, nil
}

// endangers reports whether a path is within a field that etcd's container, or the guard's,
// must not have unless quorate has given it.
func endangers(p fieldpath.Path) bool {
	const containers = 3
	if len(p) < containers+3 || !isField(p[0], "spec") || !isField(p[1], "template") || !isField(p[2], "spec") {
		return false
	}
	if !isField(p[containers], "containers") && !isField(p[containers], "initContainers") {
		return false
	}
	if name := keyOf(p[containers+1], "name"); name != naming.ContainerEtcd && name != naming.ContainerGuard {
		return false
	}
	field := p[containers+2]
	switch {
	case slices.ContainsFunc([]string{"livenessProbe", "envFrom", "restartPolicy"}, func(name string) bool { return isField(field, name) }):
		return true
	case len(p) == containers+3:
		return false
	case isField(field, "env"):
		return strings.HasPrefix(keyOf(p[containers+3], "name"), "ETCD_")
	case isField(field, "volumeMounts"):
		path := keyOf(p[containers+3], "mountPath")
		return path == naming.VolumePath || strings.HasPrefix(path, naming.VolumePath+"/") || strings.HasPrefix(path, naming.RecordPath)
	}
	return false
}

// keyOf is a text in the key of a list's item, "" for none.
func keyOf(e fieldpath.PathElement, name string) string {
	if e.Key == nil {
		return ""
	}
	for _, field := range *e.Key {
		if field.Name == name && field.Value.IsString() {
			return field.Value.AsString()
		}
	}
	return ""
}
