package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// joinTime is how long a learner may take to become a voter, and joinTimePerGiB
	// what each GiB of data adds to it.
	joinTime       = 10 * time.Minute
	joinTimePerGiB = 10 * time.Minute
	// rejoinAfter is how long a join that failed is left alone, times the number
	// of failures in a row, and rejoinLatest the longest such time.
	rejoinAfter  = 10 * time.Minute
	rejoinLatest = 2 * time.Hour
)

// membership finishes a change of the member list that has begun, whatever
// happened in between: what the record intends and what etcd lists say together
// how far it has come.
//
//	record   etcd lists the member   then
//	leaving  yes                     leadership away, remove
//	leaving  no                      write down that it has left
//	joining  no, no ID yet           add as a learner
//	joining  as a learner            pod, catch up, promote; too late: remove it
//	joining  as a voter              write down that it is a member
//	joining  no, although it was     give up
func membership(s *situation) verdict {
	switch {
	case !s.formed() || s.o.Set == nil:
		return pass()
	case s.o.Record.Leaving != nil:
		return s.leave(*s.o.Record.Leaving)
	case s.o.Record.Joining != nil:
		return s.join(*s.o.Record.Joining)
	}
	return pass()
}

// leave brings a removal that has begun to its end.
func (s *situation) leave(l Leaving) verdict {
	if v := s.listed(); !v.silent() {
		return v
	}
	if v := s.foreignVolume(s.o.pod(l.Member)); !v.silent() {
		return v
	}
	r := s.o.round()
	m := r.byID(l.ID)
	if m == nil {
		return do(EndLeave{Member: l.Member, ID: l.ID, Replace: l.Replace}, "the member list no longer has it")
	}
	if s.stays(l) {
		return do(CancelLeave{Member: l.Member, ID: l.ID}, "Git wants it to be a member, and its data is there")
	}
	if problem := s.unremovable(r, l.Member); problem != "" {
		if lost := s.losses(); !l.Replace && len(lost) > 0 && !containsLoss(lost, l.Member) {
			return do(CancelLeave{Member: l.Member, ID: l.ID}, describeLosses(lost)+", and that comes first")
		}
		return unhealthy(fmt.Sprintf("%s is to be removed (%s), but %s", l.Member, l.Why, problem),
			"nothing is removed until the others are healthy; look at the members named here")
	}
	if v := s.seenTwice(l.Member); !v.silent() {
		return v
	}
	before := &s.o.Rounds[len(s.o.Rounds)-2]
	if problem := s.behind(before, r, l.Member); problem != "" {
		return confirmIn(Between, problem)
	}
	if problem := cmp.Or(s.hashes(before), s.hashes(r)); problem != "" && !l.Replace {
		return unhealthy(fmt.Sprintf("%s is to be removed (%s), but %s, and nobody knows yet which is right", l.Member, l.Why, problem),
			"find out whose data is wrong: `etcdctl endpoint hashkv --cluster` shows what each has; nothing is removed until then")
	}
	if lead := r.leader(); lead.ID == l.ID {
		heir := s.heir(l.Member) // there is one: the others are a quorum that is well
		return do(MoveLeader{From: lead.Name, FromID: lead.ID, To: heir.Name, ToID: heir.ID},
			l.Member+" is about to leave, and a leader that just goes costs an election")
	}
	return do(RemoveMember{Member: l.Member, ID: l.ID}, l.Why)
}

// listed wants a fresh member list of this very cluster.
func (s *situation) listed() verdict {
	r := s.o.round()
	switch {
	case r == nil || s.now.Sub(r.At) > fresh:
		return confirmIn(instant, "the members have not been asked a moment ago")
	case r.Problem != "":
		return unhealthy("the members cannot be listed: "+r.Problem, "nothing changes among the members until they answer; look at their pods")
	case r.ClusterID != s.o.Record.ClusterID:
		return refuse(fmt.Sprintf("the members say that they are cluster %s, the record says %s", r.ClusterID, s.o.Record.ClusterID),
			"find out who answers under the names of this cluster; nothing is changed until then")
	}
	return pass()
}

// stays says whether a member whose removal has begun, but that etcd still
// lists, is wanted after all: Git has changed its mind, and its data is there. One
// that is being replaced is replaced: that it answers again says little of its data.
func (s *situation) stays(l Leaving) bool {
	p := s.o.pod(l.Member)
	return !l.Replace && s.wants(l.Member) && (p == nil || s.lossOf(*p) == nil)
}

// unremovable says why the others cannot do without a member, or "". Etcd needs a
// quorum of the members that there are for the removal, and of the others after it.
func (s *situation) unremovable(r *Round, member string) string {
	voters, well, self := 0, 0, 0
	for _, m := range r.Members {
		switch {
		case m.Learner:
			return nameOf(m) + " is a learner, and one change at a time is enough"
		case m.Name == member:
			if m.Problem == "" {
				self = 1
			}
		case m.Problem == "" && s.stands(m.Name):
			well++
		}
		voters++
	}
	switch now, after := voters/2+1, (voters-1)/2+1; {
	case voters < 2:
		return "it is the only member"
	case r.leader() == nil:
		return "there is no leader"
	case well < after:
		return fmt.Sprintf("only %d of the %d others are healthy, and their quorum is %d", well, voters-1, after)
	case well+self < now:
		return fmt.Sprintf("only %d of %d members are healthy, and a quorum is %d", well+self, voters, now)
	}
	return ""
}

// stands says whether a member's pod goes on serving.
func (s *situation) stands(name string) bool {
	p := s.o.pod(name)
	return p != nil && s.up(*p)
}

// join brings a join that has begun to its end, or takes it back.
func (s *situation) join(j Joining) verdict {
	if v := s.listed(); !v.silent() {
		return v
	}
	m := s.o.round().byID(j.ID)
	switch {
	case m != nil && !m.Learner:
		return do(EndJoin{Member: j.Member, ID: j.ID}, "etcd counts it as a voter")
	case !s.wants(j.Member):
		return do(s.drop(j, false), fmt.Sprintf("Git wants %s, so %s is not to join any more", members(int(s.d.Spec.Replicas)), j.Member))
	case j.ID == "" && s.otherLearner(j.Member) != "":
		return unhealthy(fmt.Sprintf("%s is to join, but %s is a learner, and one change at a time is enough", j.Member, s.otherLearner(j.Member)),
			"where nobody knows of that learner, remove it with `etcdctl member remove`")
	case j.ID == "":
		if problem := s.electable(); problem != "" {
			return unhealthy(j.Member+" is to join, but "+problem, "look at the members named here")
		}
		return do(AddLearner{Member: j.Member}, "a learner has no vote, so that it cannot harm the quorum while it catches up")
	case m == nil:
		return do(s.drop(j, true), "the member list no longer has it: somebody has removed it")
	}
	return s.catchUp(j, *m)
}

// otherLearner is a learner that runs under another name, or "". One without a name
// may be the one that joins: etcd was asked, and its answer got lost.
func (s *situation) otherLearner(member string) string {
	for _, m := range s.o.round().Members {
		if m.Learner && m.Name != "" && m.Name != member {
			return m.Name
		}
	}
	return ""
}

// drop is the action that takes a join back. The claim that its pod has was made
// for it: a claim that nobody knows lets no join begin. But where the guard found
// somebody's data on it, or a recovery has kept the data of the lost cluster beside
// the new, nobody deletes that.
func (s *situation) drop(j Joining, failed bool) DropLearner {
	p := s.o.pod(j.Member)
	foreign := p != nil && p.Damage == DamageForeign
	return DropLearner{
		Member: j.Member, ID: j.ID, Failed: failed, Replace: j.Replace && s.wants(j.Member),
		Retire: j.ID != "" && !foreign && len(s.o.Record.Recovered) == 0,
	}
}

// electable says why a change of the member list would not get its quorum, or "".
func (s *situation) electable() string {
	voters, well := 0, 0
	for _, m := range s.o.round().Members {
		if m.Learner {
			continue
		}
		voters++
		if m.Problem == "" {
			well++
		}
	}
	switch {
	case s.o.round().leader() == nil:
		return "there is no leader"
	case well < voters/2+1:
		return fmt.Sprintf("only %d of %d members are healthy", well, voters)
	}
	return ""
}

// catchUp promotes a learner that has what the leader had a moment ago, and
// removes one that does not get there in time.
func (s *situation) catchUp(j Joining, m Member) verdict {
	problem := s.lagging(j, m)
	if problem == "" {
		if len(s.o.Rounds) < 2 {
			return confirmIn(instant, "that a learner has caught up is seen in two looks")
		}
		before := &s.o.Rounds[len(s.o.Rounds)-2]
		if lead := before.leader(); lead == nil || m.Applied < lead.Commit {
			problem = "it has not applied yet what the leader had committed"
		} else if s.o.round().At.Sub(before.At) < Between {
			return confirmIn(Between, "the two looks at the members were too close to each other")
		}
	}
	if problem == "" {
		problem = s.electable()
	}
	if problem == "" {
		return do(PromoteMember{Member: j.Member, ID: j.ID}, "it has caught up with the leader")
	}
	// That the list still calls it a learner is proof that it has no vote, whatever
	// was written down before it was promoted.
	p := s.o.pod(j.Member)
	if p != nil && p.Damage != "" {
		return do(s.drop(j, true), fmt.Sprintf("its volume is not what it was (%s): %s", p.Damage, problem))
	}
	if s.now.Sub(j.Since) >= s.joinTime() {
		return do(s.drop(j, true), fmt.Sprintf("it did not become a member within %s: %s", s.joinTime(), problem))
	}
	return wait(j.Member+" joins: "+problem, j.Since)
}

// lagging says why a learner cannot be promoted yet, or "".
func (s *situation) lagging(j Joining, m Member) string {
	p := s.o.pod(j.Member)
	switch {
	case p == nil:
		return "its pod does not exist yet"
	case p.Terminating:
		return "its pod is shutting down"
	case p.Trouble != "":
		return p.Trouble
	case m.Problem != "":
		return m.Problem
	case m.Name == "":
		return "it has not started yet"
	}
	return ""
}

// joinTime is how long a learner may take, by the data that it has to get.
func (s *situation) joinTime() time.Duration {
	largest := int64(0)
	for _, m := range s.o.round().Members {
		largest = max(largest, m.DBSize)
	}
	return joinTime + (time.Duration(largest>>20) * joinTimePerGiB >> 10).Round(time.Second)
}

// resize gives the StatefulSet as many pods as there are members, whatever else is
// under way: the members are in the record, and pods that are missing or too many
// stand in the way of everything.
func resize(s *situation) verdict {
	if !s.formed() || s.o.Set == nil {
		return pass()
	}
	return s.resize()
}

// resize sets the number of pods to the highest ordinal of a member. The partition
// of an open roll stays where it is, so that who comes back comes back as what the
// roll has made of it; else it stands above every pod.
func (s *situation) resize() verdict {
	from, to := s.o.Set.Replicas, s.size()
	if from == to {
		return pass()
	}
	partition := min(s.o.Set.Partition, to)
	if s.o.Set.Partition >= from && (!s.open() || s.joinsAsBefore()) {
		partition = to
	}
	reason := fmt.Sprintf("its pods are those of %s", members(len(s.o.Record.Members)))
	switch j := s.o.Record.Joining; {
	case s.o.Set.ScaledBy != "":
		reason = fmt.Sprintf("somebody else has set it to %d (%s), and the members are in the record, not there", from, s.o.Set.ScaledBy)
	case j != nil && j.ID != "":
		reason = j.Member + " is a learner now and gets its pod"
	}
	return do(ResizeSet{SetUID: s.o.Set.UID, From: from, To: to, Partition: partition}, reason)
}

// joinsAsBefore says whether a new member comes as what the others were before a
// roll that Git has given up: as what that roll would make of it, it may never start.
func (s *situation) joinsAsBefore() bool {
	j := s.o.Record.Joining
	return j != nil && j.ID != "" && s.givenUp()
}

// givenUp says whether Git no longer wants what the StatefulSet would make of the
// next pod, and the cluster still takes what it was before.
func (s *situation) givenUp() bool {
	return !s.started() && !older(line(s.o.Set.CurrentVersion), line(s.clusterVersion()))
}

// size is how many pods there are to be: up to the highest ordinal of those that
// are members, join, or are being replaced.
func (s *situation) size() int32 {
	r := s.o.Record
	switch {
	case r.Hibernated || r.Deleted:
		return 0
	case !s.formed():
		return s.founders()
	}
	highest := int32(-1)
	for name := range r.Members {
		highest = max(highest, ordinalOf(name))
	}
	if r.Joining != nil && r.Joining.ID != "" {
		highest = max(highest, ordinalOf(r.Joining.Member))
	}
	if r.Replacing != "" && s.wants(r.Replacing) {
		highest = max(highest, ordinalOf(r.Replacing))
	}
	return highest + 1
}

// founders is how many members the cluster begins with.
func (s *situation) founders() int32 {
	if s.o.Record != nil && s.o.Record.Founders > 0 {
		return s.o.Record.Founders
	}
	return s.d.Spec.Replicas
}

// memberCount is how many members there are, as the record has it: somebody may
// have scaled the StatefulSet by hand.
func (s *situation) memberCount() int {
	if s.formed() {
		return len(s.o.Record.Members)
	}
	return int(s.founders())
}

// isMember says whether the record lists the name. Before the cluster has formed
// every pod is one.
func (s *situation) isMember(name string) bool {
	return !s.formed() || s.o.Record.Members[name] != ""
}

// wants says whether Git wants a member of that name.
func (s *situation) wants(name string) bool { return ordinalOf(name) < s.d.Spec.Replicas }

// complete says whether the members are exactly those that Git wants.
func (s *situation) complete() bool {
	if len(s.o.Record.Members) != int(s.d.Spec.Replicas) || s.o.Record.Joining != nil || s.o.Record.Leaving != nil {
		return false
	}
	return !s.tooMany()
}

// tooMany says whether there are members that Git does not want.
func (s *situation) tooMany() bool {
	for name := range s.o.Record.Members {
		if !s.wants(name) {
			return true
		}
	}
	return false
}

// byOrdinal are the recorded members, lowest ordinal first, as numbers: 9 before 10.
func (s *situation) byOrdinal() []string {
	return slices.SortedFunc(maps.Keys(s.o.Record.Members), func(a, b string) int {
		return cmp.Or(cmp.Compare(ordinalOf(a), ordinalOf(b)), cmp.Compare(a, b))
	})
}

// ordinalOf is the number at the end of a member's name; a name without one is
// beyond every size.
func ordinalOf(member string) int32 {
	n, err := strconv.ParseInt(member[strings.LastIndex(member, "-")+1:], 10, 32)
	if err != nil {
		return 1<<31 - 2
	}
	return int32(n)
}

// rejoin begins to add a member: nothing of an earlier one of its name may be
// left, and a join that failed is left alone for a while.
func (s *situation) rejoin(member, reason string, replace bool) verdict {
	if v := s.clearVolume(member); !v.silent() {
		return v
	}
	if times := s.failedJoins(member); times > 0 {
		f, pause := s.o.Record.FailedJoin, min(time.Duration(times)*rejoinAfter, rejoinLatest)
		if left := pause - s.now.Sub(f.At); left > 0 {
			return verdict{hold: &Hold{
				Kind: HoldStopped, Since: f.At, Again: min(left, rarely),
				Message: fmt.Sprintf("%s could not join, %s in a row; the next try is %s after the last", member, plural(times, "time"), pause),
				Do:      "look at its pod and its node meanwhile",
			}}
		}
	}
	return do(BeginJoin{Member: member, Replace: replace}, reason)
}

// failedJoins is how often in a row a member could not join.
func (s *situation) failedJoins(member string) int {
	if f := s.o.Record.FailedJoin; f != nil && f.Member == member {
		return max(f.Times, 1)
	}
	return 0
}

// clearVolume removes what a member that was removed has left on its volume. A
// volume that nobody knows is never touched.
func (s *situation) clearVolume(member string) verdict {
	volume, pod := s.o.volume(member), s.o.pod(member)
	if pod != nil && !pod.Terminating && pod.Template != s.templateFor(pod.Ordinal) {
		return do(DeletePod{Member: member, PodUID: pod.UID}, "an earlier roll has left it, and the StatefulSet would never make it anew")
	}
	_, retired := s.o.Record.Retired[member]
	switch {
	case retired && volume == nil:
		return do(DeleteVolume{Claim: s.claim(member), Member: member}, "nothing is left of the former member")
	case retired && !volume.Terminating && volume.Own():
		return do(DeleteVolume{Claim: volume.Claim, UID: volume.UID, Member: member},
			member+" was removed from the cluster, so that what is on its volume is worth nothing; its next life begins empty")
	case volume != nil && volume.Terminating:
		if pod == nil || pod.Terminating || s.now.Sub(pod.Created) < makesWay {
			return wait("the volume of the former "+member+" is on its way out", time.Time{})
		}
		return do(DeletePod{Member: member, PodUID: pod.UID}, "the old volume goes when no pod uses it; this one belongs to no member")
	case s.o.Record.Kept[member]:
		// The guard keeps what a lost cluster left, beside the new data.
	case volume != nil && volume.Bound && !retired && pod == nil,
		volume != nil && !volume.Own() && (volume.Holds == HoldsForeign || s.failedJoins(member) >= 3):
		return unknownVolume(volume)
	}
	// A learner that was never seen to run has most likely left nothing, and the next
	// one may have its volume. If there is something, the guard says so in time.
	return pass()
}

// templateFor is the template that a pod of the ordinal is made from now.
func (s *situation) templateFor(ordinal int32) string {
	if ordinal < s.o.Set.Partition && s.o.Set.CurrentTemplate != "" {
		return s.o.Set.CurrentTemplate
	}
	return s.o.Set.Template
}

// makesWay is how long a pod that was made beside a volume that is being deleted
// is left alone: it has not mounted it, and mostly the volume goes at once.
const makesWay = 15 * time.Second
