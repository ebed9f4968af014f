package drift_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// applied is a cluster's objects after a server-side apply, and what was wanted.
type applied struct {
	client  kubernetes.Interface
	cluster schema.EtcdCluster
	want    manifests.Manifests
}

func applyManifests(t *testing.T, c schema.EtcdCluster) applied {
	t.Helper()
	a := applied{client: fake.NewClientset(), cluster: c, want: mustRender(t, c)}
	a.apply(t)
	return a
}

func (a applied) apply(t *testing.T) {
	t.Helper()
	services, budgets := a.client.CoreV1().Services("shop"), a.client.PolicyV1().PodDisruptionBudgets("shop")
	for what, err := range map[string]error{
		"peers":  second(kube.Apply(t.Context(), services, a.cluster, "orders-peers", a.want.Headless)),
		"client": second(kube.Apply(t.Context(), services, a.cluster, "orders-client", a.want.Client)),
		"budget": second(kube.Apply(t.Context(), budgets, a.cluster, "orders", a.want.PDB)),
		"set":    second(kube.Apply(t.Context(), a.client.AppsV1().StatefulSets("shop"), a.cluster, "orders", a.want.StatefulSet)),
	} {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

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

func checkDrift(t *testing.T, what string, got drift.Drift, err error, manager string, fields ...string) {
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
	// Who may write the status can write what a server-side apply cannot.
	set.Status.Conditions = []appsv1.StatefulSetCondition{{Type: "Odd"}, {Type: "Odd"}}
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
	etcd.ReadinessProbe.SuccessThreshold, etcd.ReadinessProbe.HTTPGet.Scheme = 1, corev1.URISchemeHTTP
	set.Spec.VolumeClaimTemplates[0].Status.Phase = corev1.ClaimPending
}

func TestNoDriftAfterApply(t *testing.T) {
	for name, c := range map[string]schema.EtcdCluster{
		"default": clustertest.Orders(),
		"placed":  clustertest.Orders(clustertest.Placed),
		"tls-off": clustertest.Orders(clustertest.DisableTLS),
	} {
		t.Run(name, func(t *testing.T) {
			a := applyManifests(t, c)
			set := a.set(t)
			addServerDefaults(set)
			template, rest, err := drift.StatefulSet(set, a.want.StatefulSet)
			checkDrift(t, "template", template, err, "")
			checkDrift(t, "rest", rest, err, "")

			service := a.service(t)
			service.Spec.ClusterIP, service.Spec.ClusterIPs = "10.0.0.9", []string{"10.0.0.9"}
			service.Spec.SessionAffinity, service.Spec.IPFamilies = corev1.ServiceAffinityNone, []corev1.IPFamily{corev1.IPv4Protocol}
			d, err := drift.Service(service, a.want.Client)
			checkDrift(t, "service", d, err, "")

			d, err = drift.Budget(a.budget(t), a.want.PDB)
			checkDrift(t, "budget", d, err, "")
		})
	}
}

// driftEdit is an edit by hand, and what is to be said of it.
type driftEdit struct {
	name           string
	change         func(*appsv1.StatefulSet)
	manager        string
	template, rest []string
}

func driftEdits() []driftEdit {
	return []driftEdit{
		{"scaled", func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(1)) }, "kubectl-edit", nil, []string{".spec.replicas"}},
		{"partition moved", func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = new(int32(3)) }, "kubectl-edit", nil, []string{".spec.updateStrategy.rollingUpdate.partition"}},
		{"image changed", func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "etcd:latest" }, "kubectl-edit", []string{`.spec.template.spec.containers[name="etcd"].image`}, nil},
		{"argument added", func(s *appsv1.StatefulSet) {
			args := &s.Spec.Template.Spec.Containers[0].Args
			*args = append(slices.Clone(*args), "--force-new-cluster")
		}, "kubectl-edit", []string{`.spec.template.spec.containers[name="etcd"].args`}, nil},
		{"label removed", func(s *appsv1.StatefulSet) { delete(s.Labels, naming.LabelCluster) }, "", nil, []string{`.metadata.labels.quorate.dev/cluster`}},
		{"minReadySeconds set", func(s *appsv1.StatefulSet) { s.Spec.MinReadySeconds = 30 }, "kubectl-edit", nil, []string{".spec.minReadySeconds"}},
		{"a foreign label", func(s *appsv1.StatefulSet) { s.Labels["backup-tool"] = "yes" }, "", nil, nil},
		{"a foreign status", func(s *appsv1.StatefulSet) { s.Status.Replicas = 3 }, "", nil, nil},
		{"variable added", func(s *appsv1.StatefulSet) { addLogLevel(s) }, "kubectl-edit", nil, []string{logLevelPath}},
		{"container added", func(s *appsv1.StatefulSet) {
			pod := &s.Spec.Template.Spec
			pod.Containers = append(pod.Containers, corev1.Container{Name: "side", Image: "busybox", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}})
		}, "kubectl-edit", nil, []string{`.spec.template.spec.containers[name="side"]`}},
		{"restarted", func(s *appsv1.StatefulSet) {
			s.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "now"
		}, "kubectl-edit", nil, []string{".spec.template.metadata.annotations.kubectl.kubernetes.io/restartedAt"}},
		{"toleration and replicas", func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			s.Spec.Replicas = new(int32(1))
		}, "kubectl-edit", nil, []string{".spec.replicas", ".spec.template.spec.tolerations"}},
	}
}

// TestDriftFight is the whole story: another writer edits, quorate sees what, who and
// when, applies, and the drift is gone.
func TestDriftFight(t *testing.T) {
	for _, test := range driftEdits() {
		t.Run(test.name, func(t *testing.T) {
			a := applyManifests(t, clustertest.Orders())
			a.edit(t, test.change)
			template, rest, err := drift.StatefulSet(a.set(t), a.want.StatefulSet)
			managerOf := func(fields []string) string {
				if len(fields) == 0 {
					return ""
				}
				return test.manager
			}
			checkDrift(t, "template", template, err, managerOf(test.template), test.template...)
			checkDrift(t, "rest", rest, err, managerOf(test.rest), test.rest...)

			a.apply(t)
			template, rest, err = drift.StatefulSet(a.set(t), a.want.StatefulSet)
			checkDrift(t, "template after the apply", template, err, "")
			checkDrift(t, "rest after the apply", rest, err, "")
		})
	}
}

// logLevelPath is the variable that addLogLevel sets.
const logLevelPath = `.spec.template.spec.containers[name="etcd"].env[name="ETCD_LOG_LEVEL"]`

func addLogLevel(s *appsv1.StatefulSet) {
	etcd := &s.Spec.Template.Spec.Containers[0]
	etcd.Env = append(etcd.Env, corev1.EnvVar{Name: "ETCD_LOG_LEVEL", Value: "debug"})
}

// TestAdditionsAreRemoved: what others add to the spec goes, whoever they are and
// however they did it, and nothing else of theirs.
func TestAdditionsAreRemoved(t *testing.T) {
	a := applyManifests(t, clustertest.Orders())
	before := a.set(t)
	a.edit(t, func(s *appsv1.StatefulSet) {
		addLogLevel(s)
		s.Labels["backup-tool"] = "yes"
	})
	sets := a.client.AppsV1().StatefulSets("shop")
	mesh := appsv1ac.StatefulSet("orders", "shop").WithAnnotations(map[string]string{"mesh": "yes"}).
		WithSpec(appsv1ac.StatefulSetSpec().WithTemplate(corev1ac.PodTemplateSpec().WithSpec(corev1ac.PodSpec().
			WithHostNetwork(true).WithContainers(corev1ac.Container().WithName("etcd").
			WithEnv(corev1ac.EnvVar().WithName("ETCD_LOG_LEVEL").WithValue("debug"))))))
	if _, err := sets.Apply(t.Context(), mesh, metav1.ApplyOptions{FieldManager: "mesh"}); err != nil {
		t.Fatal(err)
	}
	_, rest, err := drift.StatefulSet(a.set(t), a.want.StatefulSet)
	if err != nil || !slices.Equal(rest.Fields, []string{logLevelPath, ".spec.template.spec.hostNetwork"}) {
		t.Errorf("drift %q, error %v", rest.Fields, err)
	}
	a.apply(t)
	after := a.set(t)
	if !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		t.Errorf("the spec was %v and is %v", before.Spec, after.Spec)
	}
	if after.Labels["backup-tool"] != "yes" || after.Annotations["mesh"] != "yes" {
		t.Errorf("labels %v, annotations %v", after.Labels, after.Annotations)
	}
	for _, e := range after.ManagedFields {
		if e.Manager != naming.FieldManager && strings.Contains(e.FieldsV1.GetRawString(), "ETCD_LOG_LEVEL") {
			t.Errorf("%s still owns %s", e.Manager, e.FieldsV1.GetRawString())
		}
	}
	if patch, err := drift.TakeOver(after, a.want.StatefulSet); patch != nil || err != nil {
		t.Errorf("there is still something to take over: %s, error %v", patch, err)
	}
}

// TestAdditionsOfSubresources: what goes through the status or the scale belongs
// to controllers.
func TestAdditionsOfSubresources(t *testing.T) {
	a := applyManifests(t, clustertest.Orders())
	a.edit(t, addLogLevel)
	set := a.set(t)
	for i := range set.ManagedFields {
		if set.ManagedFields[i].Manager != naming.FieldManager {
			set.ManagedFields[i].Subresource = "status"
		}
	}
	template, rest, err := drift.StatefulSet(set, a.want.StatefulSet)
	checkDrift(t, "template", template, err, "")
	checkDrift(t, "rest", rest, err, "")
	if patch, err := drift.TakeOver(set, a.want.StatefulSet); patch != nil || err != nil {
		t.Errorf("patch %s, error %v", patch, err)
	}
}

// TestHalfRemovedAddition: quorate was killed after it took over a variable and
// before it applied. The variable is still named as a whole, and goes.
func TestHalfRemovedAddition(t *testing.T) {
	a := applyManifests(t, clustertest.Orders())
	a.edit(t, addLogLevel)
	sets := a.client.AppsV1().StatefulSets("shop")
	set, err := kube.OwnAdditions(t.Context(), sets, a.set(t), a.want.StatefulSet)
	if err != nil {
		t.Fatal(err)
	}
	template, rest, err := drift.StatefulSet(set, a.want.StatefulSet)
	checkDrift(t, "template", template, err, "", logLevelPath)
	checkDrift(t, "rest", rest, err, "")
	a.apply(t)
	template, rest, err = drift.StatefulSet(a.set(t), a.want.StatefulSet)
	checkDrift(t, "template after the apply", template, err, "")
	checkDrift(t, "rest after the apply", rest, err, "")
}

// TestBudgetTurnedAround: the API server refuses a budget with both limits, so
// what was added must go in the apply that brings back what was removed.
func TestBudgetTurnedAround(t *testing.T) {
	a := applyManifests(t, clustertest.Orders())
	budget := a.budget(t)
	most := intstr.FromInt32(3)
	budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = nil, &most
	if _, err := a.client.PolicyV1().PodDisruptionBudgets("shop").Update(t.Context(), budget, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	d, err := drift.Budget(a.budget(t), a.want.PDB)
	checkDrift(t, "budget", d, err, "kubectl-edit", ".spec.maxUnavailable", ".spec.minAvailable")
	a.apply(t)
	if spec := a.budget(t).Spec; spec.MaxUnavailable != nil || spec.MinAvailable == nil {
		t.Errorf("the budget is %v", spec)
	}
}

func TestServiceDrift(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*corev1.Service)
		manager string
		fields  []string
	}{
		{"selector widened", func(s *corev1.Service) { delete(s.Spec.Selector, naming.LabelCluster) }, "kubectl-edit", []string{".spec.selector"}},
		{"port renamed", func(s *corev1.Service) { s.Spec.Ports[0].Name = "etcd" }, "kubectl-edit", []string{`.spec.ports[port=2379,protocol="TCP"].name`}},
		{"a further port", func(s *corev1.Service) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "extra", Port: 1, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(1)})
		}, "kubectl-edit", []string{`.spec.ports[port=1,protocol="TCP"]`}},
		{"a foreign annotation", func(s *corev1.Service) { s.Annotations = map[string]string{"mesh": "yes"} }, "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := applyManifests(t, clustertest.Orders())
			service := a.service(t)
			test.change(service)
			if _, err := a.client.CoreV1().Services("shop").Update(t.Context(), service, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
				t.Fatal(err)
			}
			d, err := drift.Service(a.service(t), a.want.Client)
			checkDrift(t, "service", d, err, test.manager, test.fields...)

			a.apply(t)
			d, err = drift.Service(a.service(t), a.want.Client)
			checkDrift(t, "service after the apply", d, err, "")
		})
	}
}

// 242: what Git lets others set is no drift, is kept when the rest is put back, and is drift
// again when Git lets it no longer.
func TestIgnoredFieldsAreNoDrift(t *testing.T) {
	ignored := func(c *schema.EtcdCluster) {
		c.Spec.Drift.Ignore = []schema.IgnoredDrift{{Kind: "Service", Path: "/spec/sessionAffinityConfig", Reason: "x"}, {Kind: "Service", Path: "/spec/sessionAffinity", Reason: "x"}}
	}
	a := applyManifests(t, clustertest.Orders(ignored))
	service := a.service(t)
	service.Spec.SessionAffinity, service.Spec.ExternalIPs = corev1.ServiceAffinityClientIP, []string{"192.0.2.1"}
	service.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(60))}}
	if _, err := a.client.CoreV1().Services("shop").Update(t.Context(), service, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	d, err := drift.Service(a.service(t), a.want.Client)
	checkDrift(t, "service", d, err, "kubectl-edit", ".spec.externalIPs")
	a.apply(t)
	now := a.service(t)
	if now.Spec.SessionAffinity != corev1.ServiceAffinityClientIP || now.Spec.SessionAffinityConfig == nil || len(now.Spec.ExternalIPs) > 0 || now.Annotations[naming.AnnotationIgnored] != "/spec/sessionAffinityConfig /spec/sessionAffinity" {
		t.Errorf("it is %+v with %v", now.Spec, now.Annotations)
	}
	d, err = drift.Service(now, a.want.Client)
	checkDrift(t, "service after the apply", d, err, "")
	d, err = drift.Service(now, mustRender(t, clustertest.Orders()).Client)
	checkDrift(t, "service when Git lets it no longer", d, err, "kubectl-edit", ".metadata.annotations.quorate.dev/ignored-drift", ".spec.sessionAffinity", ".spec.sessionAffinityConfig")
}

// 261: what Git wants to be told of is told with its writer and never put back, beside what
// is drift.
func TestReportedFieldsAreLeft(t *testing.T) {
	a := applyManifests(t, clustertest.Orders(func(c *schema.EtcdCluster) {
		c.Spec.Drift.Ignore = []schema.IgnoredDrift{{Kind: "Service", Path: "/spec/sessionAffinity", Reason: "x", Report: true}, {Kind: "Service", Path: "/spec/externalTrafficPolicy", Reason: "x"}}
	}))
	service := a.service(t)
	service.Spec.SessionAffinity, service.Spec.ExternalTrafficPolicy, service.Spec.ExternalIPs = corev1.ServiceAffinityClientIP, corev1.ServiceExternalTrafficPolicyLocal, []string{"192.0.2.1"}
	if _, err := a.client.CoreV1().Services("shop").Update(t.Context(), service, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	for _, fields := range [][]string{{".spec.externalIPs"}, nil} {
		d, err := drift.Service(a.service(t), a.want.Client)
		manager := ""
		if fields != nil {
			manager = "kubectl-edit"
		}
		checkDrift(t, "service", d, err, manager, fields...)
		if len(d.Left) != 1 || d.Left[0].Path != ".spec.sessionAffinity" || d.Left[0].Live != "ClientIP" || d.Left[0].Manager != "kubectl-edit" {
			t.Errorf("left are %+v", d.Left)
		}
		a.apply(t)
	}
	if now := a.service(t); now.Spec.SessionAffinity != corev1.ServiceAffinityClientIP || len(now.Spec.ExternalIPs) > 0 {
		t.Errorf("it is %+v", now.Spec)
	}
}

// TestDriftOfIntent: Git has changed and nobody has meddled.
func TestDriftOfIntent(t *testing.T) {
	a := applyManifests(t, clustertest.Orders(func(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"team": "checkout"} }))
	next := mustRender(t, clustertest.Orders(clustertest.SetVersion("3.6.15"), clustertest.SetReplicas(5)))
	template, rest, err := drift.StatefulSet(a.set(t), next.StatefulSet)
	checkDrift(t, "template", template, err, "",
		`.spec.template.metadata.annotations.quorate.dev/template-hash`,
		`.spec.template.metadata.annotations.quorate.dev/version`,
		`.spec.template.spec.containers[name="etcd"].image`)
	checkDrift(t, "rest", rest, err, "", ".metadata.labels.team", ".spec.replicas")
	d, err := drift.Budget(a.budget(t), next.PDB)
	checkDrift(t, "budget", d, err, "", ".metadata.labels.team", ".spec.minAvailable")
	if !d.Own {
		t.Error("a change of the wish is taken for somebody's")
	}
}

// TestDriftOfARemoval: what another writer has removed has no owner, and is no change
// of the wish.
func TestDriftOfARemoval(t *testing.T) {
	a := applyManifests(t, clustertest.Orders())
	service := a.service(t)
	service.Spec.Selector = nil
	if _, err := a.client.CoreV1().Services("shop").Update(t.Context(), service, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	if d, err := drift.Service(a.service(t), a.want.Client); err != nil || d.Empty() || d.Own {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestDriftNamesTheLastHolder: of two that took a field, the later one counts.
func TestDriftNamesTheLastHolder(t *testing.T) {
	entry := func(manager string, at time.Time, fields string) metav1.ManagedFieldsEntry {
		stamp := metav1.NewTime(at)
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", Time: &stamp,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	a := applyManifests(t, clustertest.Orders())
	a.edit(t, func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(1)) })
	set := a.set(t)
	set.ManagedFields = slices.DeleteFunc(set.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "kubectl-edit" })
	set.ManagedFields = append(set.ManagedFields,
		entry("first", noon, `{"f:spec":{"f:replicas":{}}}`),
		entry("autoscaler", noon.Add(time.Hour), `{"f:spec":{"f:replicas":{}}}`),
		entry("early", noon.Add(time.Minute), `{"f:spec":{"f:replicas":{}}}`),
		entry("unrelated", noon.Add(2*time.Hour), `{"f:metadata":{"f:annotations":{"f:x":{}}}}`))
	_, rest, err := drift.StatefulSet(set, a.want.StatefulSet)
	checkDrift(t, "rest", rest, err, "autoscaler", ".spec.replicas")
	if !rest.Time.Equal(noon.Add(time.Hour)) {
		t.Errorf("at %s", rest.Time)
	}
}

// TestDriftOfUnownedObject: an object that quorate never applied is drift from
// head to foot, and named as its maker's.
func TestDriftOfUnownedObject(t *testing.T) {
	client := fake.NewClientset()
	want := mustRender(t, clustertest.Orders()).Client
	made, err := client.CoreV1().Services("shop").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "orders-client", Namespace: "shop"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}},
	}, metav1.CreateOptions{FieldManager: "helm"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := drift.Service(made, want)
	if err != nil {
		t.Fatal(err)
	}
	if d.Manager != "helm" || !strings.Contains(strings.Join(d.Fields, " "), ".spec.selector") {
		t.Errorf("got %+v", d)
	}
}

func mustRender(t *testing.T, c schema.EtcdCluster) manifests.Manifests {
	t.Helper()
	m, err := manifests.Render(c, manifests.Options{GuardImage: "ghcr.io/quorate/quorate:v0.1.0", ClusterDomain: "cluster.local"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// 240: what differs is shown with both values, who did it and when, by field; long values, and
// those from where a secret may be, are not.
func TestChangesSayWhatDiffers(t *testing.T) {
	a := applyManifests(t, clustertest.Orders())
	secret := "hunter2"
	a.edit(t, func(set *appsv1.StatefulSet) {
		set.Spec.Replicas = new(int32(5))
		pod := &set.Spec.Template
		pod.Annotations["token"] = secret
		etcd := &pod.Spec.Containers[0]
		etcd.Image = "evil:latest"
		etcd.Args = append(etcd.Args, "--password="+secret)
		etcd.Env = append(etcd.Env, corev1.EnvVar{Name: "TOKEN", Value: secret})
		etcd.ReadinessProbe.HTTPGet.HTTPHeaders = []corev1.HTTPHeader{{Name: "Authorization", Value: secret}}
		pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "spy", Image: "spy", Command: []string{"spy", secret}})
	})
	template, rest, err := drift.StatefulSet(a.set(t), a.want.StatefulSet)
	if err != nil {
		t.Fatal(err)
	}
	all := template.And(rest)
	texts := strings.Join(drift.Texts(all.Changes), "\n")
	if len(all.Changes) != len(all.Fields) || strings.Contains(texts, secret) {
		t.Errorf("the changes of %q are\n%s", all.Fields, texts)
	}
	for _, want := range []string{
		".spec.replicas (5, wanted 3)",
		`.spec.template.spec.containers[name="etcd"].image (evil:latest, wanted quay.io/coreos/etcd:v3.6.16)`,
		`.spec.template.spec.containers[name="etcd"].args`,
		`.spec.template.spec.containers[name="spy"]`,
		`.spec.template.spec.nodeSelector ({"disk":"ssd"}, wanted none)`,
	} {
		if !slices.Contains(drift.Texts(all.Changes), want) {
			t.Errorf("%s is not among\n%s", want, texts)
		}
	}
	for _, c := range all.Changes {
		if c.Manager != "kubectl-edit" || c.Time.IsZero() {
			t.Errorf("%+v", c)
		}
	}
}
