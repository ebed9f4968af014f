package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/situation"
)

func TestMend(t *testing.T) {
	// broken is a roll of 3.6.16 to "x" that broke orders-2, and Git wants 3.5 now.
	broken := with(runs(newVersion), down(2), leads(0), commit(oldVersion), func(s *situation.Situation) {
		s.Observed.Set.Template, s.Observed.Set.Partition = "x", 2
		podAt(s, 2).Template, podAt(s, 2).Trouble = "x", "ImagePullBackOff"
		for r := range s.Observed.Rounds {
			s.Observed.Rounds[r].ClusterVersion = "3.6.0"
		}
	})
	aimed := func(s *situation.Situation) { *s = *situation.Of(s.Desired, s.Observed, s.Now) }
	above := func(s *situation.Situation) { s.Observed.Set.Partition = 3 }
	checkRule(t, mend, []ruleCase{
		{name: "17: a quiet cluster passes"},
		{name: "an unformed cluster is the bootstrap's", change: unformed},
		{name: "62: first the roll is given up", change: with(broken, aimed), want: "set the StatefulSet's partition to 3: the rollout that broke orders-2 (ImagePullBackOff) is abandoned"},
		{name: "62: then the pod comes back as it was", change: with(broken, above, aimed), want: "restart orders-2 on 3.6.16: an abandoned rollout left it broken"},
		{name: "I17: not one that runs", change: with(broken, above, func(s *situation.Situation) { podAt(s, 2).Ready = true }, aimed)},
		{name: "I17: nor one whose trouble may pass", change: with(broken, above, created(2, 10*time.Second), aimed)},
		{name: "I17: nor one that only starts", change: with(broken, above, func(s *situation.Situation) { podAt(s, 2).Trouble = "" }, aimed)},
		{name: "one that the last roll made is no victim of another", change: with(broken, above, func(s *situation.Situation) { podAt(s, 2).Template = s.Observed.Set.CurrentTemplate }, aimed)},
		{name: "I14: not to a release that the cluster has left", change: with(broken, above, func(s *situation.Situation) { s.Observed.Round().ClusterVersion = "3.7.0" }, aimed)},
		{name: "a way up mends by its own roll", change: with(broken, above, func(s *situation.Situation) { s.Desired.Spec.Version = newVersion }, aimed)},
	})
}
