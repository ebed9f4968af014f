package report

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// reportCorrection tells which manager had changed what was just put back, and counts
// it. A change that came with a commit is no drift, nor is one that follows from
// another: the disruption budget goes with the number of members.
func (r *Reporter) reportCorrection(v *observe.View, a action.Action) {
	kind, name, d, deleted := corrected(v, a)
	manager := d.Manager
	if manager == "" {
		revived := r.revived.Get(v.Cluster.Key())
		undone := r.Fights.Find(v.Cluster.Key(), kind+"/"+name, d) != nil
		if kind == "" || d.Own || undone || !v.Applied() || revived {
			return
		}
		manager = unknown
	} else {
		r.Fights.Corrected(v.Cluster.Key(), kind+"/"+name, d, r.Now())
	}
	r.Metrics.corrected(v.Cluster, kind, manager, r.Now())
	what := "had changed " + strings.Join(drift.Texts(d.Changes), ", ")
	if deleted {
		what = "had deleted it"
	}
	if manager == unknown {
		manager = "an unknown writer"
	}
	message := fmt.Sprintf("%s %s: %s %s; Git wins", kind, name, manager, what)
	r.Log.Warn("drift corrected", "cluster", v.Cluster.Key(), "object", kind+" "+name, "manager", manager, "change", what)
	r.event(v, corev1.EventTypeWarning, "DriftCorrected", message)
}

// Refused tells once that an object was not taken as quorate applies it, in the API server's words.
func (r *Reporter) Refused(v *observe.View, kind, name string, why state.Refusal) {
	key, object := v.Cluster.Key(), kind+" "+name
	r.Said.Clear(key, TopicStep)
	r.Metrics.notTaken(v.Cluster, kind)
	if !r.Said.Changed(key, "refused "+object, WithoutNumbers(why.Problem)) {
		return
	}
	r.Log.Warn("object not taken", "cluster", key, "object", object, "error", why.Problem, "again", TimeOrNever(why.Until))
	r.event(v, corev1.EventTypeWarning, "ObjectRefused", fmt.Sprintf("%s is not taken as quorate applies it: %s", object, why.Problem))
}

// corrected is the object that an action has put back, and how it had drifted; no
// kind for an action that puts nothing back.
func corrected(v *observe.View, a action.Action) (kind, name string, d drift.Drift, deleted bool) {
	switch a := a.(type) {
	case action.ApplyObject:
		d, there := v.Drift(a.ObjectKind, a.Name)
		return a.ObjectKind, a.Name, d, !there
	case action.ResizeSet: // of the number of members itself, nobody holds anything
		if d, _ := v.Drift("StatefulSet", v.Cluster.Metadata.Name); d.Manager != "" {
			return "StatefulSet", v.Cluster.Metadata.Name, d, false
		}
		return "", "", drift.Drift{}, false
	case action.CreateSet:
		return "StatefulSet", v.Cluster.Metadata.Name, drift.Drift{}, true
	default:
		return "", "", drift.Drift{}, false
	}
}
