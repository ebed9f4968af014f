package plan

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// downgrade takes the cluster to the minor below by etcd's own downgrade: it is enabled
// first, then every member brings its storage down, and only then one after the
// other gets the older binary. When Git asks for something else meanwhile, it is
// cancelled. A restart of an earlier roll may be late, and must meet neither.
//
//	Git asks for         the cluster      what is done
//	the minor below      is above it      enabled: its version goes down at once
//	the minor below      goes there       wait until every storage is there
//	another minor        goes there       the downgrade is cancelled
//	anything             has got there    etcd ends the downgrade on its own
func downgrade(s *situation.Situation) verdict.Verdict {
	r := s.Observed.Round()
	switch {
	case !s.Formed() || r == nil:
		return verdict.Pass()
	case r.Downgrading && r.DowngradeTarget != s.WantedVersion().Line():
		return cancel(s, r)
	case !s.Rolling():
		return verdict.Pass()
	case s.GoesDown():
		return enable(s, r)
	case s.Descending():
		return awaitStorage(s, r)
	}
	return verdict.Pass()
}

// enable tells the cluster that it goes down.
func enable(s *situation.Situation, r *state.Round) verdict.Verdict {
	l := r.Leader()
	if l == nil {
		return verdict.Unhealthy("there is no leader to enable the downgrade", "")
	}
	if v := disown(s, "enabled"); !v.Silent() {
		return v
	}
	a := action.EnableDowngrade{Member: l.Name, MemberID: l.ID, From: state.Minor(r.ClusterVersion), To: s.WantedVersion().Line()}
	if s.Desired.Spec.Upgrade.Backup != schema.BackupSkip {
		a.Backup = s.Purpose()
	}
	return verdict.Do(a, fmt.Sprintf("the cluster version is %s, and no member starts with %s before etcd brings its storage down; no member stops by this",
		state.Minor(r.ClusterVersion), s.Desired.Spec.Version))
}

// awaitStorage waits until every member that is to be replaced has brought its
// storage down. One that runs the older minor already need not report it: before 3.6
// none does.
func awaitStorage(s *situation.Situation, r *state.Round) verdict.Verdict {
	target := s.WantedVersion().Line()
	for _, m := range r.Members {
		if state.Minor(m.Version) == target || state.Minor(m.StorageVersion) == target || m.Name == s.Exempt() {
			continue
		}
		return verdict.Wait(s, fmt.Sprintf("%s brings its storage down to %s", state.NameOf(m), target), s.Observed.Record.DowngradeSince(),
			fmt.Sprintf("check the log of %s: something that only %s can do may be in use; revert the commit to cancel the downgrade", state.NameOf(m), state.Minor(m.Version))).At(m.Name)
	}
	return verdict.Pass()
}

// cancel takes a downgrade back that Git no longer asks for. One that has got
// there ends on its own.
func cancel(s *situation.Situation, r *state.Round) verdict.Verdict {
	for _, m := range r.Members {
		if state.Minor(m.Version) == r.DowngradeTarget {
			continue
		}
		l := r.Leader()
		if l == nil {
			return verdict.Unhealthy("there is no leader to cancel the downgrade", "")
		}
		if v := disown(s, "cancelled"); !v.Silent() {
			return v
		}
		return verdict.Do(action.CancelDowngrade{Member: l.Name, MemberID: l.ID, Minor: r.DowngradeTarget},
			fmt.Sprintf("Git asks for %s now; while a member runs it, the downgrade can be taken back", s.Desired.Spec.Version))
	}
	return verdict.Wait(s, "every member runs "+r.DowngradeTarget+"; etcd ends the downgrade within seconds", s.NewestPod(), checkLeader)
}

// disown keeps a restart that was given up from taking effect, before the cluster version
// changes: it may still be on its way, and the minor that it starts was right for the version of
// its time alone. It holds for the StatefulSet as it was read then, which is another one as soon
// as the partition is where no roll has it. A roll to the minor that all run needs none of that.
func disown(s *situation.Situation, done string) verdict.Verdict {
	set := s.Observed.Set
	changes := func(p state.Pod) bool {
		return s.IsMember(p.Name) && state.Minor(p.Version) != state.Minor(set.Version)
	}
	if set.Partition > set.Replicas || !slices.ContainsFunc(s.Observed.Pods, changes) {
		return verdict.Pass()
	}
	return verdict.Do(action.ResizeSet{SetUID: set.UID, From: set.Replicas, To: set.Replicas, Partition: set.Replicas + 1},
		fmt.Sprintf("a restart with etcd %s may be late on its way, and finds another StatefulSet than it was made for; then the downgrade is %s", set.Version, done))
}
