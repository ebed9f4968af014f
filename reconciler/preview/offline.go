package preview

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Offline reports what the way from one revision to another would do, without asking
// any cluster. Only clusters that differ are listed.
func Offline(before, after Revision, options Options) (*Report, error) {
	report := NewReport(after.Set)
	report.Offline, report.Base, report.Head = true, before.Commit, after.Commit
	var err error
	if report.Others, err = CompareDocuments(before.Set, after.Set); err != nil {
		return nil, err
	}
	was, is := declared(before, after)
	unchanged := 0
	for _, key := range slices.Sorted(maps.Keys(merged(was, is))) {
		c, err := clusterOffline(was[key], is[key], options)
		if err != nil {
			return nil, err
		}
		if c.Change == Unchanged {
			unchanged++
			continue
		}
		report.Clusters = append(report.Clusters, c)
	}
	report.Count(unchanged)
	return report, nil
}

// declared returns the clusters of two revisions by key, with what is held because its
// document is broken in the second.
func declared(before, after Revision) (was, is map[string]*desired.Cluster) {
	was = clustersByKey(desired.Clusters(before.Set, before.Commit, nil))
	is = clustersByKey(desired.Clusters(after.Set, after.Commit, desired.Origins(before.Set, nil)))
	return was, is
}

func clustersByKey(clusters []desired.Cluster) map[string]*desired.Cluster {
	found := make(map[string]*desired.Cluster, len(clusters))
	for i := range clusters {
		found[clusters[i].Key()] = &clusters[i]
	}
	return found
}

// merged has the keys of both.
func merged[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// clusterOffline reports what a change of a cluster's document would do, without asking
// any cluster. before and after are what two revisions declare; nil where one does not
// declare the cluster. It supposes a healthy cluster that is exactly what before says,
// and asks the planner that the daemon asks. What that cannot answer is in Unknown.
func clusterOffline(before, after *desired.Cluster, options Options) (ClusterReport, error) {
	r := newSupposer(options)
	switch {
	case after == nil:
		return orphaned(*before), nil
	case len(after.Problems) > 0:
		d := declaredBy(*after, options)
		report := newClusterReport(d, plan.Make(d, state.Observed{}, r.now()), 0, 0)
		report.Change = Held
		return report, nil
	case before == nil:
		return r.planNew(*after)
	case len(before.Problems) > 0:
		report := newClusterReport(declaredBy(*after, options), decision.Plan{}, 0, 0)
		report.Change = Changed
		report.Unknown = []string{"the state of a cluster whose file had errors at the base, and so its steps"}
		return report, nil
	}
	if w := after.Restore; w != nil && w.Former != nil && before.Spec.State != schema.StateDeleted && before.Restore == nil {
		after = &desired.Cluster{EtcdCluster: *w.Former, Commit: after.Commit} // the restore comes when that is over
	}
	return r.planChange(*before, *after)
}

// orphaned is the report on a cluster that is no longer in Git.
func orphaned(before desired.Cluster) ClusterReport {
	report := newClusterReport(state.Desired{Namespace: before.Metadata.Namespace, Name: before.Metadata.Name}, decision.Plan{}, 0, 0)
	report.Change = Removed
	what := "it is left running as an orphan, and is no longer reconciled"
	if before.Spec.State == schema.StateDeleted {
		what = "it is no longer reconciled: a deletion that is not over yet stops where it is, and what it keeps stays"
	}
	report.Warnings = []string{"no file names this cluster any more: " + what + "; absence from Git never deletes"}
	return report
}

// supposedRecord is the record of a cluster that is what its file says.
func supposedRecord(c desired.Cluster) *record.Record {
	rec := record.New("")
	rec.ClusterID = "(assumed)"
	for i := range int(c.Spec.Replicas) {
		name := naming.Member(c.Metadata.Name, int32(i))
		rec.Members[name] = "(" + name + ")"
	}
	return &rec
}

// nothingLeft are the objects of a cluster that was deleted.
func nothingLeft(objects []state.Object) []state.Object {
	missing := slices.DeleteFunc(objects, func(o state.Object) bool { return o.Kind == "StatefulSet" })
	for i := range missing {
		missing[i].State = state.ObjectMissing
	}
	return missing
}

// planNew plans a cluster of which nothing exists.
func (r *supposer) planNew(c desired.Cluster) (ClusterReport, error) {
	v, err := r.observer.Suppose(c, observe.Supposition{})
	if err != nil {
		return ClusterReport{}, err
	}
	m, err := v.Manifests()
	if err != nil {
		return ClusterReport{}, err
	}
	for _, o := range m.Objects() {
		if o.Kind != "StatefulSet" {
			v.Observed.Objects = append(v.Observed.Objects, state.Object{Kind: o.Kind, Name: o.Name, State: state.ObjectMissing})
		}
	}
	report := newClusterReport(v.Desired, plan.Make(v.Desired, v.Observed, r.now()), 0, 0)
	report.Change = Added
	report.Unknown = append(slices.Concat(secretUnknowns(c), fleetUnknowns(c, nil)),
		"whether something of the new cluster's name exists already: nothing is taken over, and volumes that are left of an earlier cluster hold it",
		"whether the nodes have room for the members, and the storage class gives them volumes")
	return report, nil
}

// planChange plans the way from one file to another.
func (r *supposer) planChange(before, after desired.Cluster) (ClusterReport, error) {
	changes, err := fieldChanges(before.EtcdCluster, after.EtcdCluster)
	if err != nil {
		return ClusterReport{}, fmt.Errorf("plan %s: %w", after.Key(), err)
	}
	if len(changes) == 0 {
		return ClusterReport{Namespace: after.Metadata.Namespace, Name: after.Metadata.Name, Change: Unchanged}, nil
	}
	was, err := r.observer.Suppose(before, observe.Supposition{})
	if err != nil {
		return ClusterReport{}, err
	}
	m, err := was.Manifests()
	if err != nil {
		return ClusterReport{}, err
	}
	set := &appsv1.StatefulSet{}
	if err := made(was.Cluster.Key(), m.StatefulSet, set); err != nil {
		return ClusterReport{}, err
	}
	v, err := r.observer.Suppose(after, observe.Supposition{Set: set, Record: supposedRecord(before), Observed: outlook.Assume(was.Desired, r.now(), 0)})
	if err != nil {
		return ClusterReport{}, err
	}
	if v.Observed.Objects, err = differences(was, v); err != nil {
		return ClusterReport{}, err
	}
	immutable, err := r.immutableFields(was, v)
	if err != nil {
		return ClusterReport{}, err
	}
	report := r.reportFor(was, v, immutable)
	report.Changes, report.Change = changes, Changed
	report.Warnings = append(report.Warnings, driftChanges(before.Spec.Drift, after.Spec.Drift)...)
	return report, nil
}

// immutableFields lists what v asks for and what was made for was cannot take.
func (r *supposer) immutableFields(was, v *observe.View) ([]state.Change, error) {
	m, err := was.Manifests()
	if err != nil {
		return nil, err
	}
	services := map[string]*corev1.Service{}
	for _, want := range []*corev1ac.ServiceApplyConfiguration{m.Client, m.Headless} {
		services[*want.Name] = &corev1.Service{}
		if err := made(was.Cluster.Key(), want, services[*want.Name]); err != nil {
			return nil, err
		}
	}
	before, after := was.Cluster.EtcdCluster, v.Certified()
	changes := observe.Immutable(v.Set, services, after)
	domain := r.observer.Options.Render.ClusterDomain
	if from, to := naming.ClusterDomain(before, domain), naming.ClusterDomain(after, domain); from != to && naming.ManagesTLS(before) && naming.ManagesTLS(after) {
		changes = append(changes, state.Change{Field: state.FieldDomain, Text: fmt.Sprintf("spec.network.clusterDomain (%s to %s)", from, to)})
	}
	return changes, nil
}

// reportFor plans for every member that may lead. The steps that are shown are
// those for the first.
func (r *supposer) reportFor(was, v *observe.View, immutable []state.Change) ClusterReport {
	var shown decision.Plan
	var moves []int
	// A healthy cluster is no place to plan a recovery in.
	recovery := v.Desired.Spec.Recovery
	v.Desired.Spec.Recovery = schema.RecoverySpec{}
	for leader := range was.Desired.Spec.Replicas {
		o := outlook.Assume(was.Desired, r.now(), leader)
		o.Objects, o.Transport = slices.Clone(v.Observed.Objects), v.Observed.Transport
		if o.Set != nil {
			o.Set.Immutable = immutable
		} else {
			o.Objects = nothingLeft(o.Objects)
		}
		p := plan.Make(v.Desired, o, r.now())
		if leader == 0 {
			shown = p
		}
		moves = append(moves, leaderMoves(p.Steps))
	}
	report := newClusterReport(v.Desired, shown, slices.Min(moves), slices.Max(moves))
	report.Unknown = append(unknowns(shown.Steps), secretUnknowns(v.Cluster)...)
	if source := recovery.Source(); source != "" {
		report.Unknown = append(report.Unknown, fmt.Sprintf("whether cluster %s has lost its quorum, and can be recovered from %s: with a quorum, spec.recovery is refused", recovery.ClusterID, source))
	}
	report.Unknown = append(report.Unknown, fleetUnknowns(v.Cluster, shown.Steps)...)
	if len(was.Cluster.Spec.Network.IPFamilies) == 0 && len(v.Cluster.Spec.Network.IPFamilies) > 0 {
		report.Unknown = append(report.Unknown, "which address family the Services have: the first one cannot be changed")
	}
	return report
}

// fleetUnknowns is what only the other clusters and the record can tell.
func fleetUnknowns(c desired.Cluster, steps []decision.Step) []string {
	var texts []string
	if wave := c.Spec.Upgrade.Wave; wave > 0 && len(decision.Restarts(steps)) > 0 {
		texts = append(texts, fmt.Sprintf("when wave %d begins: every cluster of a lower wave must be what its file says before, and healthy, and its checks must hold", wave))
	}
	if owner := c.Spec.TakeOver; owner != "" {
		texts = append(texts, fmt.Sprintf("whether the cluster still belongs to %s: only from that owner is it taken over", owner))
	}
	return texts
}

// secretUnknowns is what only Secrets that quorate does not make can tell.
func secretUnknowns(c desired.Cluster) []string {
	if !naming.UsesTLS(c.EtcdCluster) || naming.ManagesTLS(c.EtcdCluster) {
		return nil
	}
	return []string{"whether the Secrets of spec.tls.secrets are there, and their certificates good"}
}

// unknowns is what decides beside the two files.
func unknowns(steps []decision.Step) []string {
	texts := []string{"whether the base has been applied: what is in progress is finished or abandoned first"}
	if len(steps) == 0 {
		return texts
	}
	texts = append(texts, "the members' health and alarms: while a member is not well, nothing is restarted")
	if len(decision.Restarts(steps)) > 0 {
		texts = append(texts,
			"which etcd the members really report: every hop is judged by that",
			"which member leads: the leadership moves before its member restarts, and a backup is read through it",
			"whether the nodes have room for a member that restarts, and can pull its image")
	}
	for _, s := range steps {
		if _, flush := s.Action.(action.ForceSnapshot); flush {
			texts = append(texts, "whether a member's log may hold entries of 3.5: where quorate knows that none does, the roll that comes before 3.7 is left out")
		}
		if _, backup := s.Action.(action.TakeBackup); backup {
			texts = append(texts,
				"whether the store takes a backup, and whether one of the last minutes is there already",
				"whether authentication was switched on beside Git: then quorate's certificate must be that of user root, and 3.4 to 3.5 waits until it is off")
		}
	}
	return texts
}

// made is an object as Kubernetes would have made it.
func made(key string, want, object any) error {
	text, err := json.Marshal(want)
	if err == nil {
		err = json.Unmarshal(text, object)
	}
	if err != nil {
		return fmt.Errorf("plan %s: suppose its %T: %w", key, object, err)
	}
	return nil
}

// differences are the objects of v as they would be found by an owner that wants those
// of another view. The StatefulSet's template is left out: its change is a roll.
func differences(v, wanted *observe.View) ([]state.Object, error) {
	had, err1 := v.Manifests()
	want, err2 := wanted.Manifests()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	var objects []state.Object
	made := had.Objects()
	for i, want := range want.Objects() {
		changes, err := fieldChanges(made[i].Object, want.Object)
		if err != nil {
			return nil, fmt.Errorf("plan %s: compare %s %s: %w", v.Cluster.Key(), want.Kind, want.Name, err)
		}
		object := state.Object{Kind: want.Kind, Name: want.Name, State: state.ObjectInSync}
		var fields []string
		for _, c := range changes {
			if !strings.HasPrefix(c.Field, "spec.template") && !strings.HasPrefix(c.Field, "spec.updateStrategy") {
				fields = append(fields, c.Field)
			}
		}
		if len(fields) > 0 {
			object.State, object.Detail = state.ObjectDrifted, strings.Join(fields, ", ")
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// supposer plans without a cluster.
type supposer struct {
	observer *observe.Observer
	now      func() time.Time
}

func newSupposer(o Options) *supposer {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &supposer{
		observer: observe.Offline(observe.Options{Render: o.Render, BackupURL: o.BackupURL, Owner: o.Owner}, o.Now),
		now:      o.Now,
	}
}
