package plan

import "testing"

func TestImmutable(t *testing.T) {
	checkRule(t, immutable, []ruleCase{
		{name: "37: another number of members is the business of scale", change: func(s *situation) { s.d.Spec.Replicas = 5 }},
		{name: "what it was made with passes"},
		{name: "without a StatefulSet there is nothing to compare", change: func(s *situation) { s.o.Set = nil }},
		{name: "5: storage and TLS are refused together", change: func(s *situation) {
			s.o.Set.Immutable = []string{"spec.storage.size (1Gi to 2Gi)", "spec.tls.mode"}
		}, want: "Refused: spec.storage.size (1Gi to 2Gi) and spec.tls.mode cannot be changed on a live cluster yet; revert that part of the file"},
	})
}
