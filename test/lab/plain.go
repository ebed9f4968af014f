package lab

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/quorate/quorate/reconciler/naming"
)

// Plain is etcd in a StatefulSet that nothing watches over, as people write one by hand: no TLS,
// a readiness probe each second, and neither a guard nor a hook. What quorate's rolls take is
// compared with it.
type Plain struct {
	cluster         *Cluster
	namespace, name string
}

// plainMembers is how many members a Plain has.
const plainMembers = 3

// StartPlain makes one, and returns when its members are ready. It goes with its namespace.
func (c *Cluster) StartPlain(ctx context.Context, namespace, name, image string) (*Plain, error) {
	p := &Plain{cluster: c, namespace: namespace, name: name}
	labels := map[string]string{naming.LabelCluster: name}
	ports := []corev1.ServicePort{{Name: "client", Port: clientPort}, {Name: "peer", Port: naming.PeerPort}}
	for _, service := range []*corev1.Service{
		{ObjectMeta: metav1.ObjectMeta{Name: naming.HeadlessService(name)}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: labels, Ports: ports}},
		{ObjectMeta: metav1.ObjectMeta{Name: naming.ClientService(name)}, Spec: corev1.ServiceSpec{Selector: labels, Ports: ports[:1]}},
	} {
		if _, err := c.Client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("create Service %s: %w", service.Name, err)
		}
	}
	if _, err := c.Client.AppsV1().StatefulSets(namespace).Create(ctx, p.set(labels, image), metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create StatefulSet %s: %w", name, err)
	}
	return p, p.await(ctx, 1)
}

func (p *Plain) set(labels map[string]string, image string) *appsv1.StatefulSet {
	host := func(member string) string {
		return member + "." + naming.HeadlessService(p.name) + "." + p.namespace + ".svc"
	}
	var initial []string
	for i := range plainMembers {
		member := fmt.Sprintf("%s-%d", p.name, i)
		initial = append(initial, fmt.Sprintf("%s=http://%s:%d", member, host(member), naming.PeerPort))
	}
	url := func(port int32) string { return fmt.Sprintf("http://%s:%d", host("$(POD_NAME)"), port) }
	etcd := corev1.Container{
		Name: naming.ContainerEtcd, Image: image, Command: []string{"/usr/local/bin/etcd"},
		Args: []string{
			"--name=$(POD_NAME)", "--data-dir=/data/etcd", "--initial-cluster=" + strings.Join(initial, ","),
			fmt.Sprintf("--listen-client-urls=http://0.0.0.0:%d", clientPort), "--advertise-client-urls=" + url(clientPort),
			fmt.Sprintf("--listen-peer-urls=http://0.0.0.0:%d", naming.PeerPort), "--initial-advertise-peer-urls=" + url(naming.PeerPort),
		},
		Env:            []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/health", Port: intstr.FromInt32(clientPort)}}},
		VolumeMounts:   []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
	}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: p.name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(plainMembers)), ServiceName: naming.HeadlessService(p.name), PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers:      []corev1.Container{etcd},
					SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(naming.NonRootID)), FSGroup: new(int64(naming.NonRootID))},
				},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("512Mi")}},
				},
			}},
		},
	}
}

// Roll changes the image, and returns how long it took until every member ran it and was ready.
func (p *Plain) Roll(ctx context.Context, image string) (time.Duration, error) {
	begin := time.Now()
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, naming.ContainerEtcd, image)
	set, err := p.cluster.Client.AppsV1().StatefulSets(p.namespace).Patch(ctx, p.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return 0, fmt.Errorf("change the image of %s: %w", p.name, err)
	}
	err = p.await(ctx, set.Generation)
	return time.Since(begin), err
}

// await waits until the StatefulSet of a generation is rolled out.
func (p *Plain) await(ctx context.Context, generation int64) error {
	err := Poll(ctx, deleteLimit, func(ctx context.Context) (bool, error) {
		set, err := p.cluster.Client.AppsV1().StatefulSets(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
		if err != nil {
			return false, nil
		}
		s := set.Status
		return s.ObservedGeneration >= generation && s.CurrentRevision == s.UpdateRevision && s.ReadyReplicas == plainMembers && s.UpdatedReplicas == plainMembers, nil
	})
	if err != nil {
		return fmt.Errorf("wait for StatefulSet %s: %w", p.name, err)
	}
	return nil
}
