package drift

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/quorate/quorate/reconciler/naming"
)

// A field that is held as a whole, and of which a part is wanted, is no more than what
// is wanted.
func TestUnnamed(t *testing.T) {
	path := fieldpath.MakePathOrDie
	held := fieldpath.NewSet(path("spec"), path("spec", "ports"), path("spec", "other"), path("spec", "type"))
	wanted := fieldpath.NewSet(path("spec", "ports", "port"), path("spec", "type"))
	if got, want := unnamed(held, wanted), fieldpath.NewSet(path("spec", "other")); !got.Equals(want) {
		t.Errorf("unnamed are %s", got)
	}
}

// What is wanted must be there. More may be, but neither in a list nor in a map of
// texts: a selector with one label more selects others.
func TestCoversWanted(t *testing.T) {
	type m = map[string]any
	type l = []any
	for name, c := range map[string]struct {
		live, want any
		covers     bool
	}{
		"the same":                 {m{"a": int64(1)}, m{"a": int64(1)}, true},
		"another value":            {m{"a": int64(2)}, m{"a": int64(1)}, false},
		"more in a structure":      {m{"a": int64(1), "b": int64(2)}, m{"a": int64(1)}, true},
		"less in a structure":      {m{}, m{"a": int64(1)}, false},
		"less, and it is a zero":   {m{}, m{"a": int64(0)}, true},
		"a structure that is none": {nil, m{"a": int64(1)}, false},
		"a structure of zeros":     {nil, m{"a": m{"b": ""}}, true},
		"a list for a structure":   {l{}, m{"a": ""}, false},
		"more in a selector":       {m{"app": "x", "also": "y"}, m{"app": "x"}, false},
		"the same selector":        {m{"app": "x"}, m{"app": "x"}, true},
		"more in a list":           {l{"a", "b"}, l{"a"}, false},
		"less in a list":           {l{"a"}, l{"a", "b"}, false},
		"the same list":            {l{m{"a": int64(1), "b": "c"}}, l{m{"a": int64(1)}}, true},
		"no list":                  {nil, l{"a"}, false},
		"no list for an empty one": {nil, l{}, true},
		"a text for an empty list": {"", l{}, false},
		"a zero that is left out":  {nil, false, true},
		"a one that is left out":   {nil, int64(1), false},
		"something and not a zero": {"x", "", false},
	} {
		if coversWanted(c.live, c.want) != c.covers {
			t.Errorf("%s: %v", name, !c.covers)
		}
	}
}

// An entry of a subresource is nobody's to take from, an own entry is not kept
// twice, and one that holds nothing more goes.
func TestEntriesTakenOver(t *testing.T) {
	entry := func(manager string, how metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: how, Subresource: subresource, APIVersion: "v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	set := func(text string) *fieldpath.Set {
		s := fieldpath.NewSet()
		if err := s.FromJSON(strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	const theirs, ours = `{"f:spec":{"f:type":{}}}`, `{"f:spec":{"f:ports":{}}}`
	f := fieldComparison{Owned: set(ours), Foreign: set(theirs)}
	after, err := f.entriesTakenOver([]metav1.ManagedFieldsEntry{
		entry("kubectl", metav1.ManagedFieldsOperationUpdate, "", theirs),
		entry("both", metav1.ManagedFieldsOperationUpdate, "", `{"f:spec":{"f:type":{},"f:x":{}}}`),
		entry("kubectl", metav1.ManagedFieldsOperationUpdate, "scale", theirs),
		entry(naming.FieldManager, metav1.ManagedFieldsOperationApply, "", ours),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range after {
		got = append(got, e.Manager+"/"+e.Subresource+" "+e.FieldsV1.String())
	}
	want := []string{
		`both/ {"f:spec":{"f:x":{}}}`, "kubectl/scale " + theirs, naming.FieldManager + `/ {"f:spec":{"f:ports":{},"f:type":{}}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	broken := entry("kubectl", metav1.ManagedFieldsOperationUpdate, "", "{")
	if _, err := f.entriesTakenOver([]metav1.ManagedFieldsEntry{broken}); err == nil || !strings.Contains(err.Error(), "managed fields of kubectl") {
		t.Errorf("an entry that cannot be read: %v", err)
	}
}
