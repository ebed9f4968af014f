// Package stalled has the waits that several rules share: for a pod, a volume claim or a
// StatefulSet that is being deleted, and for the StatefulSet controller. Each says, when it
// has lasted too long, what keeps Kubernetes, and what a person can do. It is pure.
package stalled

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// Controller waits for the StatefulSet controller to do what it was told last.
func Controller(s *situation.Situation, message string) verdict.Verdict {
	return verdict.Wait(s, message, s.Observed.Set.ChangedAt, s.AskController())
}

// Creation waits for the StatefulSet controller to create the pod of a member.
func Creation(s *situation.Situation, member string) verdict.Verdict {
	since := s.Observed.Set.StatusAt
	if since.IsZero() {
		since = s.Observed.Set.ChangedAt
	}
	return verdict.Wait(s, fmt.Sprintf("the pod of %s does not exist; the StatefulSet creates it", member), since, s.AskController()).At(member)
}

// Gone waits for a pod that is to stop: for its node, or for whoever is to delete it.
//
//	the pod                       when that lasts
//	is not being deleted          the StatefulSet controller
//	is on a node that is silent   nobody knows whether etcd runs there: a person, or the node
//	has finalizers                whoever has set them
//	else                          its kubelet
func Gone(s *situation.Situation, p *state.Pod, message string) verdict.Verdict {
	describe := fmt.Sprintf("`kubectl -n %s describe pod %s`", s.Desired.Namespace, p.Name)
	switch {
	case !p.Terminating && s.Observed.Set != nil:
		return Controller(s, message).At(p.Name)
	case p.LostNode != "":
		return verdict.Wait(s, fmt.Sprintf("%s; its node %s does not report, or is gone, so that etcd may still run there", message, p.LostNode), p.GoingSince, lostNode(s, p)).At(p.Name)
	case p.Finalizers != "":
		return verdict.Wait(s, fmt.Sprintf("%s; finalizers keep it: %s", message, p.Finalizers), p.GoingSince,
			"find out why what has set them does not end: "+describe).At(p.Name)
	}
	return verdict.Wait(s, message, p.GoingSince, "find out why its node does not stop it: "+describe).At(p.Name)
}

// lostNode is what a person can do about a pod on a node that does not report. Kubernetes
// never finishes its deletion: it cannot know that its containers have stopped either.
func lostNode(s *situation.Situation, p *state.Pod) string {
	return fmt.Sprintf("bring node %s back; only if it is switched off for certain, `kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`, which frees its volumes too, "+
		"or, where the node is deleted, `kubectl -n %s delete pod %s --force --grace-period=0`; on a node that still runs this starts a second etcd beside the first, on the same volume where that can move, and data is lost",
		p.LostNode, p.LostNode, s.Desired.Namespace, p.Name)
}

// Claim waits for a volume claim that is being deleted.
func Claim(s *situation.Situation, v *state.Volume, message string) verdict.Verdict {
	describe := fmt.Sprintf("`kubectl -n %s describe pvc %s`", s.Desired.Namespace, v.Claim)
	if v.Finalizers == "" {
		return verdict.Wait(s, message, v.GoingSince, "find out which pod still uses it: "+describe+" (Used By); or check that kube-controller-manager runs").At(v.Member)
	}
	return verdict.Wait(s, fmt.Sprintf("%s; finalizers keep it: %s", message, v.Finalizers), v.GoingSince,
		"find out why what has set them does not end (a snapshot, a backup tool, the storage driver): "+describe+"; take them off by hand only if that is gone for good").At(v.Member)
}

// Set waits for a StatefulSet that is being deleted.
func Set(s *situation.Situation) verdict.Verdict {
	message := "the StatefulSet is being deleted"
	if situation.Orphans(s.Observed.Set) {
		message += "; its pods stay, and are taken over by the next one"
	}
	return verdict.Wait(s, message, s.Observed.Set.GoingSince,
		"check that kube-controller-manager runs, and what keeps its garbage collector: an API that does not answer (`kubectl get apiservices`) or a finalizer of somebody else's "+
			"(`kubectl -n "+s.Desired.Namespace+" get statefulset "+s.Desired.Name+" -o yaml`); do not take finalizers off by hand: its pods would go with it")
}
