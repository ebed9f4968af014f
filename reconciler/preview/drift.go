package preview

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/schema"
)

// driftChanges says what a change of spec.drift does: it makes no step, and decides what
// happens at the next edit by hand.
func driftChanges(before, after schema.DriftSpec) []string {
	var texts []string
	from, to := cmp.Or(before.Mode, schema.DriftCorrect), cmp.Or(after.Mode, schema.DriftCorrect)
	switch {
	case from == to:
	case to == schema.DriftDetect:
		texts = append(texts, "drift is only reported from then on: what others change or delete of the Services, the PodDisruptionBudget and the StatefulSet stays as it is, and nothing new begins meanwhile")
	default:
		texts = append(texts, "drift is corrected from then on: what others have changed or deleted of the Services, the PodDisruptionBudget and the StatefulSet is put back")
	}
	for _, d := range after.Ignore {
		if !slices.ContainsFunc(before.Ignore, sameTreatment(d)) {
			texts = append(texts, fmt.Sprintf("%s of the %s for clients is %s", d.Path, d.Kind, left(d)))
		}
	}
	done := map[schema.DriftMode]string{schema.DriftCorrect: "put back", schema.DriftDetect: "reported"}[to]
	for _, d := range before.Ignore {
		if !slices.ContainsFunc(after.Ignore, sameField(d)) {
			texts = append(texts, fmt.Sprintf("%s of the %s for clients is drift again from then on: what others have set there is %s", d.Path, d.Kind, done))
		}
	}
	return texts
}

// left says what becomes of a field that others may set.
func left(d schema.IgnoredDrift) string {
	if d.Report {
		return "left as others set it from then on: it is reported as drift, and never put back"
	}
	return "no drift from then on: others may set it, and it is neither reported nor put back"
}

// sameTreatment reports whether another entry does the same with the same field.
func sameTreatment(a schema.IgnoredDrift) func(schema.IgnoredDrift) bool {
	return func(b schema.IgnoredDrift) bool { return sameField(a)(b) && a.Report == b.Report }
}

func sameField(a schema.IgnoredDrift) func(schema.IgnoredDrift) bool {
	return func(b schema.IgnoredDrift) bool { return a.Kind == b.Kind && a.Path == b.Path }
}
