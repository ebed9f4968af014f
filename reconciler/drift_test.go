package reconciler

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quorate/quorate/schema"
)

// applied is a cluster's objects after a server-side apply, and what was wanted.
type applied struct {
	client kubernetes.Interface
	want   Manifests
}

func applyManifests(t *testing.T, c schema.EtcdCluster) applied {
	t.Helper()
	a := applied{client: fake.NewClientset(), want: mustRender(t, c, ordersOptions())}
	a.apply(t)
	return a
}

func (a applied) apply(t *testing.T) {
	t.Helper()
	force := metav1.ApplyOptions{FieldManager: FieldManager, Force: true}
	for _, service := range []string{"orders-peers", "orders-client"} {
		want := a.want.Headless
		if service == "orders-client" {
			want = a.want.Client
		}
		if _, err := a.client.CoreV1().Services("shop").Apply(t.Context(), want, force); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.client.PolicyV1().PodDisruptionBudgets("shop").Apply(t.Context(), a.want.PDB, force); err != nil {
		t.Fatal(err)
	}
	if _, err := a.client.AppsV1().StatefulSets("shop").Apply(t.Context(), a.want.StatefulSet, force); err != nil {
		t.Fatal(err)
	}
}

func (a applied) set(t *testing.T) *appsv1.StatefulSet {
	t.Helper()
	set, err := a.client.AppsV1().StatefulSets("shop").Get(t.Context(), "orders", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func (a applied) service(t *testing.T) *corev1.Service {
	t.Helper()
	service, err := a.client.CoreV1().Services("shop").Get(t.Context(), "orders-client", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return service
}

func (a applied) budget(t *testing.T) *policyv1.PodDisruptionBudget {
	t.Helper()
	budget, err := a.client.PolicyV1().PodDisruptionBudgets("shop").Get(t.Context(), "orders", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return budget
}

// edit does what kubectl edit does: an Update by another manager.
func (a applied) edit(t *testing.T, change func(*appsv1.StatefulSet)) {
	t.Helper()
	set := a.set(t)
	change(set)
	if _, err := a.client.AppsV1().StatefulSets("shop").Update(t.Context(), set, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
}

func checkDrift(t *testing.T, what string, got Drift, err error, manager string, fields ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Fields, fields) || got.Manager != manager {
		t.Errorf("%s: drift %q by %q, want %q by %q", what, got.Fields, got.Manager, fields, manager)
	}
	if (got.Manager == "") != got.Time.IsZero() {
		t.Errorf("%s: manager %q at %s", what, got.Manager, got.Time)
	}
}

// addServerDefaults adds to a StatefulSet what a real API server adds.
func addServerDefaults(set *appsv1.StatefulSet) {
	set.UID, set.Generation = "u", 3
	set.Status.Replicas = 3
	spec := &set.Spec.Template.Spec
	spec.RestartPolicy, spec.DNSPolicy, spec.SchedulerName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, "default-scheduler"
	mode := int32(0o644)
	for i := range spec.Volumes {
		switch v := &spec.Volumes[i]; {
		case v.ConfigMap != nil:
			v.ConfigMap.DefaultMode = &mode
		case v.Secret != nil:
			v.Secret.DefaultMode = &mode
		}
	}
	etcd := &spec.Containers[0]
	etcd.TerminationMessagePath = "/dev/termination-log"
	etcd.ReadinessProbe.SuccessThreshold, etcd.StartupProbe.SuccessThreshold = 1, 1
	etcd.ReadinessProbe.HTTPGet.Scheme, etcd.StartupProbe.HTTPGet.Scheme = corev1.URISchemeHTTP, corev1.URISchemeHTTP
	set.Spec.VolumeClaimTemplates[0].Status.Phase = corev1.ClaimPending
}

func TestNoDriftAfterApply(t *testing.T) {
	for name, c := range map[string]schema.EtcdCluster{
		"default": ordersCluster(),
		"placed":  ordersCluster(placedCluster),
		"tls-off": ordersCluster(disableTLS),
	} {
		t.Run(name, func(t *testing.T) {
			a := applyManifests(t, c)
			set := a.set(t)
			addServerDefaults(set)
			template, rest, err := StatefulSetDrift(set, a.want.StatefulSet)
			checkDrift(t, "template", template, err, "")
			checkDrift(t, "rest", rest, err, "")

			service := a.service(t)
			service.Spec.ClusterIP, service.Spec.ClusterIPs = "10.0.0.9", []string{"10.0.0.9"}
			service.Spec.SessionAffinity, service.Spec.IPFamilies = corev1.ServiceAffinityNone, []corev1.IPFamily{corev1.IPv4Protocol}
			d, err := ServiceDrift(service, a.want.Client)
			checkDrift(t, "service", d, err, "")

			d, err = BudgetDrift(a.budget(t), a.want.PDB)
			checkDrift(t, "budget", d, err, "")
		})
	}
}

// TestDriftFight is the whole story: somebody edits, quorate sees what, who and
// when, applies, and the drift is gone.
func TestDriftFight(t *testing.T) {
	for _, test := range []struct {
		name           string
		change         func(*appsv1.StatefulSet)
		manager        string
		template, rest []string
	}{
		{"scaled", func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(1)) }, "kubectl-edit", nil, []string{".spec.replicas"}},
		{"partition moved", func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = new(int32(3)) }, "kubectl-edit", nil, []string{".spec.updateStrategy.rollingUpdate.partition"}},
		{"image changed", func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "etcd:latest" }, "kubectl-edit", []string{`.spec.template.spec.containers[name="etcd"].image`}, nil},
		{"argument added", func(s *appsv1.StatefulSet) {
			args := &s.Spec.Template.Spec.Containers[0].Args
			*args = append(slices.Clone(*args), "--force-new-cluster")
		}, "kubectl-edit", []string{`.spec.template.spec.containers[name="etcd"].args`}, nil},
		{"label removed", func(s *appsv1.StatefulSet) { delete(s.Labels, LabelCluster) }, "", nil, []string{`.metadata.labels.quorate.dev/cluster`}},
		{"minReadySeconds set", func(s *appsv1.StatefulSet) { s.Spec.MinReadySeconds = 30 }, "kubectl-edit", nil, []string{".spec.minReadySeconds"}},
		{"a foreign label", func(s *appsv1.StatefulSet) { s.Labels["backup-tool"] = "yes" }, "", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := applyManifests(t, ordersCluster())
			a.edit(t, test.change)
			template, rest, err := StatefulSetDrift(a.set(t), a.want.StatefulSet)
			managerOf := func(fields []string) string {
				if len(fields) == 0 {
					return ""
				}
				return test.manager
			}
			checkDrift(t, "template", template, err, managerOf(test.template), test.template...)
			checkDrift(t, "rest", rest, err, managerOf(test.rest), test.rest...)

			a.apply(t)
			template, rest, err = StatefulSetDrift(a.set(t), a.want.StatefulSet)
			checkDrift(t, "template after the apply", template, err, "")
			checkDrift(t, "rest after the apply", rest, err, "")
		})
	}
}

func TestServiceDrift(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*corev1.Service)
		manager string
		fields  []string
	}{
		{"selector widened", func(s *corev1.Service) { delete(s.Spec.Selector, LabelCluster) }, "kubectl-edit", []string{".spec.selector"}},
		{"port renamed", func(s *corev1.Service) { s.Spec.Ports[0].Name = "etcd" }, "kubectl-edit", []string{`.spec.ports[port=2379,protocol="TCP"].name`}},
		{"a further port", func(s *corev1.Service) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "extra", Port: 1, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(1)})
		}, "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := applyManifests(t, ordersCluster())
			service := a.service(t)
			test.change(service)
			if _, err := a.client.CoreV1().Services("shop").Update(t.Context(), service, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
				t.Fatal(err)
			}
			d, err := ServiceDrift(a.service(t), a.want.Client)
			checkDrift(t, "service", d, err, test.manager, test.fields...)
		})
	}
}

// TestDriftOfIntent: Git has changed and nobody has meddled.
func TestDriftOfIntent(t *testing.T) {
	a := applyManifests(t, ordersCluster(func(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"team": "checkout"} }))
	next := mustRender(t, ordersCluster(setVersion("3.6.15"), setReplicas(5)), ordersOptions())
	template, rest, err := StatefulSetDrift(a.set(t), next.StatefulSet)
	checkDrift(t, "template", template, err, "",
		`.spec.template.metadata.annotations.quorate.dev/template-hash`,
		`.spec.template.metadata.annotations.quorate.dev/version`,
		`.spec.template.spec.containers[name="etcd"].image`)
	checkDrift(t, "rest", rest, err, "", ".metadata.labels.team", ".spec.replicas")
	d, err := BudgetDrift(a.budget(t), next.PDB)
	checkDrift(t, "budget", d, err, "", ".metadata.labels.team", ".spec.minAvailable")
}

// TestDriftNamesTheLastHolder: of two that took a field, the later one counts.
func TestDriftNamesTheLastHolder(t *testing.T) {
	entry := func(manager string, at time.Time, fields string) metav1.ManagedFieldsEntry {
		stamp := metav1.NewTime(at)
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", Time: &stamp,
			FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
		}
	}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	a := applyManifests(t, ordersCluster())
	a.edit(t, func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(1)) })
	set := a.set(t)
	set.ManagedFields = slices.DeleteFunc(set.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "kubectl-edit" })
	set.ManagedFields = append(set.ManagedFields,
		entry("first", noon, `{"f:spec":{"f:replicas":{}}}`),
		entry("autoscaler", noon.Add(time.Hour), `{"f:spec":{"f:replicas":{}}}`),
		entry("unrelated", noon.Add(2*time.Hour), `{"f:metadata":{"f:annotations":{"f:x":{}}}}`))
	_, rest, err := StatefulSetDrift(set, a.want.StatefulSet)
	checkDrift(t, "rest", rest, err, "autoscaler", ".spec.replicas")
	if !rest.Time.Equal(noon.Add(time.Hour)) {
		t.Errorf("at %s", rest.Time)
	}
}

// TestDriftOfUnownedObject: an object that quorate never applied is drift from
// head to foot, and named as its maker's.
func TestDriftOfUnownedObject(t *testing.T) {
	client := fake.NewClientset()
	want := mustRender(t, ordersCluster(), ordersOptions()).Client
	made, err := client.CoreV1().Services("shop").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "orders-client", Namespace: "shop"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}},
	}, metav1.CreateOptions{FieldManager: "helm"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := ServiceDrift(made, want)
	if err != nil {
		t.Fatal(err)
	}
	if d.Manager != "helm" || !strings.Contains(strings.Join(d.Fields, " "), ".spec.selector") {
		t.Errorf("got %+v", d)
	}
}

func TestConfigMapDrift(t *testing.T) {
	client := fake.NewClientset()
	want := formedRecord().ConfigMap(ordersCluster())
	live, err := client.CoreV1().ConfigMaps("shop").Apply(t.Context(), want, metav1.ApplyOptions{FieldManager: FieldManager})
	if err != nil {
		t.Fatal(err)
	}
	d, err := ConfigMapDrift(live, want)
	checkDrift(t, "after apply", d, err, "")
	live.Data["initial-cluster-state"] = "new"
	live, err = client.CoreV1().ConfigMaps("shop").Update(t.Context(), live, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		t.Fatal(err)
	}
	d, err = ConfigMapDrift(live, want)
	checkDrift(t, "after edit", d, err, "kubectl-edit", ".data.initial-cluster-state")
}
