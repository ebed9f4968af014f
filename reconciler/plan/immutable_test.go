package plan

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/situation"
)

func TestImmutable(t *testing.T) {
	checkRule(t, immutable, []ruleCase{
		{name: "37: another number of members is the business of scale", change: func(s *situation.Situation) { s.Desired.Spec.Replicas = 5 }},
		{name: "what it was made with passes"},
		{name: "without a StatefulSet there is nothing to compare", change: func(s *situation.Situation) { s.Observed.Set = nil }},
		{name: "5: storage and TLS are refused together", change: func(s *situation.Situation) {
			s.Observed.Set.Immutable = []string{"spec.storage.size (2Gi to 1Gi)", "spec.tls.mode"}
		}, want: "Refused: spec.storage.size (2Gi to 1Gi) cannot be changed on a live cluster: no volume shrinks; and spec.tls.mode cannot be changed on a live cluster: members of two modes"},
		{name: "5: what nobody has explained is refused all the same", change: func(s *situation.Situation) {
			s.Observed.Set.Immutable = []string{"spec.later"}
		}, want: "Refused: spec.later cannot be changed on a live cluster; revert that part of the file"},
	})
}

// 5: every change that the shell calls immutable has its reason and its way.
func TestObstaclesAreExplained(t *testing.T) {
	for _, change := range []string{
		"spec.storage.size (2Gi to 1Gi)", "spec.storage.storageClassName", "spec.tls.mode", "spec.tls.secrets.peer (a to b)",
		"spec.network.ipFamilies[0] (IPv4 to IPv6)", "spec.network.clusterDomain (to x)", "the cluster domain (to x, which is the daemon's)",
	} {
		h := explain([]string{change}).hold
		if !strings.HasPrefix(h.Message, change+" cannot be changed on a live cluster: ") || h.Do == "revert that part of the file" {
			t.Errorf("%s: %s", change, h)
		}
	}
}
