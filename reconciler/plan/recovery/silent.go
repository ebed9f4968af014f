package recovery

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// silent holds while members on nodes that do not report to Kubernetes may have a quorum: a partition that
// separates the nodes from the control plane and from quorate need not separate them from clients. Members count
// as lost only when their Node objects are deleted or tainted out-of-service; otherwise a second etcd could start
// beside the first.
func silent(s *situation.Situation, oneShot string) verdict.Verdict {
	all, answers := s.Remnants(), 0
	var on []string
	for _, m := range all {
		switch p := s.Observed.Pod(m.Name); {
		case m.Member != nil:
			answers++
		case p != nil && p.SilentNode != "":
			on = append(on, fmt.Sprintf("%s on node %s", m.Name, p.SilentNode))
		}
	}
	if len(on) == 0 || answers+len(on) < state.Quorum(len(all)) {
		return verdict.Pass()
	}
	message := fmt.Sprintf("it is unknown whether the cluster has a quorum: %d of %s answer, and these are on nodes that do not report to Kubernetes, where "+
		"they may serve: %s", answers, state.Plural(len(all), "member"), strings.Join(on, ", "))
	do := "bring the nodes, or their way to the control plane, back; of a node that is off for certain delete the Node object, or taint it " +
		"(`kubectl taint node NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`), and its members count as lost"
	if oneShot != "" {
		message += "; spec.recovery is not begun, because it would stop a cluster that may serve"
	}
	return verdict.Verdict{Hold: &decision.Hold{Kind: decision.Unreachable, Message: message, Detail: s.Observed.Round().Problem, Do: do, Again: verdict.Soon}}
}
