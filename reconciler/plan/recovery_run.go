package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// RecoveryBump is by how many revisions a recovered cluster is ahead, at least:
// see reconciler/restore.
const RecoveryBump = 1_000_000_000

// recovering brings a recovery that has begun to its end. What Git says meanwhile
// does not matter: half a recovery is nothing that anybody could want. Each step
// is known by what it leaves behind, so that a crash costs no more than a repeat.
// A restore into a new cluster goes the same way, from where bootstrap leaves it.
//
//	record   pods   volume      then
//	lost     some   –           the StatefulSet to 0, wait for all to be gone
//	lost     none   not done    restore the volume of the first member
//	lost     none   done        write down the new identity
//	new      fewer  done        the StatefulSet up to the first member
//	new      first  done        look at it, and write down that it is over
func recovering(s *situation) verdict {
	if !s.formed() || s.o.Record.Recovering == nil {
		return pass()
	}
	r := *s.o.Record.Recovering
	switch s.o.Record.ClusterID {
	case r.ClusterID:
		return s.restoreFirst(r)
	case r.NewClusterID:
		return s.startFirst(r)
	}
	return refuse(fmt.Sprintf("a recovery of cluster %s is under way, but the record is of cluster %s", r.ClusterID, s.o.Record.ClusterID),
		"put back the record as it was; nothing is done until then")
}

// restoreFirst stops what is left of the lost cluster, and restores the volume of
// the first member. All pods must be gone, not only that of the first: a member
// on a node that is cut off may still serve its old clients.
func (s *situation) restoreFirst(r Recovering) verdict {
	if s.o.Set != nil && s.o.Set.Replicas != 0 {
		return do(ResizeSet{SetUID: s.o.Set.UID, From: s.o.Set.Replicas, To: 0, Partition: s.o.Set.Partition},
			"the members of the lost cluster stop, so that nothing changes what the recovered one begins with")
	}
	if s.o.Set != nil && !s.o.Set.Settled {
		return wait("the recovery waits for the StatefulSet controller, which has not seen yet that all members are to stop", r.Since)
	}
	if len(s.o.Pods) > 0 {
		p := s.o.Pods[0]
		v := wait(fmt.Sprintf("the recovery waits for %s to be gone", p.Name), r.Since)
		if s.now.Sub(r.Since) > comeback {
			v.hold.Do = "if its node is off for good, delete the node or the pod by force; as long as it might run, nothing goes on"
		}
		return v
	}
	switch s.o.Restore.State {
	case RestoreRunning:
		return wait(cmp.Or(s.o.Restore.Detail, "the volume of "+r.Member+" is being restored"), s.o.Restore.Since)
	case RestoreFailed:
		return unhealthy(fmt.Sprintf("the volume of %s could not be restored: %s", r.Member, s.o.Restore.Detail),
			fmt.Sprintf("nothing that was on it is lost; mend the cause and delete Job %s, and it is tried again", s.o.Restore.Job))
	case RestoreDone:
		return do(AdoptRecovery{From: r.ClusterID, ClusterID: r.NewClusterID, Member: r.Member, MemberID: r.NewMemberID},
			"the volume of "+r.Member+" is that of "+r.noun())
	case RestoreNone:
	}
	volume := s.o.volume(r.Member)
	if volume == nil || volume.Terminating {
		return unhealthy("the volume claim of "+r.Member+", which the cluster is to go on from, is gone or being deleted",
			"put the claim back on its volume; nothing goes on without it")
	}
	reason := "all members have stopped; the old data stays on the volume, beside the new"
	if r.restores() {
		reason = "the backup is fetched, checked once more, and put on the empty volume; no member runs meanwhile"
	}
	return do(RestoreVolume{Member: r.Member, Claim: volume.Claim, ClaimUID: volume.UID, ClusterID: r.NewClusterID}, reason)
}

// startFirst starts the first member, and looks at what came of it.
func (s *situation) startFirst(r Recovering) verdict {
	want := ordinalOf(r.Member) + 1
	switch {
	case s.o.Set == nil:
		return do(CreateSet{want}, r.noun()+" begins with "+r.Member)
	case s.o.Set.Replicas < want:
		return do(ResizeSet{SetUID: s.o.Set.UID, From: s.o.Set.Replicas, To: want, Partition: want}, r.noun()+" begins with "+r.Member)
	}
	if broken := s.stillborn(); broken != nil && r.restores() {
		return s.reform(broken)
	}
	problem, since := s.strange(r), r.Since
	if p := s.o.pod(r.Member); p != nil {
		since = p.Created
	}
	if problem != "" {
		v := wait(fmt.Sprintf("%s, the first member of %s, starts: %s", r.Member, r.noun(), problem), since)
		if s.now.Sub(since) > trouble {
			v.hold.Do = r.helpStart(problem)
		}
		return v
	}
	if got, least := s.o.round().member(r.Member).Revision, r.Revision+RecoveryBump; got < least {
		return verdict{hold: &Hold{
			Kind: HoldStopped, Since: since, Again: rarely,
			Message: fmt.Sprintf("%s is at revision %d and should be at %d or later, so that clients would see revisions go back; it is left as it is", r.noun(), got, least),
			Do:      "keep clients away from it, and report this as a bug; " + r.kept(),
		}}
	}
	return do(EndRecovery{OneShot: r.OneShot, ClusterID: r.ClusterID},
		fmt.Sprintf("%s answers as cluster %s, at revision %d; the others join it one by one", r.Member, r.NewClusterID, s.o.round().member(r.Member).Revision))
}

// restores says whether it is a backup that becomes a new cluster.
func (r Recovering) restores() bool { return r.ClusterID == "" }

// noun is what the cluster is called meanwhile.
func (r Recovering) noun() string {
	if r.restores() {
		return "the restored cluster"
	}
	return "the recovered cluster"
}

// kept says where what was there before is.
func (r Recovering) kept() string {
	if r.restores() {
		return "the backup is as it was"
	}
	return "the old data is kept on its volume, in a directory beside the new"
}

// helpStart is what a person can do about a first member that does not start.
// With authentication on, etcd tells its status to a user only.
func (r Recovering) helpStart(problem string) string {
	if strings.Contains(problem, "user name is empty") || strings.Contains(problem, "permission denied") {
		return "the backup has authentication switched on, and quorate has no user in it that may look: with tls.mode Managed its certificate is that of user root; else switch authentication off in the pod with `etcdctl --user root auth disable`, and on again at the end"
	}
	return r.kept() + "; look at the pod if this lasts"
}

// strange says why the first member does not yet answer as what it should be, or "".
func (s *situation) strange(r Recovering) string {
	p, round := s.o.pod(r.Member), s.o.round()
	m := round.member(r.Member)
	switch {
	case p == nil:
		return "it has no pod yet"
	case p.Trouble != "":
		return p.Trouble
	case round == nil:
		return "it was not asked yet"
	case m == nil || round.Problem != "":
		return cmp.Or(round.Problem, "it does not answer yet")
	case m.Problem != "":
		return m.Problem
	case round.ClusterID != r.NewClusterID || m.ID != r.NewMemberID:
		return fmt.Sprintf("it answers as member %s of cluster %s", m.ID, round.ClusterID)
	case len(round.Members) != 1 || m.Learner:
		return fmt.Sprintf("it lists %s", members(len(round.Members)))
	case m.Leader != m.ID:
		return "it does not lead yet"
	case !p.Ready:
		return "its pod is not ready yet"
	}
	return ""
}

// recoverOn lets what a recovery waits for come true, for a forecast.
func (s *situation) recoverOn() {
	if s.o.Record == nil || s.o.Record.Recovering == nil || s.o.Set == nil {
		return
	}
	s.o.Pods = slices.DeleteFunc(s.o.Pods, func(p Pod) bool { return p.Ordinal >= s.o.Set.Replicas })
	if s.o.Restore.State == RestoreRunning {
		s.o.Restore.State = RestoreDone
	}
}
