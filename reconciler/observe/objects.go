package observe

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// describeObjects compares the services, the budget and, apart from its template,
// the StatefulSet with what is wanted of them.
func (o *Observer) describeObjects(v *View, g gathered) error {
	v.Observed.Objects, v.Drifts = g.foreign, map[ObjectName]drift.Drift{}
	if len(v.Cluster.Problems) > 0 || len(g.foreign) > 0 {
		return nil
	}
	// No closure below refers to g, which would be copied to the heap for it.
	name, budget := v.Cluster.Metadata.Name, g.budget
	headless, client := g.services[naming.HeadlessService(name)], g.services[naming.ClientService(name)]
	for _, next := range []struct {
		kind, name string
		live       metav1.Object
		drift      func(manifests.Manifests) (drift.Drift, error)
	}{
		{"Service", naming.HeadlessService(name), orNil(headless), func(m manifests.Manifests) (drift.Drift, error) { return drift.Service(headless, m.Headless) }},
		{"Service", naming.ClientService(name), orNil(client), func(m manifests.Manifests) (drift.Drift, error) { return drift.Service(client, m.Client) }},
		{"PodDisruptionBudget", name, orNil(budget), func(m manifests.Manifests) (drift.Drift, error) { return drift.Budget(budget, m.PDB) }},
	} {
		object, err := o.compare(v, next.kind, next.name, next.live, next.drift)
		if err != nil {
			return err
		}
		v.Observed.Objects = append(v.Observed.Objects, object)
	}
	if err := o.describeSetDrift(v); err != nil {
		return err
	}
	v.leave()
	return nil
}

// leave marks what others have changed and the mode Detect leaves so. What still is as
// quorate made it, and differs because Git does, is applied; and what is missing is made as
// long as no member runs, or the cluster was never yet what Git says.
func (v *View) leave() {
	rec := v.Observed.Record
	if v.Cluster.Spec.Drift.Mode != schema.DriftDetect || !rec.Formed() {
		return
	}
	begun := rec.Applied != nil && len(v.Observed.Pods) > 0
	if v.Set == nil && begun {
		v.Observed.Objects = append(v.Observed.Objects, state.Object{Kind: "StatefulSet", Name: v.Cluster.Metadata.Name, State: state.ObjectMissing})
	}
	for i := range v.Observed.Objects {
		switch o := &v.Observed.Objects[i]; {
		case o.State == state.ObjectDrifted:
			d, _ := v.Drift(o.Kind, o.Name)
			o.Left = !d.Own && !d.Held && (d.Manager != "" || v.Applied() && !onlyLabels(d))
		case o.State == state.ObjectMissing && begun:
			o.Left, o.Detail = true, "it was deleted"
		}
	}
}

// orNil turns a nil pointer into a nil interface.
func orNil[T any, P interface {
	*T
	metav1.Object
}](p P) metav1.Object {
	if p == nil {
		return nil
	}
	return p
}

// compare describes one object. The answer for two versions that were compared
// before is kept: at steady state nothing is compared twice.
func (o *Observer) compare(v *View, kind, name string, live metav1.Object, compared func(manifests.Manifests) (drift.Drift, error)) (state.Object, error) {
	cluster, key := v.Cluster.Key(), kind+"/"+name
	object := state.Object{Kind: kind, Name: name, State: state.ObjectMissing, Refused: o.Fights.Refusal(cluster, key, v.Cluster.Digest)}
	if live == nil {
		return object, nil
	}
	versions := drift.Versions{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), Wanted: v.wanted}
	d, known := o.drifts.Get(cluster, key, versions)
	if !known {
		m, err := v.Manifests()
		if err != nil {
			return object, err
		}
		if d, err = compared(m); err != nil {
			return object, err
		}
		o.drifts.Put(cluster, key, versions, d)
	}
	object.State, v.Drifts[ObjectName{kind, name}] = state.ObjectInSync, d
	if !d.Empty() {
		object.State, object.Detail, object.ChangedAt = state.ObjectDrifted, drift.Describe(d), d.Time
		object.Fight, object.Weight = o.Fights.Find(cluster, key, d), drift.Weigh(kind, d)
	}
	return object, nil
}

// describeSetDrift finds drift of the StatefulSet that is no roll.
func (o *Observer) describeSetDrift(v *View) error {
	if v.Set == nil {
		return nil
	}
	rolling := v.Set.Spec.Template.Annotations[naming.AnnotationTemplateHash] != v.TemplateHash
	object, err := o.compare(v, "StatefulSet", v.Set.Name, v.Set, func(m manifests.Manifests) (drift.Drift, error) {
		template, d, err := drift.StatefulSet(v.Set, m.StatefulSet)
		if !rolling {
			// The same hash but another content: the template was edited.
			d = d.And(template)
		}
		return d, err
	})
	if err != nil {
		return err
	}
	v.Observed.Objects = append(v.Observed.Objects, object)
	return nil
}

// onlyLabels reports whether nothing but labels differs, which a commit changes without another
// spec: where no one holds them, it cannot be told from one that was removed.
func onlyLabels(d drift.Drift) bool {
	return !slices.ContainsFunc(d.Fields, func(f string) bool { return !strings.HasPrefix(f, ".metadata.labels") })
}
