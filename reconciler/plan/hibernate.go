package plan

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/objects"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/stalled"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// hibernate puts the members of a healthy cluster to sleep: after a backup, and
// between two rolls, because members that wake all start at once and must all
// start as what they were.
func hibernate(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Desired.Spec.State != schema.StateHibernated || s.RollOpen() {
		return verdict.Pass()
	}
	if v := backupFirst(s, s.Desired.Spec.Upgrade.Backup, backupNeed{
		what: "the hibernation", setting: "spec.upgrade.backup", purpose: state.ForHibernation,
		why: "hibernation", reason: "before the members sleep, so that the data is in two places",
	}); !v.Silent() {
		return onCompared(s, v)
	}
	return onCompared(s, verdict.Do(action.Hibernate{}, "spec.state is Hibernated; the volumes are kept unchanged"))
}

// hibernated keeps a cluster asleep, or wakes it. While it sleeps there is no member
// to ask, so nothing below has anything to say, but who changes an object.
func hibernated(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || !s.Observed.Record.Hibernated {
		return verdict.Pass()
	}
	if s.Desired.Spec.State != schema.StateHibernated {
		return verdict.Do(action.Wake{}, "spec.state is no longer Hibernated; every member continues from its own volume")
	}
	if v := volumes.Stay(s, ""); !v.Silent() && s.Observed.Set != nil && s.Observed.Set.Replicas > 0 {
		return v.Advise("set spec.state to Running again: the members serve, and their data is only in them; then " + v.Hold.Do)
	}
	if v := verdict.OneOf(s, stopAll, objects.Fight); !v.Silent() {
		return v
	}
	if a := s.Observed.Record.Applied; a == nil || a.SpecHash != s.Desired.SpecHash {
		return verdict.Do(action.NewRecordAsleep(s), "every member is stopped; what else has changed is applied when they start again")
	}
	return verdict.Idle()
}

// stopAll lets every pod go, and waits until the last one has.
func stopAll(s *situation.Situation) verdict.Verdict {
	if s.Observed.Set != nil && s.Observed.Set.Replicas > 0 {
		return verdict.Do(action.ResizeSet{SetUID: s.Observed.Set.UID, From: s.Observed.Set.Replicas, To: 0, Partition: 0}, "no member is to run")
	}
	if n := len(s.Observed.Pods); n > 0 {
		p := &s.Observed.Pods[n-1]
		return stalled.Gone(s, p, fmt.Sprintf("%s shut down, %s first", state.Plural(n, "pod"), p.Name))
	}
	return verdict.Pass()
}
