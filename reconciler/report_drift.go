package reconciler

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/plan/action"
)

// reportCorrection tells who had changed what was just put back, and counts it. A
// change that came with a commit is nobody's, nor is one that follows from another:
// the disruption budget goes with the number of members.
func (r *Reporter) reportCorrection(v *view, a action.Action) {
	kind, name, d, deleted := corrected(v, a)
	manager := d.Manager
	if manager == "" {
		_, revived := r.revived.Load(v.cluster.Key())
		if kind == "" || d.Own || !v.applied() || revived {
			return
		}
		manager = managerUnknown
	} else {
		r.fights.Corrected(v.cluster.Key(), kind+"/"+name, d, r.now())
	}
	r.metrics.corrected(v.cluster, kind, manager)
	what := "had changed " + strings.Join(d.Fields, ", ")
	if deleted {
		what = "had deleted it"
	}
	if manager == managerUnknown {
		manager = "somebody"
	}
	message := fmt.Sprintf("%s %s: %s %s; Git wins", kind, name, manager, what)
	r.log.Warn("drift corrected", "cluster", v.cluster.Key(), "message", message)
	r.event(v, corev1.EventTypeWarning, "DriftCorrected", message)
}

// corrected is the object that an action has put back, and how it had drifted; no
// kind for an action that puts nothing back.
func corrected(v *view, a action.Action) (kind, name string, d drift.Drift, deleted bool) {
	switch a := a.(type) {
	case action.ApplyObject:
		d, there := v.drifts[a.ObjectKind+"/"+a.Name]
		return a.ObjectKind, a.Name, d, !there
	case action.CreateSet:
		return "StatefulSet", v.cluster.Metadata.Name, drift.Drift{}, true
	default:
		return "", "", drift.Drift{}, false
	}
}

// applied says whether what Git says was carried out before, so that whatever
// differs was changed beside it.
func (v *view) applied() bool {
	return v.record != nil && v.record.Applied != nil && v.record.Applied.SpecHash == v.desired.SpecHash
}
