package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/surge"
	"github.com/quorate/quorate/reconciler/pods"
)

// shutNode is a node that takes no new pod of a cluster, and why.
type shutNode struct{ name, why string }

// foresee has the budget let evictions go on while a roll waits for the node of the member that
// it restarts next: else a drain of that node and the roll would wait for each other.
func (o *Observer) foresee(ctx context.Context, v *View) (*View, error) {
	if v.Record == nil || !situation.Exclusive(v.Cluster.Spec, v.Observed, o.Now()) {
		return v, nil
	}
	g := v.gathered
	var err error
	if g.foreseen, err = o.shutNodes(ctx, v); err != nil || len(g.foreseen) == 0 {
		return v, err
	}
	return o.describe(g)
}

// ReadPlaces reads which members that a roll is about to stop have no node to come back to.
func (o *Observer) ReadPlaces(ctx context.Context, v *View) (err error) {
	if v.gathered.shut, err = o.shutNodes(ctx, v); err != nil {
		return fmt.Errorf("observe %s: %w", v.Cluster.Key(), err)
	}
	v.describePlaces(v.gathered.shut, nil)
	return nil
}

// shutNodes are the nodes that would not take a member back whose volume is there alone,
// by pod. Read only of pods that a roll is about to stop, or stops in time.
func (o *Observer) shutNodes(ctx context.Context, v *View) (map[string]shutNode, error) {
	shut := map[string]shutNode{}
	for i, p := range v.gathered.pods {
		if seen := &v.Observed.Pods[i]; !seen.Ready || seen.Template == v.Desired.Template && !seen.Stale { // described in this order
			continue
		}
		node, _, err := o.nodeOf(ctx, p)
		if err != nil {
			return nil, err
		}
		why := pods.ShutTo(node, v.Cluster.Spec.PodTemplate.Spec.Tolerations)
		if why == "" {
			continue
		}
		host, err := o.hostOfVolume(ctx, v.gathered.claim(v.ClaimName(p.Name)))
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("read the volume of %s: %w", p.Name, err)
		}
		if host != "" && host == node.Labels[corev1.LabelHostname] {
			shut[p.Name] = shutNode{node.Name, why}
		}
	}
	return shut, nil
}

// drained is the node on which the only member of a cluster runs, where it takes no new pod: the
// budget lets no eviction through, and the member goes elsewhere by way of a second one. A node
// is read for that in each pass.
func (o *Observer) drained(ctx context.Context, g gathered) (shutNode, error) {
	if !surge.Wanted(g.cluster.Spec) {
		return shutNode{}, nil
	}
	for _, p := range g.pods {
		if p.Name != naming.Member(g.cluster.Metadata.Name, 0) || p.Spec.NodeName == "" {
			continue
		}
		node, _, err := o.nodeOf(ctx, p)
		if err != nil {
			return shutNode{}, err
		}
		if why := pods.ShutTo(node, g.cluster.Spec.PodTemplate.Spec.Tolerations); why != "" {
			return shutNode{node.Name, why}, nil
		}
	}
	return shutNode{}, nil
}

// describePlaces describes which pods could not come back to their nodes, where that was read.
// What was read before anything else is read again before a member stops.
func (v *View) describePlaces(shut, foreseen map[string]shutNode) {
	v.Observed.PlacesUnread = shut == nil
	if shut == nil {
		shut = foreseen
	}
	for i := range v.Observed.Pods {
		pod := &v.Observed.Pods[i]
		pod.Shut, pod.ShutBy = shut[pod.Name].name, shut[pod.Name].why
		if pod.Ordinal == 0 {
			pod.Drained, pod.DrainedBy = v.gathered.drained.name, v.gathered.drained.why
		}
	}
}
