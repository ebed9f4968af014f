package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/schema"
)

// loss is a member that does not come back by itself.
type loss struct {
	member string
	why    string
	// since is when it was lost; zero for a loss that nobody waits for to pass: one
	// that Git itself has asked for, or that was seen twice.
	since time.Time
	// asked: nothing is lost, and Git asks for another member.
	asked bool
}

// repair replaces a member whose data is lost for good: remove it, delete its
// volume, add a learner of the same name, promote that. It is the last way, so
// everything else must be beyond doubt: one candidate, the others healthy, the
// time of grace over, a backup taken.
//
// A pod that is gone, crashes, is out of memory or finds its disk full is no
// candidate: its data is there, and removing the member would not help it. Nor is
// one that has somebody else's data on its volume, see foreignVolume.
func repair(s *situation) verdict {
	if !s.formed() || s.o.Set == nil {
		return pass()
	}
	if v := s.foreignVolumes(); !v.silent() {
		return v
	}
	if s.o.Record.Replacing != "" {
		return s.takeOver(s.o.Record.Replacing)
	}
	lost := s.losses()
	switch {
	case len(lost) == 0:
		return s.fillGap()
	case len(s.o.Record.Members) == 1:
		return unhealthy(describeLosses(lost)+", and it is the only member",
			"nothing is left to repair it from: restore a backup into a new cluster, or bring its volume back")
	}
	if v := s.listed(); !v.silent() {
		return v
	}
	if v := s.repairable(lost); !v.silent() {
		return v
	}
	l := lost[0]
	id := s.o.Record.Members[l.member]
	if !s.wants(l.member) {
		return do(BeginLeave{Member: l.member, ID: id, Why: fmt.Sprintf("%s, and Git wants %s", l.why, members(int(s.d.Spec.Replicas)))},
			"of the members that are too many the unhealthy one goes first")
	}
	if v := s.backupFirst(s.d.Spec.Upgrade.Backup, backupWish{
		avoid: l.member, what: "the repair of " + l.member, setting: "spec.upgrade.backup", purpose: "repair " + l.member,
		why: "repair of " + l.member, reason: "before " + l.member + " is replaced, while the others still have everything",
	}); !v.silent() {
		return v
	}
	first := "a member that is down counts against the quorum"
	if p := s.o.pod(l.member); p != nil && s.wellNow(*p) {
		first = "no two members share a name"
	}
	return do(BeginLeave{Member: l.member, ID: id, Why: l.why, Replace: true},
		l.why+"; it is removed first, because "+first+", and then joins anew")
}

// foreignVolumes is foreignVolume for whoever has one.
func (s *situation) foreignVolumes() verdict {
	for i := range s.o.Pods {
		if v := s.foreignVolume(&s.o.Pods[i]); !v.silent() {
			return v
		}
	}
	return pass()
}

// foreignVolume holds while a pod has found data on its volume that may be
// somebody else's only copy. Only the pod knows of it: whatever lets that go, or
// removes its member, would end in deleting the volume.
func (s *situation) foreignVolume(p *Pod) verdict {
	if p == nil || p.Damage != DamageForeign {
		return pass()
	}
	way := "restore a backup into a new cluster"
	if s.memberCount() > 1 {
		way = "if nobody needs that data, or its PersistentVolume is set to Retain, delete the claim and its pod by hand, and a new member takes its place"
	}
	found, _, _ := strings.Cut(p.Trouble, "; ") // the guard ends with an advice of its own
	return unhealthy(
		fmt.Sprintf("volume claim %s holds what is not the data of %s in this cluster (%s); quorate never deletes what may be somebody's only copy", claimOf(p.Name), p.Name, found),
		"bring the right volume back under that claim; or "+way)
}

// repairable says why nothing is replaced now.
func (s *situation) repairable(lost []loss) verdict {
	l := lost[0]
	if problem := s.unremovable(s.o.round(), l.member); problem != "" {
		return unhealthy(describeLosses(lost)+"; "+problem,
			"nothing is replaced without a quorum of the others: bring members back, or restore a backup into a new cluster")
	}
	mode, after := s.d.Spec.Repair.Mode, repairAfter(s.d.Spec)
	switch {
	case mode == schema.RepairNever && !l.asked:
		return unhealthy(describeLosses(lost), "spec.repair.mode is Never: set it to Automatic to have the member replaced, or bring its volume back")
	case len(lost) > 1 && mode != schema.RepairOneByOne:
		return unhealthy(describeLosses(lost)+"; that two members are lost at once has mostly one cause, and replacing them would hide it",
			"mend the cause, or set spec.repair.mode to OneByOne to have them replaced one after the other")
	}
	if problem := s.othersWell(lost); problem != "" {
		return unhealthy(describeLosses(lost)+"; it is replaced when the others are healthy, but "+problem, "look at the member named here")
	}
	if left := after - s.now.Sub(l.since); left > 0 && s.wants(l.member) {
		// No countdown: each of its seconds would be a line in the log.
		v := wait(fmt.Sprintf("%s; it is replaced when that has lasted %s, unless it comes back", l.why, after), l.since)
		v.hold.Again = min(left, later)
		return v
	}
	return s.seenTwice(l.member)
}

// seenTwice wants two looks in which the others can do without a member.
func (s *situation) seenTwice(member string) verdict {
	if len(s.o.Rounds) < 2 {
		return confirmIn(instant, "that the others can do without a member counts when it was seen twice")
	}
	before := &s.o.Rounds[len(s.o.Rounds)-2]
	if s.o.round().At.Sub(before.At) < Between {
		return confirmIn(Between, "the two looks at the members were too close to each other")
	}
	if problem := s.unremovable(before, member); problem != "" {
		return confirmIn(Between, "healthy now, but a moment ago: "+problem)
	}
	return pass()
}

// repairAfter is how long a loss must last.
func repairAfter(spec schema.ClusterSpec) time.Duration {
	if spec.Repair.After == nil {
		return schema.DefaultRepairAfter
	}
	return spec.Repair.After.Duration
}

// losses are the members whose data is lost, those that Git does not want any
// more first.
func (s *situation) losses() []loss {
	var lost []loss
	for _, p := range s.o.Pods { // from the highest ordinal down
		if !s.isMember(p.Name) || s.wellNow(p) {
			continue
		}
		if l := s.lossOf(p); l != nil {
			lost = append(lost, *l)
		}
	}
	if name, why, proven := s.corruptMember(); proven && s.isMember(name) && !containsLoss(lost, name) {
		// It was seen twice, and etcd may serve nobody until it is gone.
		lost = append(lost, loss{member: name, why: why})
	}
	if name := s.nextMisplaced(); name != "" && len(lost) == 0 {
		lost = append(lost, loss{
			member: name, asked: true,
			why: fmt.Sprintf("the volume of %s is of %s, and Git asks for %s", name, className(s.o.volume(name).Class), className(s.o.Set.ClaimClass)),
		})
	}
	return lost
}

// lossOf says why the data of a pod is lost for good, or nil.
func (s *situation) lossOf(p Pod) *loss {
	switch {
	case p.Damage == DamageEmpty:
		return &loss{member: p.Name, since: p.DamageSince, why: p.Name + " has lost its data: its volume is empty"}
	case p.Damage == DamageOutdated:
		return &loss{member: p.Name, since: p.DamageSince, why: "the volume of " + p.Name + " holds what an earlier member of that name has left"}
	case p.Damage == DamageCorrupt:
		return &loss{member: p.Name, since: p.DamageSince, why: "the data of " + p.Name + " is corrupt"}
	case p.Damage == DamageLost:
		return &loss{member: p.Name, since: p.DamageSince, why: "the volume behind the claim of " + p.Name + " does not exist any more"}
	case p.NodeGone:
		return &loss{member: p.Name, since: p.NodeGoneSince, why: "the node that has the volume of " + p.Name + " is gone"}
	}
	return nil
}

// othersWell says which of the members that are not lost is not healthy, or "".
func (s *situation) othersWell(lost []loss) string {
	for _, name := range s.byOrdinal() {
		p := s.o.pod(name)
		switch {
		case containsLoss(lost, name):
		case p == nil:
			return "the pod of " + name + " does not exist"
		case !s.wellNow(*p):
			return name + ": " + s.cause(*p)
		}
	}
	return ""
}

func containsLoss(lost []loss, member string) bool {
	return slices.ContainsFunc(lost, func(l loss) bool { return l.member == member })
}

func describeLosses(lost []loss) string {
	var texts []string
	for _, l := range lost {
		texts = append(texts, l.why)
	}
	return strings.Join(texts, ", ")
}

// fillGap has a member join whose place is empty below that of another, in the midst
// of a roll: the StatefulSet waits for the pod of that place. Between two rolls it
// waits its turn, see grow.
func (s *situation) fillGap() verdict {
	if !s.rolling() || s.o.Record.Joining != nil || s.o.Record.Leaving != nil {
		return pass()
	}
	names := s.byOrdinal()
	if name := s.vacant(min(ordinalOf(names[len(names)-1]), s.d.Spec.Replicas)); name != "" {
		return s.takeOver(name)
	}
	return pass()
}

// vacant is the lowest place below an ordinal that has a pod and no member: nobody
// makes that pod ready. Empty for none.
func (s *situation) vacant(below int32) string {
	for ordinal := range below {
		name := podName(s.d.Name, ordinal)
		if p := s.o.pod(name); !s.isMember(name) && p != nil && !p.Ready {
			return name
		}
	}
	return ""
}

// takeOver makes room for the next member of a name, and has it join.
func (s *situation) takeOver(member string) verdict {
	if !s.wants(member) {
		return do(EndReplace{Member: member}, fmt.Sprintf("Git wants %s now", members(int(s.d.Spec.Replicas))))
	}
	if v := s.listed(); !v.silent() {
		return v
	}
	if v := s.alignPartition(ordinalOf(member)); !v.silent() {
		return v
	}
	return s.rejoin(member, "it takes the place of the member that was removed", true)
}

// alignPartition lets a member that comes back empty have a template that it can
// start with, where the old one's etcd is too old for the cluster: every other
// member has been upgraded, and the cluster version with them.
func (s *situation) alignPartition(ordinal int32) verdict {
	version := s.clusterVersion()
	if set := s.o.Set; s.givenUp() && ordinal >= set.Partition && set.Partition < set.Replicas {
		return do(ResizeSet{SetUID: set.UID, From: set.Replicas, To: set.Replicas, Partition: set.Replicas},
			"Git no longer wants the template that the new member would get; it comes as what the others were")
	}
	if ordinal >= s.o.Set.Partition || version == "" || !older(line(s.o.Set.CurrentVersion), line(version)) {
		return pass()
	}
	switch {
	case line(s.o.Set.Version) == line(version) && s.othersHave(ordinal, s.o.Set.Template):
		return do(ResizeSet{SetUID: s.o.Set.UID, From: s.o.Set.Replicas, To: s.o.Set.Replicas, Partition: ordinal},
			fmt.Sprintf("the cluster version is %s, and a new member with etcd %s could not start", version, s.o.Set.CurrentVersion))
	case !s.started() && s.othersHave(ordinal, s.d.Template):
		return do(s.startRoll(), "the others have this template already, and the new member can start with no other")
	}
	return refuse(
		fmt.Sprintf("%s cannot take its place: it would come back with etcd %s, and the cluster version is %s",
			podName(s.d.Name, ordinal), s.o.Set.CurrentVersion, version),
		"take the last commit back, so that Git asks again for what the other members have; the member joins then")
}

// othersHave says whether no pod of a member would be replaced if everything from
// the ordinal on got the template.
func (s *situation) othersHave(ordinal int32, template string) bool {
	for _, p := range s.o.Pods {
		if s.isMember(p.Name) && p.Ordinal >= ordinal && p.Template != template {
			return false
		}
	}
	return true
}
