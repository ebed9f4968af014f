package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
)

// CompareAgain compares the objects again, and reads the one that is about to be
// applied from the API server itself: the caches may not yet know that it was.
func (o *Observer) CompareAgain(ctx context.Context, v *View, live *liveCluster, a action.ApplyObject) error {
	ns := v.Cluster.Metadata.Namespace
	var err error
	switch a.ObjectKind {
	case "Service":
		live.Services[a.Name], err = kube.FoundOrNil(o.Kube.CoreV1().Services(ns).Get(ctx, a.Name, metav1.GetOptions{}))
	case "PodDisruptionBudget":
		live.Budget, err = kube.FoundOrNil(o.Kube.PolicyV1().PodDisruptionBudgets(ns).Get(ctx, a.Name, metav1.GetOptions{}))
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", a.ObjectKind, a.Name, err)
	}
	return v.observeObjects(o, live)
}

// ReadLive reads past the caches what a decision rests on most.
func (o *Observer) ReadLive(ctx context.Context, c desired.Cluster) (*liveCluster, error) {
	live, err := o.Cache.read(c)
	if err != nil {
		return nil, err
	}
	ns := c.Metadata.Namespace
	live.Record, err = o.Kube.CoreV1().ConfigMaps(ns).Get(ctx, naming.Record(c.Metadata.Name), metav1.GetOptions{})
	if live.Record, err = kube.FoundOrNil(live.Record, err); err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	live.Set, err = o.Kube.AppsV1().StatefulSets(ns).Get(ctx, c.Metadata.Name, metav1.GetOptions{})
	if live.Set, err = kube.FoundOrNil(live.Set, err); err != nil {
		return nil, fmt.Errorf("read the StatefulSet: %w", err)
	}
	live.pods, err = Pods(ctx, o.Kube, c)
	return live, err
}

// Pods lists the members' pods as the API server itself has them.
func Pods(ctx context.Context, kube kubernetes.Interface, c desired.Cluster) ([]*corev1.Pod, error) {
	list, err := kube.CoreV1().Pods(c.Metadata.Namespace).List(ctx, metav1.ListOptions{LabelSelector: naming.LabelCluster + "=" + c.Metadata.Name})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return memberPods(c, pods), nil
}

// KeepTemplate is the wanted StatefulSet with the template that the live one has.
func (v *View) KeepTemplate() (appsv1ac.StatefulSetApplyConfiguration, error) {
	keep, spec := *v.Manifests.StatefulSet, *v.Manifests.StatefulSet.Spec
	keep.Spec = &spec
	if v.Set.Spec.Template.Annotations[naming.AnnotationTemplateHash] == v.Manifests.TemplateHash {
		return keep, nil
	}
	owned, err := appsv1ac.ExtractStatefulSet(v.Set, naming.FieldManager)
	if err != nil {
		return keep, fmt.Errorf("apply StatefulSet %s: %w", v.Set.Name, err)
	}
	if owned.Spec == nil || owned.Spec.Template == nil {
		return keep, fmt.Errorf("apply StatefulSet %s: quorate does not own its template, so it cannot be kept as it is; wait for the roll to end", v.Set.Name)
	}
	spec.Template = owned.Spec.Template
	return keep, nil
}

// Voters are the endpoints of the members that the record lists, who may be asked
// for a change of the member list.
func (v *View) Voters(rec record.Record, except string) []etcd.Endpoint {
	return slices.DeleteFunc(slices.Clone(v.Endpoints), func(e etcd.Endpoint) bool {
		return rec.Members[e.Member] == "" || e.Member == except
	})
}

// Applied says whether what Git says was carried out before, so that whatever
// differs was changed beside it.
func (v *View) Applied() bool {
	return v.Record != nil && v.Record.Applied != nil && v.Record.Applied.SpecHash == v.Desired.SpecHash
}
