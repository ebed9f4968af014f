package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/stalled"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// readable leaves a cluster alone whose file cannot be trusted.
func readable(s *situation.Situation) verdict.Verdict {
	if len(s.Desired.Problems) == 0 {
		return verdict.Pass()
	}
	return verdict.Refuse(
		"the file of this cluster has errors, so the cluster is left unchanged: "+strings.Join(s.Desired.Problems, "; "),
		"fix the file in a new commit")
}

// ownership never changes what is foreign: an object, or volumes and pods left
// behind by an earlier cluster of the same name.
func ownership(s *situation.Situation) verdict.Verdict {
	for _, obj := range s.Observed.Objects {
		if obj.State == state.ObjectForeign {
			return verdict.Refuse(
				fmt.Sprintf("%s %s exists and is not quorate's (%s)", obj.Kind, obj.Name, obj.Detail),
				"rename the cluster, or remove that object")
		}
	}
	begins := s.Desired.Spec.State != schema.StateDeleted || s.Desired.Restore != nil
	if !begins || s.Observed.Record != nil || s.Observed.Set != nil || s.Observed.RecordProblem != "" {
		return verdict.Pass()
	}
	restore := "restore its record, ConfigMap " + naming.Record(s.Desired.Name) + ", from a backup of the Kubernetes API, which says whose data that is; "
	volumes := s.Observed.Volumes
	if i := slices.IndexFunc(volumes, func(v state.Volume) bool { return !v.Terminating }); i >= 0 {
		return verdict.Refuse(
			fmt.Sprintf("volume claim %s exists, but there is no record of a cluster %s: its data may be the only copy", volumes[i].Claim, s.Desired.Name),
			"rename the cluster; or "+restore+
				"or set the reclaim policy of the volumes behind its claims to Retain and put the claims out of the way: what is on them stays")
	}
	for i := range s.Observed.Pods {
		pod := &s.Observed.Pods[i]
		if !pod.Terminating {
			return verdict.Refuse(
				fmt.Sprintf("pod %s exists, but there is no record of a cluster %s: a new one of that name would take it over", pod.Name, s.Desired.Name),
				"rename the cluster; or "+restore+"or delete pod "+pod.Name+", where nothing is needed of what runs in it").At(pod.Name)
		}
	}
	switch {
	case len(s.Observed.Pods) > 0:
		pod := &s.Observed.Pods[0]
		return stalled.Gone(s, pod, "pod "+pod.Name+" of an earlier cluster shuts down")
	case len(volumes) > 0:
		return stalled.Claim(s, &volumes[0], "volume claim "+volumes[0].Claim+" of an earlier cluster is being deleted")
	}
	return verdict.Pass()
}

// record refuses to guess about a live cluster that has lost its record.
func record(s *situation.Situation) verdict.Verdict {
	if s.Observed.RecordProblem != "" {
		return verdict.Refuse("the record of the cluster cannot be used: "+s.Observed.RecordProblem,
			"restore ConfigMap "+naming.Record(s.Desired.Name)+" from a backup of the Kubernetes API")
	}
	if s.Observed.Record == nil && s.Observed.Set != nil {
		return verdict.Refuse(
			fmt.Sprintf("StatefulSet %s exists, but its record (ConfigMap %s) is gone", s.Desired.Name, naming.Record(s.Desired.Name)),
			"restore the ConfigMap; quorate never makes up the identity of a live cluster")
	}
	return verdict.Pass()
}
