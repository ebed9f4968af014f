package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/quorate/quorate/reconciler/naming"
)

// nodeWorkers is how many pods and claims are served at the same time.
const nodeWorkers = 16

// nodes play the scheduler, what provisions volumes, and the kubelets, whose containers are the
// members.
type nodes struct {
	kube     kubernetes.Interface
	members  *members
	replicas int32
	// seeded is how many clusters are there before quorate: their volumes have the notes of members.
	seeded int
	pods   cache.SharedIndexInformer
	claims cache.SharedIndexInformer
	queue  workqueue.TypedRateLimitingInterface[string]
}

func startNodes(ctx context.Context, kube kubernetes.Interface, m *members, o Options) (*nodes, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}},
	}}
	if _, err := kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	f := informers.NewSharedInformerFactory(kube, 0)
	n := &nodes{
		kube: kube, members: m, replicas: o.Replicas, seeded: o.Clusters, pods: f.Core().V1().Pods().Informer(), claims: f.Core().V1().PersistentVolumeClaims().Informer(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	for kind, informer := range map[string]cache.SharedIndexInformer{"pod": n.pods, "claim": n.claims} {
		changed := func(o any) {
			if key, err := cache.MetaNamespaceKeyFunc(o); err == nil {
				n.queue.Add(kind + " " + key)
			}
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }}); err != nil {
			return nil, err
		}
	}
	f.Start(ctx.Done())
	for _, synced := range f.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, errors.New("the nodes see nothing")
		}
	}
	context.AfterFunc(ctx, n.queue.ShutDown)
	for range nodeWorkers {
		go n.work(ctx)
	}
	return n, nil
}

func (n *nodes) work(ctx context.Context) {
	for {
		key, shutdown := n.queue.Get()
		if shutdown {
			return
		}
		if err := n.serve(ctx, key); err != nil {
			n.queue.AddRateLimited(key)
		} else {
			n.queue.Forget(key)
		}
		n.queue.Done(key)
	}
}

// serve does the next thing to be done about a pod or a claim.
func (n *nodes) serve(ctx context.Context, key string) error {
	kind, key, _ := strings.Cut(key, " ")
	informer := n.pods
	if kind == "claim" {
		informer = n.claims
	}
	o, there, err := informer.GetIndexer().GetByKey(key)
	if err != nil || !there {
		return err
	}
	switch o := o.(type) {
	case *corev1.Pod:
		return n.run(ctx, o)
	case *corev1.PersistentVolumeClaim:
		return n.bind(ctx, o)
	}
	return nil
}

// bind gives a claim its volume.
func (n *nodes) bind(ctx context.Context, c *corev1.PersistentVolumeClaim) (err error) {
	claims := n.kube.CoreV1().PersistentVolumeClaims(c.Namespace)
	switch c = c.DeepCopy(); {
	case c.Status.Phase == corev1.ClaimBound || c.DeletionTimestamp != nil:
	case c.Spec.VolumeName == "":
		c.Spec.VolumeName = "pv-" + c.Name
		if number, err := numberOfCluster(c.Labels); err == nil && number < n.seeded {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, naming.AnnotationHolds, strconv.FormatUint(numberOf(strings.TrimPrefix(c.Name, naming.ClaimPrefix+"-")), 16))
		}
		_, err = claims.Update(ctx, c, metav1.UpdateOptions{})
	default:
		c.Status.Phase, c.Status.Capacity = corev1.ClaimBound, c.Spec.Resources.Requests
		_, err = claims.UpdateStatus(ctx, c, metav1.UpdateOptions{})
	}
	return err
}

// run does the next thing to be done about a pod.
func (n *nodes) run(ctx context.Context, p *corev1.Pod) error {
	pods := n.kube.CoreV1().Pods(p.Namespace)
	switch {
	case p.DeletionTimestamp != nil:
		return pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
	case p.Spec.NodeName == "":
		return pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: p.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-0"},
		}, metav1.CreateOptions{})
	case p.Status.Phase == corev1.PodPending:
		address, err := n.start(ctx, p)
		if err != nil {
			return err
		}
		_, err = pods.UpdateStatus(ctx, started(p.DeepCopy(), address), metav1.UpdateOptions{})
		return err
	}
	return nil
}

func numberOfCluster(labels map[string]string) (int, error) {
	return strconv.Atoi(strings.TrimPrefix(labels[naming.LabelCluster], "c"))
}

// start lets the member in a pod listen, with the certificate that is mounted.
func (n *nodes) start(ctx context.Context, p *corev1.Pod) (address string, err error) {
	number, err := numberOfCluster(p.Labels)
	if err != nil {
		return "", err
	}
	c, certificate := clusterName{number: number, replicas: n.replicas}, (*tls.Certificate)(nil)
	if c.secure() {
		secret, err := n.kube.CoreV1().Secrets(p.Namespace).Get(ctx, naming.TLSSecrets(c.file()).Server, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		if err != nil {
			return "", fmt.Errorf("the certificate of %s: %w", p.Name, err)
		}
		certificate = &pair
	}
	return n.members.start(c, p.Name, certificate)
}

// started is a pod whose containers run.
func started(p *corev1.Pod, address string) *corev1.Pod {
	now, s := metav1.NewTime(time.Now()), &p.Status
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: now, FinishedAt: now, Reason: "Completed"}}
	s.Phase, s.PodIP, s.StartTime = corev1.PodRunning, address, &now
	s.Conditions = append(slices.Clone(s.Conditions), corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now})
	for _, c := range p.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true, State: ended})
	}
	for _, c := range p.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true, Started: new(true), State: running})
	}
	return p
}
