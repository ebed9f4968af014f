package observe

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// goneNode is a node that is not ready or does not exist, so that a pod cannot start on it.
type goneNode struct {
	since time.Time
	// stopped reports that the Node object does not exist or is tainted out-of-service. Otherwise the node may recover.
	stopped bool
}

// goneNodes returns the gone nodes to which volumes of pods are tied, by pod. Nodes and volumes are read only for pods
// that are not ready, so a healthy cluster costs no requests.
func (o *Observer) goneNodes(ctx context.Context, rec *record.Record, live liveCluster) (map[string]goneNode, error) {
	gone := map[string]goneNode{}
	for _, p := range live.pods {
		if pods.Ready(p) {
			continue
		}
		is, node, err := o.nodeGone(ctx, p, live.claim(naming.Claim(rec.Claims(), p.Name)))
		if err != nil {
			return nil, err
		}
		if is {
			gone[p.Name] = node
		}
	}
	return gone, nil
}

// reportingNodes tells of each pod whether its node reports: what is said of a pod on one
// that does not was so once. That matters only where the members do not answer, so nodes
// are read only then; where quorate may not read them, of no pod on a node: a ready one
// counts, as Kubernetes itself calls the pods of a silent node unready before long, and one
// that is not ready does not.
func (o *Observer) reportingNodes(ctx context.Context, g gathered) (map[string]kubelet, error) {
	if len(g.rounds) == 0 || g.rounds[len(g.rounds)-1].Problem == "" {
		return nil, nil
	}
	kubelets := map[string]kubelet{}
	for _, p := range g.pods {
		if p.Spec.NodeName == "" {
			kubelets[p.Name] = kubelet{reports: true} // nothing of it runs anywhere
			continue
		}
		k, known, err := o.kubeletOf(ctx, p)
		if err != nil {
			return nil, err
		}
		if known {
			kubelets[p.Name] = k
		}
	}
	return kubelets, nil
}

// kubelet is the state of the kubelet that runs a pod.
type kubelet struct {
	// reports is true when the node exists and is ready. stopped is true when the Node object does not exist or is
	// tainted out-of-service, so that no container of the pod runs.
	reports, stopped bool
}

// kubeletOf returns the state of a pod's kubelet. known is false when quorate may not read nodes.
func (o *Observer) kubeletOf(ctx context.Context, p *corev1.Pod) (k kubelet, known bool, err error) {
	node, known, err := o.nodeOf(ctx, p)
	return kubelet{reports: node != nil && reports(*node), stopped: node == nil || outOfService(*node)}, known, err
}

// outOfService reports whether a node is tainted out-of-service.
func outOfService(n corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// nodeOf is the node on which a pod is, nil where it does not exist; that is not known
// where quorate may not read nodes.
func (o *Observer) nodeOf(ctx context.Context, p *corev1.Pod) (node *corev1.Node, known bool, err error) {
	nodes, err := o.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + p.Spec.NodeName})
	switch {
	case apierrors.IsForbidden(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("get the node of %s: %w", p.Name, err)
	}
	for i := range nodes.Items {
		if nodes.Items[i].Name == p.Spec.NodeName {
			return &nodes.Items[i], true, nil
		}
	}
	return nil, true, nil
}

// lostNodes are the nodes that do not report, or do not exist, of pods that should have
// stopped by now, by pod. Kubernetes never ends the deletion of such a pod. Nodes are read only
// for those.
func (o *Observer) lostNodes(ctx context.Context, live liveCluster) (map[string]string, error) {
	lost := map[string]string{}
	for _, p := range live.pods {
		if p.Spec.NodeName == "" || p.DeletionTimestamp == nil || o.Now().Before(p.DeletionTimestamp.Time) {
			continue
		}
		k, known, err := o.kubeletOf(ctx, p)
		if err != nil {
			return nil, err
		}
		if known && !k.reports {
			lost[p.Name] = p.Spec.NodeName
		}
	}
	return lost, nil
}

// reports reports whether a node is ready by Kubernetes.
func reports(n corev1.Node) bool {
	c := readyCondition(n)
	return c != nil && c.Status == corev1.ConditionTrue
}

// readyCondition is what Kubernetes says of whether a node is ready, nil for nothing.
func readyCondition(n corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return nil
}

// describeDamage describes what the pods, their claims and their nodes tell of lost
// data.
func (v *View) describeDamage(g gathered) {
	for i, p := range g.pods {
		pod := &v.Observed.Pods[i] // described in this order
		claim := g.claim(v.ClaimName(pod.Name))
		k, known := g.kubelets[p.Name]
		pod.NodeSilent, pod.Reported = known && !k.reports && (pod.Ready || pod.EtcdReady), k.reports && !pod.Ready
		if known && !k.reports && !k.stopped {
			pod.SilentNode = p.Spec.NodeName
		}
		pod.LostNode = g.lost[p.Name]
		pod.Unclaimed = claim == nil && pods.Mounts(p, v.ClaimName(pod.Name))
		if pod.Ready {
			continue
		}
		pod.DownSince = pods.NotReadySince(p)
		pod.Damage, pod.Found = pods.Damage(p), pods.Found(p)
		if claim != nil && claim.Status.Phase == corev1.ClaimLost {
			pod.Damage = state.DamageLost
		}
		if pod.Damage != "" {
			pod.DamageSince = pods.NotReadySince(p)
		}
		gone, is := g.nodes[pod.Name]
		pod.NodeGone, pod.NodeGoneSince, pod.NodeStopped = is, gone.since, gone.stopped
	}
}

// nodeGone reports whether the node to which a pod's volume is tied is not ready or does not exist. It returns false
// for a volume that other nodes can mount, and where quorate may not read nodes. A volume names its node by a label,
// which can differ from the node's name.
func (o *Observer) nodeGone(
	ctx context.Context, p *corev1.Pod, claim *corev1.PersistentVolumeClaim,
) (bool, goneNode, error) {
	var nodes *corev1.NodeList
	host, err := o.hostOfVolume(ctx, claim)
	if err == nil && host != "" {
		nodes, err = o.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: corev1.LabelHostname + "=" + host})
	}
	switch {
	case apierrors.IsForbidden(err):
		return false, goneNode{}, nil
	case err != nil:
		return false, goneNode{}, fmt.Errorf("get the node of %s: %w", p.Name, err)
	case host == "":
		return false, goneNode{}, nil
	case len(nodes.Items) == 0:
		return true, goneNode{since: pods.NotReadySince(p), stopped: true}, nil
	}
	if c := readyCondition(nodes.Items[0]); c != nil && c.Status != corev1.ConditionTrue {
		return true, goneNode{since: c.LastTransitionTime.Time, stopped: outOfService(nodes.Items[0])}, nil
	}
	return false, goneNode{}, nil
}

// hostOfVolume is the host name of the only node on which the volume of a claim is,
// "" where it is on any or on none in particular.
func (o *Observer) hostOfVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	if claim == nil || claim.Spec.VolumeName == "" {
		return "", nil
	}
	volume, err := o.Kube.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return "", err
	}
	a := volume.Spec.NodeAffinity
	if a == nil || a.Required == nil || len(a.Required.NodeSelectorTerms) != 1 {
		return "", nil
	}
	for _, e := range a.Required.NodeSelectorTerms[0].MatchExpressions {
		if e.Key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
			return e.Values[0], nil
		}
	}
	return "", nil
}
