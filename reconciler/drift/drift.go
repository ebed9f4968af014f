// Package drift tells how a live object differs from what quorate wants of it, by field
// ownership: what differs, who did it last, and whether another writer does it again and again.
package drift

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/applyconfigurations"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/quorate/quorate/reconciler/naming"
)

// Drift is how a live object differs from what quorate wants of it. What has no
// owner, such as the API server's defaults, is no drift, and neither is what others
// add outside the spec.
type Drift struct {
	// Fields are the paths that differ, sorted: changed, removed or added by
	// another writer, newly wanted, or no longer wanted.
	Fields []string
	// Changes are how these fields differ, in the same order.
	Changes []Change
	// Manager is the one that took a wanted field from quorate or added one last, "" if
	// none holds one: then the file has changed, or the field was removed.
	Manager string
	// Time is when Manager did so.
	Time time.Time
	// Own means that quorate still holds all that differs: it was not changed, and
	// what is wanted has changed.
	Own bool
	// Held means that no value differs: another writer holds fields with what is wanted.
	Held bool
	// wanted tells two versions of what is wanted of these fields apart.
	wanted string
	// Left are fields that others have set and that stay, because Git says so. They are no
	// part of the rest, and alone they are no drift that anything is done about.
	Left []Change
}

// Empty says that there is no drift.
func (d Drift) Empty() bool { return len(d.Fields) == 0 }

// And is the drift of two parts of one object.
func (d Drift) And(other Drift) Drift {
	d.Held = (d.Held || d.Empty()) && (other.Held || other.Empty())
	d.Own = d.Own && other.Empty() || other.Own && d.Empty() || d.Own && other.Own
	d.Fields, d.Changes, d.Left = slices.Concat(d.Fields, other.Fields), slices.Concat(d.Changes, other.Changes), slices.Concat(d.Left, other.Left)
	d.Manager, d.Time = cmp.Or(d.Manager, other.Manager), cmp.Or(d.Time, other.Time)
	d.wanted += other.wanted
	return d
}

// Service compares a Service with what quorate wants of it.
func Service(live *corev1.Service, want *corev1ac.ServiceApplyConfiguration) (Drift, error) {
	return Whole(live, want)
}

// Budget compares a PodDisruptionBudget with what quorate wants of it.
func Budget(live *policyv1.PodDisruptionBudget, want *policyv1ac.PodDisruptionBudgetApplyConfiguration) (Drift, error) {
	return Whole(live, want)
}

// StatefulSet compares a StatefulSet with what quorate wants of it: the pod
// template, whose change is a roll, apart from the rest, whose change is not. What
// others add to the template is of the rest: no roll may carry it to a member.
func StatefulSet(live *appsv1.StatefulSet, want *appsv1ac.StatefulSetApplyConfiguration) (template, rest Drift, err error) {
	f, err := compareFields(live, want)
	if err != nil {
		return Drift{}, Drift{}, err
	}
	inTemplate := func(p fieldpath.Path) bool {
		return len(p) > 1 && isField(p[0], "spec") && isField(p[1], "template") && !f.Foreign.Has(p)
	}
	template = f.drift(inTemplate)
	rest = f.drift(func(p fieldpath.Path) bool { return !inTemplate(p) })
	return template, rest, nil
}

// LiveObject is an object as a typed client returns it.
type LiveObject interface {
	runtime.Object
	metav1.Object
}

// Whole compares an object of any kind with what quorate wants of it.
func Whole(live LiveObject, want any) (Drift, error) {
	f, err := compareFields(live, want)
	if err != nil {
		return Drift{}, err
	}
	return f.drift(func(fieldpath.Path) bool { return true }), nil
}

// fieldComparison is what differs in one object.
type fieldComparison struct {
	// changed are wanted fields whose value is another one or none.
	changed *fieldpath.Set
	// lost are wanted fields that quorate does not own.
	lost *fieldpath.Set
	// surplus are fields that quorate owns and no longer wants, and foreign those
	// of the spec that others have added, or that stand there without an owner and
	// endanger members. Both go down to the leaves.
	surplus, Foreign *fieldpath.Set
	// left are those that others have added, too, and that stay.
	left *fieldpath.Set
	// owned is all that quorate owns, and others are the entries of everybody
	// else which manages the object.
	Owned  *fieldpath.Set
	others []metav1.ManagedFieldsEntry
	// live and want are what was compared.
	live, want *typed.TypedValue
}

// compareFields compares field by field, by the schema that server-side apply
// uses: it knows which lists have keys and which values are owned as a whole.
func compareFields(live LiveObject, want any) (fieldComparison, error) {
	name := fmt.Sprintf("compare %T %s/%s", live, live.GetNamespace(), live.GetName())
	liveValue, wantValue, err := typedPair(live, want)
	if err != nil {
		return fieldComparison{}, fmt.Errorf("%s: %w", name, err)
	}
	wanted, err := wantValue.ToFieldSet()
	if err != nil {
		return fieldComparison{}, fmt.Errorf("%s: list the wanted fields: %w", name, err)
	}
	diff, err := liveValue.Compare(wantValue)
	if err != nil {
		return fieldComparison{}, fmt.Errorf("%s: %w", name, err)
	}
	owned, others, err := SplitManagers(live.GetManagedFields())
	if err != nil {
		return fieldComparison{}, fmt.Errorf("%s: %w", name, err)
	}
	foreign, err := foreignFields(others, wanted)
	if err != nil {
		return fieldComparison{}, fmt.Errorf("%s: %w", name, err)
	}
	injected, err := injectedFields(liveValue, wanted, owned, others)
	if err != nil {
		return fieldComparison{}, fmt.Errorf("%s: %w", name, err)
	}
	foreign, left := split(foreign.Union(injected), wantValue)
	return fieldComparison{
		changed: reallyChanged(diff.Modified.Union(diff.Added).Leaves(), liveValue, wantValue),
		lost:    wanted.Leaves().Difference(owned.Leaves()),
		surplus: unnamed(owned, wanted),
		Foreign: foreign, left: left, Owned: owned, others: others, live: liveValue, want: wantValue,
	}, nil
}

// typedPair brings both sides into the schema's form.
func typedPair(live runtime.Object, want any) (liveValue, wantValue *typed.TypedValue, err error) {
	text, err := json.Marshal(want)
	if err != nil {
		return nil, nil, err
	}
	w := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(text, &w.Object); err != nil {
		return nil, nil, err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, nil, err
	}
	// Typed clients return objects without their kind.
	l := &unstructured.Unstructured{Object: object}
	l.SetGroupVersionKind(w.GroupVersionKind())
	for _, u := range []*unstructured.Unstructured{l, w} {
		// These identify the object, or are a precondition, and have no owner.
		for _, field := range []string{"name", "namespace", "uid", "resourceVersion", "managedFields"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(u.Object, "status") // which others write, as they like
	}
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	if liveValue, err = converter.ObjectToTyped(l); err != nil {
		return nil, nil, err
	}
	wantValue, err = converter.ObjectToTyped(w)
	if err != nil {
		return nil, nil, err
	}
	identity := fieldpath.NewSet(fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"))
	return liveValue.RemoveItems(identity), wantValue.RemoveItems(identity), nil
}

// SplitManagers separates what quorate applied from everybody else's entries.
func SplitManagers(entries []metav1.ManagedFieldsEntry) (owned *fieldpath.Set, others []metav1.ManagedFieldsEntry, err error) {
	owned = fieldpath.NewSet()
	for _, e := range entries {
		if !IsOwn(e) {
			others = append(others, e)
			continue
		}
		if owned, err = entryFields(e); err != nil {
			return nil, nil, err
		}
	}
	return owned, others, nil
}

// IsOwn reports whether an entry holds what quorate applied.
func IsOwn(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == naming.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

func entryFields(e metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if e.FieldsV1 == nil {
		return set, nil
	}
	if err := set.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
		return nil, fmt.Errorf("read the managed fields of %s: %w", e.Manager, err)
	}
	return set, nil
}

// foreignFields are the fields of the spec that others own and quorate does not
// name. A subresource adds none: through it go the status and the scale.
func foreignFields(others []metav1.ManagedFieldsEntry, wanted *fieldpath.Set) (*fieldpath.Set, error) {
	foreign := fieldpath.NewSet()
	for _, e := range others {
		if e.Subresource != "" {
			continue
		}
		held, err := entryFields(e)
		if err != nil {
			return nil, err
		}
		for p := range unnamed(held, wanted).All() {
			if isField(p[0], "spec") {
				foreign.Insert(p.Copy())
			}
		}
	}
	return foreign, nil
}

// unnamed are the fields that are not wanted, and of which no part is wanted.
func unnamed(fields, wanted *fieldpath.Set) *fieldpath.Set {
	rest := fieldpath.NewSet()
	for p := range fields.Difference(wanted).All() {
		inside := wanted
		for _, e := range p {
			inside = inside.WithPrefix(e)
		}
		if inside.Empty() {
			rest.Insert(p.Copy())
		}
	}
	return rest
}

// TakeOver is a merge patch that makes quorate the owner of what others have
// added to the spec, nil when there is nothing. Server-side apply removes only
// what its manager owns. The API server refuses the patch for another version.
func TakeOver(live LiveObject, want any) ([]byte, error) {
	f, err := compareFields(live, want)
	if err != nil || f.Foreign.Empty() {
		return nil, err
	}
	entries, err := f.entriesTakenOver(live.GetManagedFields())
	if err != nil {
		return nil, fmt.Errorf("take over fields of %T %s/%s: %w", live, live.GetNamespace(), live.GetName(), err)
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "managedFields": entries,
	}})
}

// entriesTakenOver moves the foreign fields from all others to quorate's entry.
func (f fieldComparison) entriesTakenOver(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	own := metav1.ManagedFieldsEntry{Manager: naming.FieldManager, Operation: metav1.ManagedFieldsOperationApply}
	var after []metav1.ManagedFieldsEntry
	for _, e := range entries {
		if IsOwn(e) {
			own = e
			continue
		}
		if e.Subresource == "" {
			// Until its first apply, quorate has no entry to take these from.
			own.APIVersion, own.FieldsType = cmp.Or(own.APIVersion, e.APIVersion), cmp.Or(own.FieldsType, e.FieldsType)
			held, err := entryFields(e)
			if err != nil {
				return nil, err
			}
			if e, err = withFields(e, held.Difference(f.Foreign)); err != nil {
				return nil, err
			}
		}
		if e.FieldsV1 != nil {
			after = append(after, e)
		}
	}
	own, err := withFields(own, f.Owned.Union(f.Foreign))
	return append(after, own), err
}

// withFields is the entry with other fields, nil if there are none.
func withFields(e metav1.ManagedFieldsEntry, fields *fieldpath.Set) (metav1.ManagedFieldsEntry, error) {
	e.FieldsV1 = nil
	if fields.Empty() {
		return e, nil
	}
	text, err := fields.ToJSON()
	if err != nil {
		return e, fmt.Errorf("write the managed fields of %s: %w", e.Manager, err)
	}
	e.FieldsV1 = metav1.NewFieldsV1(string(text))
	return e, nil
}

// reallyChanged leaves out differences that are none: a zero that the API server
// does not record, and a default that it added inside a value which is owned
// as a whole.
func reallyChanged(candidates *fieldpath.Set, live, want *typed.TypedValue) *fieldpath.Set {
	changed := fieldpath.NewSet()
	for p := range candidates.All() {
		only := fieldpath.NewSet(p)
		if !coversWanted(plainValue(live.ExtractItems(only)), plainValue(want.ExtractItems(only))) {
			changed.Insert(p.Copy())
		}
	}
	return changed
}

func plainValue(v *typed.TypedValue) any {
	if v.AsValue() == nil {
		return nil
	}
	return v.AsValue().Unstructured()
}

// coversWanted reports whether live has all that want has. More is allowed in a
// structure, not in a list and not in a map of strings such as a selector.
func coversWanted(live, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return live == nil && isZero(want)
		}
		if allStrings(w) && len(l) != len(w) {
			return false
		}
		for key := range w {
			if !coversWanted(l[key], w[key]) {
				return false
			}
		}
		return true
	case []any:
		l, ok := live.([]any)
		return (ok && slices.EqualFunc(l, w, coversWanted)) || (live == nil && isZero(want))
	default:
		return reflect.DeepEqual(live, want) || (live == nil && isZero(want))
	}
}

// isZero reports whether a JSON value holds nothing but zeros, which Go leaves out
// when it writes an object.
func isZero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, inner := range v {
			if !isZero(inner) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(v, func(inner any) bool { return !isZero(inner) })
	default:
		return reflect.ValueOf(v).IsZero()
	}
}

func allStrings(m map[string]any) bool {
	for _, v := range m {
		if _, ok := v.(string); !ok {
			return false
		}
	}
	return len(m) > 0
}

func isField(e fieldpath.PathElement, name string) bool {
	return e.FieldName != nil && *e.FieldName == name
}

// drift reports what differs among the paths that concern accepts.
func (f fieldComparison) drift(concerns func(fieldpath.Path) bool) Drift {
	var d Drift
	taken, differing, valued := fieldpath.NewSet(), fieldpath.NewSet(), false
	whole := f.surplus.Union(f.Foreign)
	for p := range f.changed.Union(f.lost).Union(whole).All() {
		if !concerns(p) {
			continue
		}
		differing.Insert(p.Copy())
		if !isInside(p, whole) {
			d.Changes = append(d.Changes, f.change(p))
		}
		valued = valued || f.changed.Has(p) || whole.Has(p)
		if f.taken(p) {
			taken.Insert(p.Copy())
		}
	}
	for p := range f.left.All() {
		if concerns(p) && !isInside(p, f.left) {
			d.Left = append(d.Left, f.change(p))
		}
	}
	for _, list := range [][]Change{d.Changes, d.Left} {
		slices.SortFunc(list, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	}
	for _, c := range d.Changes {
		d.Fields = append(d.Fields, c.Path)
	}
	if !d.Empty() {
		d.wanted = fmt.Sprint(plainValue(f.want.ExtractItems(differing)))
	}
	d.Manager, d.Time = LastHolder(f.others, taken)
	d.Own, d.Held = !d.Empty() && taken.Empty(), !d.Empty() && !valued
	return d
}

// isInside reports whether the path lies within one of the set: of a variable or a
// container that is not wanted, its name is enough.
func isInside(p fieldpath.Path, set *fieldpath.Set) bool {
	for n := 1; n < len(p); n++ {
		if set.Has(p[:n]) {
			return true
		}
	}
	return false
}

// LastHolder is the last writer of those that hold one of the fields.
func LastHolder(entries []metav1.ManagedFieldsEntry, fields *fieldpath.Set) (manager string, at time.Time) {
	for _, e := range entries {
		held, err := entryFields(e)
		if err != nil || held.Intersection(fields).Empty() {
			continue
		}
		var when time.Time
		if e.Time != nil {
			when = e.Time.Time
		}
		if manager == "" || when.After(at) {
			manager, at = e.Manager, when
		}
	}
	return manager, at
}
