package plan

import "testing"

func TestImmutable(t *testing.T) {
	checkRule(t, immutable, []ruleCase{
		{name: "what it was made with passes"},
		{name: "without a StatefulSet there is nothing to compare", change: func(s *situation) { s.o.Set, s.d.Spec.Replicas = nil, 5 }},
		{name: "37: growing is refused", change: func(s *situation) { s.d.Spec.Replicas = 5 }, want: "Refused: spec.replicas is 5, but the cluster was made with 3 members"},
		{name: "37: shrinking is refused", change: func(s *situation) { s.d.Spec.Replicas = 1 }, want: "set spec.replicas back to 3"},
		{name: "50: the record counts, not a StatefulSet that was scaled by hand", change: func(s *situation) { s.o.Set.Replicas = 5 }},
		{name: "before it has formed the StatefulSet counts", change: with(unformed, func(s *situation) { s.o.Set.Replicas = 1 }), want: "made with 1 member,"},
		{name: "5: storage and TLS are refused together", change: func(s *situation) {
			s.o.Set.Immutable = []string{"spec.storage.size (1Gi to 2Gi)", "spec.tls.mode"}
		}, want: "Refused: spec.storage.size (1Gi to 2Gi) and spec.tls.mode cannot be changed on a live cluster yet; revert that part of the file"},
	})
}
