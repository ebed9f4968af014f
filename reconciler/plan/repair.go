package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/objects"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// repair replaces a member whose data is lost permanently: remove it, delete its
// volume, add a learner of the same name, promote that. It is the last way, so
// everything else must be beyond doubt: one candidate, the others healthy, the
// time of grace over, a backup taken.
//
// A pod that is gone, crashes, is out of memory or finds its disk full is no
// candidate: its data is there, and removing the member would not help it. Nor is
// one that has foreign data on its volume, see foreignVolume.
func repair(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Observed.Set == nil {
		return verdict.Pass()
	}
	if v := foreignVolumes(s); !v.Silent() {
		return v
	}
	if s.Observed.Record.Replacing != "" {
		return replaceMember(s, s.Observed.Record.Replacing)
	}
	lost := losses(s)
	switch {
	case len(lost) == 0:
		return fillGap(s)
	case len(s.Observed.Record.Members) == 1:
		return verdict.Unhealthy(describeLosses(lost).Text+", and it is the only member",
			"nothing is left to repair it from: restore a backup into a new cluster, or bring its volume back").About(describeLosses(lost))
	}
	if v := listed(s); !v.Silent() {
		return v
	}
	if v := repairable(s, lost); !v.Silent() {
		return v
	}
	l := lost[0]
	id := s.Observed.Record.Members[l.Member]
	if !s.WantsMember(l.Member) {
		return verdict.Do(action.BeginLeave{Member: l.Member, ID: id, Why: fmt.Sprintf("%s, and Git wants %s", l.Why, state.Plural(int(s.Desired.Spec.Replicas), "member"))},
			"of the members that are too many the unhealthy one goes first").Measured("%s", l.Detail)
	}
	if v := backupFirst(s, s.Desired.Spec.Upgrade.Backup, backupNeed{
		avoid: l.Member, what: "the repair of " + l.Member, setting: "spec.upgrade.backup", purpose: state.ForRepair(l.Member),
		why: "repair of " + l.Member, reason: "before " + l.Member + " is replaced, while the others still have everything",
	}); !v.Silent() {
		return v
	}
	first := "a member that is down counts against the quorum"
	if p := s.Observed.Pod(l.Member); p != nil && s.HealthyNow(*p) {
		first = "no two members share a name"
	}
	leave := verdict.Do(action.BeginLeave{Member: l.Member, ID: id, Why: l.Why, Replace: true, Serving: l.Serving, Asked: l.Asked},
		l.Why+"; it is removed first, because "+first+", and then joins as a new member").Measured("%s", l.Detail)
	if l.Asked {
		return stopping(onCompared(s, leave), l.Member)
	}
	return leave
}

// foreignVolumes is foreignVolume for each pod.
func foreignVolumes(s *situation.Situation) verdict.Verdict {
	for i := range s.Observed.Pods {
		if v := foreignVolume(s, &s.Observed.Pods[i]); !v.Silent() {
			return v
		}
	}
	return verdict.Pass()
}

// foreignVolume holds while a pod has found data on its volume that may be
// the only copy of foreign data. Only the pod knows of it: whatever lets that go, or
// removes its member, would end in deleting the volume.
func foreignVolume(s *situation.Situation, p *state.Pod) verdict.Verdict {
	if p == nil || p.Damage != state.DamageForeign {
		return verdict.Pass()
	}
	way := "restore a backup into a new cluster"
	if s.MemberCount() > 1 {
		way = "if that data is not needed, or its PersistentVolume is set to Retain, delete the claim and its pod, and a new member takes its place"
	}
	what := fmt.Sprintf("volume claim %s holds what is not the data of %s in this cluster", s.Claim(p.Name), p.Name)
	if p.Found != "" {
		what += " (guard: " + p.Found + ")"
	}
	return verdict.Unhealthy(what+"; quorate never deletes what may be the only copy",
		"bring the right volume back under that claim; or "+way).At(p.Name)
}

// repairable tells why nothing is replaced now.
func repairable(s *situation.Situation, lost []situation.Loss) verdict.Verdict {
	l, what := lost[0], describeLosses(lost)
	if problem := s.Unremovable(s.Observed.Round(), l.Member); problem != "" {
		return verdict.Unhealthy(what.Text+"; "+problem,
			"nothing is replaced without a quorum of the others: bring members back, or restore a backup into a new cluster").About(what)
	}
	mode := s.Desired.Spec.Repair.Mode
	switch {
	case mode == schema.RepairNever && !l.Asked:
		return verdict.Unhealthy(what.Text, "spec.repair.mode is Never: set it to Automatic to have the member replaced, or bring its volume back").About(what)
	case len(lost) > 1 && mode != schema.RepairOneByOne:
		return verdict.Unhealthy(what.Text+"; that two members are lost at once has mostly one cause, and replacing them would hide it",
			"fix the cause, or set spec.repair.mode to OneByOne to have them replaced one at a time").About(what)
	}
	if problem := s.OthersHealthy(lost); !problem.None() {
		return verdict.Unhealthy(what.Text+"; it is replaced when the others are healthy, but "+problem.Text, "check the member named here").About(problem)
	}
	after, unless := lossTime(s.Desired.Spec.Repair, l)
	if left := after - s.Now.Sub(l.Since); left > 0 && s.WantsMember(l.Member) {
		// No countdown: each of its seconds would be a line in the log.
		return verdict.WaitUntil(fmt.Sprintf("%s; it is replaced when that has lasted %s, unless it comes back%s", l.Why, after, unless), l.Since).
			About(what).Again(min(left, verdict.Later))
	}
	if why, do := situation.KeptOn(s, s.Observed.Volume(l.Member)); why != "" && s.WantsMember(l.Member) {
		return verdict.Unhealthy(l.Why+"; it is not replaced, because "+why, do).At(l.Member)
	}
	if v := unserving(s, l); !v.Silent() {
		return v
	}
	return seenTwice(s, l.Member)
}

// unserving wants the leader to say that it hears nothing from a member, before that is
// given up for lost. One that the list no longer has serves nobody.
func unserving(s *situation.Situation, l situation.Loss) verdict.Verdict {
	r := s.Observed.Round()
	m := r.ByID(s.Observed.Record.Members[l.Member])
	switch {
	case l.Serving || m == nil || m.Peers == state.PeersApart:
		return verdict.Pass()
	case !r.Listened:
		v := verdict.ConfirmIn(verdict.Instantly, "that "+l.Member+" does not serve counts when the leader was asked whether it hears it").At(l.Member)
		v.Hold.Listen = true
		return v
	}
	return verdict.Unhealthy(l.Why+"; but the leader does not say whether it hears "+l.Member+", which would mean that it serves",
		"let quorate read /metrics of the members at their client port; or, if it is lost for certain, delete its pod and its volume claim "+s.Claim(l.Member)).At(l.Member)
}

// seenTwice wants two rounds in which the others can do without a member.
func seenTwice(s *situation.Situation, member string) verdict.Verdict {
	if len(s.Observed.Rounds) < 2 {
		return verdict.ConfirmIn(verdict.Instantly, "that the others can do without a member counts when it was seen twice")
	}
	before := &s.Observed.Rounds[len(s.Observed.Rounds)-2]
	if s.Observed.Round().At.Sub(before.At) < state.Between {
		return verdict.ConfirmIn(state.Between, "the two checks of the members were too close to each other")
	}
	if problem := s.Unremovable(before, member); problem != "" {
		return verdict.ConfirmIn(state.Between, "healthy now, but a moment ago: "+problem)
	}
	return verdict.Pass()
}

// lossTime is how long a loss must last before the member is replaced, and what shortens that.
func lossTime(repair schema.RepairSpec, l situation.Loss) (after time.Duration, unless string) {
	after, set := schema.DefaultRepairAfter, repair.After
	if l.NodeSilent {
		after, set = schema.DefaultNodeTimeout, repair.NodeTimeout
		unless = "; or sooner, once its Node object is deleted or tainted node.kubernetes.io/out-of-service"
	}
	if set != nil {
		after = set.Duration
	}
	return after, unless
}

// losses are the members whose data is lost, those that Git does not want any
// more first.
func losses(s *situation.Situation) []situation.Loss {
	var lost []situation.Loss
	for _, p := range s.Observed.Pods { // from the highest ordinal down
		if !s.IsMember(p.Name) || s.Observed.Serving(s.Observed.Record.Members[p.Name]) != "" {
			continue
		}
		if l := s.LossOf(p); l != nil {
			lost = append(lost, *l)
		}
	}
	if why, proven := s.CorruptMember(); proven && s.IsMember(why.Member) {
		// It answers, so that it is not among those above. It was seen twice, and etcd may not serve until it is gone.
		lost = append(lost, situation.Loss{Member: why.Member, Why: why.Text, Detail: why.Detail, Serving: true})
	}
	if name := nextMisplaced(s); name != "" && len(lost) == 0 {
		lost = append(lost, situation.Loss{
			Member: name, Asked: true, Serving: true,
			Why: fmt.Sprintf("the volume of %s is of %s, and Git asks for %s", name, situation.ClassName(s.Observed.Volume(name).Class), situation.ClassName(s.Observed.Set.ClaimClass)),
		})
	}
	return lost
}

// nextMisplaced is the member that is replaced next for the sake of its volume, or
// "". That fixes nothing, so it waits for a cluster that is well, for its turn among
// the others, and for a window. One that Git does not want goes anyhow, in its turn.
func nextMisplaced(s *situation.Situation) string {
	members := slices.DeleteFunc(s.Misplaced(), func(name string) bool { return !s.WantsMember(name) })
	r := s.Observed.Round()
	if len(members) == 0 || r == nil || !s.Replaceable() || s.Rolling() || !s.HealthProblem(r).None() || !s.PodProblem().None() || !hashProblem(s).None() {
		return ""
	}
	if !objects.Fight(s).Silent() || !fleet(s).Silent() || !s.WindowOpen() {
		return ""
	}
	if !volumes.Stay(s, members[0]).Silent() || !volumes.Try(s).Silent() {
		return ""
	}
	return members[0]
}

// describeLosses is about the first of them.
func describeLosses(lost []situation.Loss) situation.Remark {
	var texts, details []string
	for _, l := range lost {
		texts = append(texts, l.Why)
		if l.Detail != "" {
			details = append(details, l.Detail)
		}
	}
	return situation.Remark{Member: lost[0].Member, Text: strings.Join(texts, ", "), Detail: strings.Join(details, ", ")}
}

// fillGap has a member join whose place is empty below that of another, in the midst
// of a roll, also of one that the controller has yet to close: the StatefulSet waits for
// the pod of that place. Between two rolls it waits its turn, see grow.
func fillGap(s *situation.Situation) verdict.Verdict {
	closed := !s.Rolling() && s.Observed.Set.CurrentTemplate == s.Observed.Set.Template
	if closed || s.Observed.Record.Joining != nil || s.Observed.Record.Leaving != nil {
		return verdict.Pass()
	}
	names := s.ByOrdinal()
	if name := s.Vacant(min(naming.Ordinal(names[len(names)-1]), s.Desired.Spec.Replicas)); name != "" {
		return replaceMember(s, name)
	}
	return verdict.Pass()
}

// replaceMember makes room for the next member of a name, and has it join.
func replaceMember(s *situation.Situation, member string) verdict.Verdict {
	if !s.WantsMember(member) {
		return verdict.Do(action.EndReplace{Member: member}, fmt.Sprintf("Git wants %s now", state.Plural(int(s.Desired.Spec.Replicas), "member")))
	}
	if v := listed(s); !v.Silent() {
		return v
	}
	if v := alignPartition(s, naming.Ordinal(member)); !v.Silent() {
		return v
	}
	if s.FailedJoins(member) > 0 { // it may be what Git has said since that lets it start
		if v := createAsWanted(s, member); !v.Silent() {
			return v
		}
	}
	if v := volumes.Reshape(s, member); !v.Silent() {
		return v
	}
	return rejoin(s, member, "it takes the place of the member that was removed", true)
}

// alignPartition lets a member that comes back empty have a template that it can
// start with, where the old one's etcd is too old for the cluster: every other
// member has been upgraded, and the cluster version with them.
func alignPartition(s *situation.Situation, ordinal int32) verdict.Verdict {
	version := s.ClusterVersion()
	if set := s.Observed.Set; s.RollAbandoned() && ordinal >= set.Partition && set.Partition < set.Replicas {
		return verdict.Do(action.ResizeSet{SetUID: set.UID, From: set.Replicas, To: set.Replicas, Partition: set.Replicas},
			"Git no longer wants the template that the new member would get; it comes as what the others were")
	}
	if s.Surging() && s.Started() && ordinal < s.Observed.Set.Partition {
		return verdict.Do(action.ResizeSet{SetUID: s.Observed.Set.UID, From: s.Observed.Set.Replicas, To: s.Observed.Set.Replicas, Partition: ordinal},
			"no member is there, and the next one comes as Git wants it")
	}
	if ordinal >= s.Observed.Set.Partition || version == "" || !state.Older(state.Minor(s.Observed.Set.CurrentVersion), state.Minor(version)) {
		return verdict.Pass()
	}
	switch {
	case state.Minor(s.Observed.Set.Version) == state.Minor(version) && s.OthersHave(ordinal, s.Observed.Set.Template):
		return verdict.Do(action.ResizeSet{SetUID: s.Observed.Set.UID, From: s.Observed.Set.Replicas, To: s.Observed.Set.Replicas, Partition: ordinal},
			fmt.Sprintf("the cluster version is %s, and a new member with etcd %s could not start", version, s.Observed.Set.CurrentVersion))
	case !s.Started() && s.OthersHave(ordinal, s.Desired.Template):
		return verdict.Do(action.NewStartRoll(s), "the others have this template already, and the new member can start with no other")
	}
	return verdict.Refuse(
		fmt.Sprintf("%s cannot take its place: it would come back with etcd %s, and the cluster version is %s",
			naming.Member(s.Desired.Name, ordinal), s.Observed.Set.CurrentVersion, version),
		"take the last commit back, so that Git asks again for what the other members have; the member joins then")
}
