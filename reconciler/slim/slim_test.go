package slim_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/slim"
	"github.com/quorate/quorate/schema"
)

// pod is one as the API server has it, of a cluster with everything that a template can have.
func pod(t *testing.T) (*corev1.Pod, corev1.PodSpec) {
	t.Helper()
	c := clustertest.Orders(func(c *schema.EtcdCluster) {
		c.Spec.TLS.Mode = schema.TLSManaged
		c.Spec.Etcd.Options = map[string]string{"quota-backend-bytes": "4294967296"}
	})
	m, err := manifests.Render(c, manifests.Options{GuardImage: "quorate", ClusterDomain: "cluster.local", Repository: manifests.DefaultRepository})
	if err != nil {
		t.Fatal(err)
	}
	template := clustertest.Pod(t, m.StatefulSet.Spec.Template)
	for i := range template.Spec.Containers {
		template.Spec.Containers[i].Resources = corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}, Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.Metadata.Namespace, Name: "orders-0", UID: "a", Labels: template.Labels, Annotations: template.Annotations,
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
	}, Spec: *template.Spec.DeepCopy()}
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "more", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-orders-0"}}})
	p.Spec.NodeName, p.Spec.TerminationGracePeriodSeconds = "node", new(int64(1))
	killed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: pods.OutOfMemory}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: naming.ContainerEtcd, RestartCount: 3, LastTerminationState: killed, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: naming.ContainerGuard, Ready: true}}
	return p, template.Spec
}

// Of a pod all that is read of it is the same, whatever admission has changed; what is kept of it is slim.
func TestASlimPodSaysTheSame(t *testing.T) {
	for name, change := range map[string]func(p *corev1.Pod, etcd *corev1.Container){
		"as it was made": func(*corev1.Pod, *corev1.Container) {},
		"another image":  func(_ *corev1.Pod, c *corev1.Container) { c.Image = "other" },
		"other commands": func(_ *corev1.Pod, c *corev1.Container) { c.Command, c.Args = []string{"sh"}, []string{"-c"} },
		"another variable": func(_ *corev1.Pod, c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "ETCD_NAME", Value: "other"})
		},
		"another probe": func(_ *corev1.Pod, c *corev1.Container) {
			c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}}}
		},
		"a sidecar": func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "mesh", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)})
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: "mesh", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}})
		},
		"a guard that refuses": func(p *corev1.Pod, _ *corev1.Container) {
			p.Status.InitContainerStatuses[0] = corev1.ContainerStatus{Name: naming.ContainerGuard, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: guard.ExitForeign, Message: "another; do"}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			whole, template := pod(t)
			for i := range whole.Spec.Containers {
				if c := &whole.Spec.Containers[i]; c.Name == naming.ContainerEtcd {
					change(whole, c)
				}
			}
			slimmed := whole.DeepCopy()
			if _, err := slim.Pod(slimmed); err != nil {
				t.Fatal(err)
			}
			said := func(p *corev1.Pod) []any {
				return []any{
					pods.Describe(p), pods.Damage(p), pods.Found(p), pods.Trouble(p), pods.Mutated(p, template), pods.PodQuota(p), pods.AsksForCertificates(p),
					pods.StartedAfter(p, time.Time{}), pods.Mounts(p, "data-orders-0"), manifests.TransportOf(p.Spec, "orders"), p.Spec.NodeName, p.Spec.Volumes, p.Status,
				}
			}
			if is, was := said(slimmed), said(whole); !reflect.DeepEqual(is, was) {
				t.Errorf("slim\n%+v\nwhole\n%+v", is, was)
			}
			again := slimmed.DeepCopy()
			if _, err := slim.Pod(again); err != nil || !reflect.DeepEqual(again, slimmed) {
				t.Errorf("it becomes another one the second time: %v", err)
			}
			if is, was := size(t, slimmed), size(t, whole); is > was*4/5 {
				t.Errorf("%d of %d bytes are kept", is, was)
			}
		})
	}
}

func size(t *testing.T, o any) int {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// Of a revision the template's annotations that quorate reads are kept, in full and slim.
func TestTemplateOfARevision(t *testing.T) {
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"template": corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{naming.AnnotationTemplateHash: "abc", naming.AnnotationVersion: "3.6.16", "more": "more"}},
		Spec:       corev1.PodSpec{NodeName: "more"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	revision := func(text []byte) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: text}}
	}
	for name, test := range map[string]struct {
		revision      *appsv1.ControllerRevision
		hash, version string
	}{
		"good": {revision(text), "abc", "3.6.16"}, "none": {nil, "", ""},
		"unreadable": {revision([]byte("{")), "", ""}, "empty": {revision([]byte("{}")), "", ""},
	} {
		if hash, version := slim.Template(test.revision); hash != test.hash || version != test.version {
			t.Errorf("%s: %q, %q", name, hash, version)
		}
		if test.revision == nil {
			continue
		}
		for range 2 {
			if _, err := slim.Revision(test.revision); err != nil {
				t.Fatal(err)
			}
		}
		if hash, version := slim.Template(test.revision); hash != test.hash || version != test.version || len(test.revision.Data.Raw) > 150 {
			t.Errorf("%s, slim: %q, %q of %s", name, hash, version, test.revision.Data.Raw)
		}
	}
}

// Who has changed a claim or a Secret, and when, is kept without the fields.
func TestTheTimeOfAChangeIsKept(t *testing.T) {
	at := metav1.NewTime(time.Unix(1000, 0))
	meta := metav1.ObjectMeta{
		Name: "orders-server", Labels: map[string]string{naming.LabelCluster: "orders"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "someone", Subresource: "status", Time: &at, FieldsV1: metav1.NewFieldsV1("{}")}},
	}
	claim, secret, other := &corev1.PersistentVolumeClaim{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: *meta.DeepCopy()}, &corev1.Secret{ObjectMeta: *meta.DeepCopy()}
	claim.ObjectMeta = *meta.DeepCopy()
	_, err1 := slim.Claim(claim)
	_, err2 := slim.Secret(secret)
	_, err3 := slim.Copy(other)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	for _, o := range []metav1.Object{claim, secret, other} {
		if e := o.GetManagedFields()[0]; e.FieldsV1 != nil || e.Manager != "someone" || e.Subresource != "status" || !e.Time.Equal(&at) {
			t.Errorf("of a %T this is kept: %+v", o, e)
		}
	}
}
