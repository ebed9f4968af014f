package recovery

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// Reachable tells a cluster that quorate cannot see from one that is lost. Silence is no
// proof of death: what keeps quorate out need not keep clients out. The readiness probe
// of each pod reads through a quorum, and the kubelet asks it every second: where enough
// pods are ready for a quorum, there is one. Nothing is done to such a cluster, and a
// recovery that Git asks for is recorded as refused: it would stop members that serve.
func Reachable(s *situation.Situation) verdict.Verdict {
	r := s.Observed.Round()
	if !s.Formed() || s.Observed.Set == nil || s.Observed.Record.Recovering != nil || r == nil || r.Problem == "" {
		return verdict.Pass()
	}
	var voters []string
	answers, denied := 0, false
	for _, m := range s.Remnants() {
		voters = append(voters, m.Name)
		if m.Member != nil && !m.Member.Denied {
			answers++ // it says itself how it is
		}
		denied = denied || (m.Member != nil && m.Member.Denied)
	}
	ready := Ready(s, voters)
	if quorum := state.Quorum(len(voters)); answers >= quorum || ready < quorum {
		return verdict.Pass()
	}
	oneShot := s.RequestedRecovery()
	if oneShot != "" && s.Observed.Record.RefusedRecovery != oneShot {
		return verdict.Do(action.RefuseRecovery{OneShot: oneShot},
			fmt.Sprintf("%d of %d members are ready, so that the cluster has a quorum: quorate cannot reach it, and there is nothing to recover from", ready, len(voters)))
	}
	v := Unreachable(s, ready, len(voters), denied)
	if oneShot != "" {
		v.Hold.Message += "; spec.recovery is refused, because it would stop them"
		v.Hold.Do = "take spec.recovery out of the file; " + v.Hold.Do
	}
	return v
}

// Ready counts the pods that are ready by the word of a kubelet that reports.
func Ready(s *situation.Situation, members []string) int {
	ready := 0
	for _, name := range members {
		if p := s.Observed.Pod(name); p != nil && p.Serving() {
			ready++
		}
	}
	return ready
}

// Unreachable is the hold for members that are ready and do not answer quorate.
func Unreachable(s *situation.Situation, ready, members int, denied bool) verdict.Verdict {
	message := fmt.Sprintf("quorate cannot reach the members, and the cluster has a quorum: %d of %d pods are ready, by a probe that reads through a quorum", ready, members)
	do := "check what keeps quorate from port 2379 of the pods: a NetworkPolicy, a service mesh with mutual TLS of its own, authentication in etcd, certificates, or a missing route to the pods' addresses; " +
		"the members serve meanwhile: neither delete nor recover anything"
	if denied {
		message = fmt.Sprintf("the members answer quorate only as a user of etcd, and the cluster has a quorum: %d of %d pods are ready", ready, members)
		do = "authentication was switched on in etcd, and quorate is not let in as user root: give that user the role root, and quorate a client certificate with the common name root, or, with tls.mode Disabled, put the password that root has into the Secret of spec.auth.rootPasswordSecret; or switch authentication off again with `etcdctl auth disable`; " +
			"neither delete nor recover anything"
	}
	return verdict.Verdict{Hold: &decision.Hold{
		Kind: decision.Unreachable, Message: message, Detail: s.Observed.Round().Problem, Do: do, Again: verdict.Soon,
	}}
}
