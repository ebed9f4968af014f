package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
)

const (
	// boots is how long a member takes to come up, and stops how long to go down.
	boots = 500 * time.Millisecond
	stops = 200 * time.Millisecond
	// nodes is how many there are.
	nodes = 3
)

// kubelets are those of all nodes, with the scheduler and what provisions volumes.
type kubelets struct {
	kube   kubernetes.Interface
	pods   corelisters.PodLister
	claims corelisters.PersistentVolumeClaimLister

	mu sync.Mutex
	// worlds are told what becomes of the pods of a namespace.
	worlds map[string]*world
	// busy is what is done about which version of an object.
	busy map[string]bool
	// lost are the claims whose data is gone, by namespace and name, with their UIDs.
	lost map[string]string
}

func startKubelets(ctx context.Context, kube kubernetes.Interface) (*kubelets, error) {
	for i := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i)}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}},
		}}
		if _, err := kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	// What failed is tried again each second.
	f := informers.NewSharedInformerFactory(kube, time.Second)
	k := &kubelets{
		kube: kube, pods: f.Core().V1().Pods().Lister(), claims: f.Core().V1().PersistentVolumeClaims().Lister(),
		worlds: map[string]*world{}, busy: map[string]bool{}, lost: map[string]string{},
	}
	changed := func(o any) {
		switch o := o.(type) {
		case *corev1.Pod:
			if k.tell(o.Namespace) {
				k.once(o, func() { k.serve(ctx, o) })
			}
		case *corev1.PersistentVolumeClaim:
			k.once(o, func() { k.bind(ctx, o) })
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }, DeleteFunc: func(o any) {
		if p, ok := o.(*corev1.Pod); ok {
			_ = k.tell(p.Namespace)
		}
	}}
	for _, informer := range []cache.SharedIndexInformer{f.Core().V1().Pods().Informer(), f.Core().V1().PersistentVolumeClaims().Informer()} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	f.Start(ctx.Done())
	for _, synced := range f.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, errors.New("the kubelets see nothing")
		}
	}
	return k, nil
}

// join lets a world look each time when something becomes of its pods, until its test ends.
func (k *kubelets) join(w *world) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.worlds[w.namespace] = w
	w.Cleanup(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.worlds, w.namespace)
	})
}

// tell lets a world look. It reports whether there is one.
func (k *kubelets) tell(namespace string) bool {
	k.mu.Lock()
	w := k.worlds[namespace]
	k.mu.Unlock()
	if w != nil {
		w.look()
	}
	return w != nil
}

// once does something about this version of an object, unless that is being done: an API server
// that is slow must not get more and more to do.
func (k *kubelets) once(o metav1.Object, do func()) {
	key := string(o.GetUID()) + " " + o.GetResourceVersion()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.busy[key] {
		return
	}
	k.busy[key] = true
	go func() {
		do()
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.busy, key)
	}()
}

// lose empties a volume: the member on it does not start again.
func (k *kubelets) lose(ctx context.Context, namespace, member string) error {
	claim, err := k.claims.PersistentVolumeClaims(namespace).Get("data-" + member)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.lost[namespace+"/"+claim.Name] = string(claim.UID)
	k.mu.Unlock()
	return k.kube.CoreV1().Pods(namespace).Delete(ctx, member, metav1.DeleteOptions{})
}

func (k *kubelets) empty(p *corev1.Pod) bool {
	claim, err := k.claims.PersistentVolumeClaims(p.Namespace).Get("data-" + p.Name)
	k.mu.Lock()
	defer k.mu.Unlock()
	return err == nil && k.lost[p.Namespace+"/data-"+p.Name] == string(claim.UID)
}

// members are the pods of a namespace by name, with the versions of those that run.
func (k *kubelets) members(namespace string) (all map[string]*corev1.Pod, versions map[string]string) {
	list, _ := k.pods.Pods(namespace).List(labels.Everything()) // a cache has no errors
	all, versions = map[string]*corev1.Pod{}, map[string]string{}
	for _, p := range list {
		all[p.Name] = p
		if p.DeletionTimestamp == nil && pods.Ready(p) {
			versions[p.Name] = p.Annotations[naming.AnnotationVersion]
		}
	}
	return all, versions
}

// serve does the next thing to be done about a pod. What fails is tried again.
func (k *kubelets) serve(ctx context.Context, p *corev1.Pod) {
	pods := k.kube.CoreV1().Pods(p.Namespace)
	switch {
	case p.DeletionTimestamp != nil:
		time.Sleep(stops)
		_ = pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
	case p.Spec.NodeName == "":
		_ = pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: p.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: fmt.Sprint("node-", naming.Ordinal(p.Name)%nodes)},
		}, metav1.CreateOptions{})
	case p.Status.Phase == corev1.PodPending:
		time.Sleep(boots)
		_, _ = pods.UpdateStatus(ctx, k.started(p.DeepCopy()), metav1.UpdateOptions{})
	}
}

// started is a pod that runs, or whose guard has found the volume empty.
func (k *kubelets) started(p *corev1.Pod) *corev1.Pod {
	now, s := metav1.Now(), &p.Status
	running, ready := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}, corev1.ConditionTrue
	ended := &corev1.ContainerStateTerminated{StartedAt: now, FinishedAt: now, Reason: "Completed"}
	if k.empty(p) {
		running, ready = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}, corev1.ConditionFalse
		ended.ExitCode, ended.Reason, ended.Message = guard.ExitEmpty, "Error", "the data of "+p.Name+" is gone"
	}
	s.Phase, s.PodIP, s.StartTime = corev1.PodRunning, fmt.Sprint("10.9.0.", naming.Ordinal(p.Name)+1), &now
	s.Conditions = append(s.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: ready, LastTransitionTime: now})
	for _, c := range p.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: ready == corev1.ConditionTrue, State: corev1.ContainerState{Terminated: ended},
		})
	}
	for _, c := range p.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: ready == corev1.ConditionTrue, Started: new(ready == corev1.ConditionTrue), State: running,
		})
	}
	return p
}

// bind gives a claim its volume.
func (k *kubelets) bind(ctx context.Context, c *corev1.PersistentVolumeClaim) {
	claims := k.kube.CoreV1().PersistentVolumeClaims(c.Namespace)
	switch c = c.DeepCopy(); {
	case c.Status.Phase == corev1.ClaimBound || c.DeletionTimestamp != nil:
	case c.Spec.VolumeName == "":
		c.Spec.VolumeName = "pv-" + c.Name
		_, _ = claims.Update(ctx, c, metav1.UpdateOptions{})
	default:
		c.Status.Phase, c.Status.Capacity = corev1.ClaimBound, c.Spec.Resources.Requests
		_, _ = claims.UpdateStatus(ctx, c, metav1.UpdateOptions{})
	}
}
