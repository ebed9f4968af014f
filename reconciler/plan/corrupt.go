package plan

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// corrupt holds a cluster whose members hold different data, which is the repair
// rule's where it is known which one is wrong. The alarm ends when all agree again, and
// the one that etcd accused is a member no longer.
func corrupt(s *situation.Situation) verdict.Verdict {
	why, proven := s.CorruptMember()
	switch looks := s.Observed.Compared(); {
	case len(looks) < 2:
		v := verdict.ConfirmIn(verdict.Instantly, "the members' data has not been compared twice yet")
		v.Hold.Compare = true
		return v
	case proven:
		return verdict.Unhealthy("alarm CORRUPT: "+why.Text, why.Member+" is replaced by a new member as soon as the others are healthy; etcd refuses to serve until then").About(why)
	case s.SameData(looks) && s.AccusedReplaced():
		return disarm(s, state.Corrupt, "all members hold the same data, and the one that did not is a member no longer")
	}
	do := "compare the members with `etcdctl endpoint hashkv --cluster`; then either delete the pod and the volume claim of the one that is wrong, " +
		"which is then replaced, or restore a backup into a new cluster, or, if all agree, end the alarm with `etcdctl alarm disarm`"
	if cause := s.MayDiverge(); cause != "" {
		do += "; how members come to differ: " + cause
	}
	return verdict.Unhealthy(fmt.Sprintf("%s: etcd refuses to serve, and quorate cannot prove which member is wrong: %s",
		situation.AlarmList(s.Observed.Round().Alarms), why.Text), do).About(why)
}
