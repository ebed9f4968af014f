package recovery

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/stalled"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
)

// Run brings a recovery that has begun to its end. What Git says meanwhile
// does not matter: half a recovery is of no use. Each step
// is known by what it leaves behind, so that a crash costs no more than a repeat.
// A restore into a new cluster goes the same way, from where bootstrap leaves it.
//
//	record   pods   volume      then
//	lost     some   –           the StatefulSet to 0, wait for all to be gone
//	lost     none   not done    restore the volume of the first member
//	lost     none   done        record the new identity
//	new      fewer  done        the StatefulSet up to the first member
//	new      first  done        check it, and record that it is over
func Run(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Observed.Record.Recovering == nil {
		return verdict.Pass()
	}
	r := *s.Observed.Record.Recovering
	switch s.Observed.Record.ClusterID {
	case r.ClusterID:
		return restoreFirst(s, r)
	case r.NewClusterID:
		return startFirst(s, r)
	}
	return verdict.Refuse(fmt.Sprintf("a recovery of cluster %s is under way, but the record is of cluster %s", r.ClusterID, s.Observed.Record.ClusterID),
		"restore the record; nothing is done until then")
}

// FillVolume makes the volume of the first member of a restored cluster, and puts
// the backup on it. No pod of the cluster runs before that is done.
func FillVolume(s *situation.Situation, r state.Recovering) verdict.Verdict {
	volume, restore := s.Observed.Volume(r.Member), s.Observed.Restore
	switch {
	case volume == nil && (restore.State == state.RestoreNone || restore.State == state.RestoreRunning && !restore.Began):
		return verdict.Do(action.CreateVolume{Member: r.Member, Claim: s.Claim(r.Member)}, "the backup is put on a volume before the first member starts on it")
	case volume == nil:
		return verdict.Unhealthy("the volume claim of "+r.Member+" is gone, which the backup was put on",
			fmt.Sprintf("delete Job %s, and the claim is recreated and filled again", s.Observed.Restore.Job))
	}
	return restoreFirst(s, r)
}

// restoreFirst stops what is left of the lost cluster, and restores the volume of
// the first member. All pods must be gone, not only that of the first: a member
// on a node that is cut off may still serve its old clients.
func restoreFirst(s *situation.Situation, r state.Recovering) verdict.Verdict {
	if back(s, r) {
		return verdict.Do(action.RefuseRecovery{OneShot: r.OneShot}, "the cluster has its quorum again, and no volume was touched yet: a recovery would lose what was written; its members stay, or come back")
	}
	if s.Observed.Set != nil && s.Observed.Set.Replicas != 0 {
		if v := over(s, r); !v.Silent() {
			return v
		}
		if v := usableYet(s, r); !v.Silent() {
			return v
		}
		return verdict.Do(action.ResizeSet{SetUID: s.Observed.Set.UID, From: s.Observed.Set.Replicas, To: 0, Partition: s.Observed.Set.Partition},
			"the members of the lost cluster stop, so that nothing changes what the recovered one begins with")
	}
	if s.Observed.Set != nil && !s.Observed.Set.Settled {
		return stalled.Controller(s, "the recovery waits for the StatefulSet controller, which has not seen yet that all members are to stop")
	}
	if len(s.Observed.Pods) > 0 {
		p := &s.Observed.Pods[0]
		return stalled.Gone(s, p, fmt.Sprintf("the recovery waits for %s to be gone: as long as it might run, nothing continues", p.Name))
	}
	if v := volumes.Enlarge(s); !v.Silent() {
		return v // it may be what the restore waits for
	}
	switch s.Observed.Restore.State {
	case state.RestoreRunning:
		if s.Observed.Restore.NoRoom {
			return awaitRoom(s)
		}
		message := "the volume of " + r.Member + " is being restored"
		if s.Observed.Restore.Detail != "" {
			message = s.Observed.Restore.Detail
		}
		return verdict.WaitFor(s, message, s.Observed.Restore.Since, restoreTime,
			fmt.Sprintf("check Job %s and its pod: a large backup takes its time, one that does not move can be tried again by deleting the Job", s.Observed.Restore.Job))
	case state.RestoreFailed:
		return verdict.Unhealthy(fmt.Sprintf("the volume of %s could not be restored: %s", r.Member, s.Observed.Restore.Detail),
			fmt.Sprintf("nothing that was on it is lost; fix the cause and delete Job %s, and it is tried again", s.Observed.Restore.Job))
	case state.RestoreDone:
		return verdict.Do(action.AdoptRecovery{From: r.ClusterID, ClusterID: r.NewClusterID, Member: r.Member, MemberID: r.NewMemberID},
			"the volume of "+r.Member+" is that of "+r.Noun())
	case state.RestoreNone:
	}
	volume := s.Observed.Volume(r.Member)
	if volume == nil || volume.Terminating {
		return verdict.Unhealthy("the volume claim of "+r.Member+", which the cluster is recovered from, is gone or being deleted",
			"put the claim back on its volume; nothing continues without it")
	}
	reason := "all members have stopped; the old data stays on the volume, beside the new"
	if r.Restores() {
		reason = "the backup is fetched, checked once more, and put on the empty volume; no member runs meanwhile"
	}
	return verdict.Do(action.RestoreVolume{Member: r.Member, Claim: volume.Claim, ClaimUID: volume.UID, ClusterID: r.NewClusterID, AcceptHashMismatch: s.Observed.Restore.AcceptHashMismatch}, reason)
}

// restoreTime is how long the restore of a volume may take before a person should look.
const restoreTime = time.Hour

// back reports whether the lost cluster has a quorum again by itself, by its members' word or by
// that of the kubelets, before a volume was restored.
func back(s *situation.Situation, r state.Recovering) bool {
	if r.Restores() || s.Observed.Restore.State != state.RestoreNone {
		return false
	}
	round, quorum := s.Observed.Round(), state.Quorum(s.MemberCount())
	answers := round != nil && round.Problem == "" && round.ClusterID == r.ClusterID && len(s.Observed.Pods) >= quorum
	return answers || Ready(s, s.ByOrdinal()) >= quorum
}

// over keeps the members running that are those of the recovered cluster already: none of them
// starts before the record says so, which is restored from before that.
func over(s *situation.Situation, r state.Recovering) verdict.Verdict {
	if i := slices.IndexFunc(s.Observed.Pods, state.Pod.Serving); r.Restores() && i >= 0 {
		name := s.Observed.Pods[i].Name
		return verdict.Refuse(name+" serves, and no member of a cluster that is being restored starts before its record says so: the record is older than the cluster",
			"restore the record; nothing is done until then").At(name)
	}
	if round := s.Observed.Round(); round == nil || round.ClusterID != r.NewClusterID {
		return verdict.Pass()
	}
	return verdict.Refuse(fmt.Sprintf("the members answer as cluster %s, which %s is to become: the record is older than the cluster", r.NewClusterID, r.Noun()),
		"restore the record; nothing is done until then")
}

// usableYet keeps the members running while the claim that the recovery continues from
// would go with its pod.
func usableYet(s *situation.Situation, r state.Recovering) verdict.Verdict {
	if v := s.Observed.Volume(r.Member); r.Restores() || (v != nil && !v.Terminating) {
		return verdict.Pass()
	}
	return verdict.Unhealthy("the volume claim of "+r.Member+", which the cluster is recovered from, is gone or being deleted, and its data goes with its pod",
		"copy the data of "+r.Member+" while its pod is there; nothing is stopped meanwhile").At(r.Member)
}

// awaitRoom waits until Git enlarges the volume that a restore fills.
func awaitRoom(s *situation.Situation) verdict.Verdict {
	if v := volumes.RefuseGrowth(s); !v.Silent() {
		return v
	}
	v := verdict.Unhealthy(s.Observed.Restore.Detail, "raise storage.size in its file: the volume is enlarged while the restore waits, which then continues")
	v.Hold.Since = s.Observed.Restore.Since
	return v
}

// startFirst starts the first member, and checks the result.
func startFirst(s *situation.Situation, r state.Recovering) verdict.Verdict {
	want := naming.Ordinal(r.Member) + 1
	switch {
	case s.Observed.Set == nil:
		return verdict.Do(action.CreateSet{Replicas: want}, r.Noun()+" begins with "+r.Member)
	case s.Observed.Set.Replicas < want:
		return verdict.Do(action.ResizeSet{SetUID: s.Observed.Set.UID, From: s.Observed.Set.Replicas, To: want, Partition: want}, r.Noun()+" begins with "+r.Member)
	}
	if broken := s.NeverStarted(); broken != nil && r.Restores() {
		return Reform(s, broken)
	}
	problem, since := s.FirstMemberProblem(r), r.Since
	if p := s.Observed.Pod(r.Member); p != nil {
		since = p.Created
	}
	if !problem.None() {
		m := s.Observed.Round().Member(r.Member)
		return verdict.WaitFor(s, fmt.Sprintf("%s, the first member of %s, starts: %s", r.Member, r.Noun(), problem.Text), since, situation.TroubleGrace,
			r.HelpStart(m != nil && m.Denied)).About(problem)
	}
	if got, least := s.Observed.Round().Member(r.Member).Revision, r.First(); got < least {
		return verdict.Verdict{Hold: &decision.Hold{
			Kind: decision.Stopped, Member: r.Member, Since: since, Again: verdict.Rarely,
			Message: r.Noun() + " is at an earlier revision than it should be, so that clients would see revisions go back; it is left unchanged",
			Detail:  fmt.Sprintf("revision %d instead of %d or later", got, least),
			Do:      "keep clients away from it, and report this as a bug; " + r.Kept(),
		}}
	}
	return verdict.Do(action.EndRecovery{OneShot: r.OneShot, ClusterID: r.ClusterID},
		fmt.Sprintf("%s answers as cluster %s; the others join it one at a time", r.Member, r.NewClusterID)).
		Measured("at revision %d", s.Observed.Round().Member(r.Member).Revision)
}
