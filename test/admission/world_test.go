package admission

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/lab"
	"github.com/quorate/quorate/test/needs"
)

// api is the one API server of all tests, each of which has its namespace.
var api *rest.Config

// kubectl is the path of that of the API server's release.
var kubectl string

// worlds is how many tests that need no policies of deploy/ run at a time: they wait for policies to be in force, and
// for the controllers.
const worlds = 4

func TestMain(m *testing.M) { os.Exit(run(m)) } //nolint:forbidigo // TestMain returns no error

func run(m *testing.M) int {
	etcdtest.AtOnce(worlds)
	if err := needs.Time(); err != nil {
		return needs.Main(err)
	}
	sandbox, err := lab.WithKubernetes()
	if err != nil {
		return needs.Main(err)
	}
	stop, err := start(context.Background(), sandbox)
	defer stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "admission:", err)
		return 1
	}
	return m.Run()
}

// start starts etcd, the API server and the controllers, and returns what ends them.
func start(ctx context.Context, sandbox *lab.Sandbox) (stop func(), err error) {
	var ends []func()
	stop = func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}
	dir, err := os.MkdirTemp("", "quorate-admission-")
	if err != nil {
		return stop, err
	}
	ends = append(ends, func() { _ = os.RemoveAll(dir) })
	store, err := sandbox.StartEtcd(ctx, "3.6.16", filepath.Join(dir, "etcd"), "--unsafe-no-fsync")
	if err != nil {
		return stop, err
	}
	ends = append(ends, store.Close)
	const several = "--feature-gates=MaxUnavailableStatefulSet=true"
	server, err := sandbox.StartAPIServer(ctx, store.URL, filepath.Join(dir, "api"), several, "--allow-privileged")
	if err != nil {
		return stop, err
	}
	ends = append(ends, server.Close)
	controllers, err := sandbox.StartControllers(ctx, server, filepath.Join(dir, "controllers"), []string{
		"statefulset-controller", "disruption-controller", "garbage-collector-controller", "persistentvolumeclaim-protection-controller",
		"clusterrole-aggregation-controller", "validatingadmissionpolicy-status-controller",
	}, several)
	if err != nil {
		return stop, err
	}
	ends = append(ends, controllers.Close)
	if kubectl, err = sandbox.Build(ctx, "kubectl"); err != nil {
		return stop, err
	}
	api = server.Config
	api.QPS, api.Burst = 500, 1000
	return stop, nil
}

// world is one test's namespace, cluster and reconciler.
type world struct {
	*testing.T
	kube      *kubernetes.Clientset
	client    kubernetes.Interface // quorate's
	writes    *writes
	namespace string
	only      kube.Namespaces // of --namespaces
	wish      desired.Cluster
	events    *eventrecord.FakeRecorder
	log       *buffer
	r         *reconciler.Reconciler
	etcd      *reconcilertest.FakeEtcd
	// backups is the place of backups, see --backup-url; "" for none.
	backups string
}

func newWorld(t *testing.T, namespace string) *world {
	t.Helper()
	return newWorldAs(t, namespace, rest.ImpersonationConfig{})
}

// newWorldAs is a world whose quorate acts as a user; its cluster is changed by edits.
func newWorldAs(t *testing.T, namespace string, user rest.ImpersonationConfig, edits ...func(*schema.EtcdCluster)) *world {
	t.Helper()
	return newWorldIn(t, namespace, user, nil, edits...)
}

// newWorldIn is such a world whose quorate works in some namespaces only.
func newWorldIn(t *testing.T, namespace string, user rest.ImpersonationConfig, only kube.Namespaces, edits ...func(*schema.EtcdCluster)) *world {
	t.Helper()
	config := rest.CopyConfig(api)
	w := &world{T: t, namespace: namespace, only: only, writes: &writes{}, events: eventrecord.NewFakeRecorder(10000), log: &buffer{}}
	var err error
	w.kube, err = kubernetes.NewForConfig(config)
	w.must(err)
	counted := rest.CopyConfig(api)
	counted.Impersonate = user
	counted.Wrap(w.writes.wrap)
	quorates, err := kubernetes.NewForConfig(counted)
	w.must(err)
	_, err = w.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"test": namespace}}}, metav1.CreateOptions{})
	w.must(err)
	c := clustertest.Orders(func(c *schema.EtcdCluster) {
		c.Metadata.Namespace, c.Spec.TLS.Mode, c.Spec.Upgrade.Backup = namespace, schema.TLSDisabled, schema.BackupSkip
		c.Spec.Upgrade.Soak = &metav1.Duration{}
		for _, edit := range edits {
			edit(c)
		}
	})
	schema.Default(&c)
	w.wish = desired.Cluster{EtcdCluster: c, Commit: "0a1b2c3"}
	w.etcd = &reconcilertest.FakeEtcd{Version: w.version, Leader: "orders-0", Saved: map[string]int64{}}
	for i := range c.Spec.Replicas {
		w.etcd.Members = append(w.etcd.Members, naming.Member("orders", i))
	}
	w.client = quorates
	w.restart()
	w.playKubelet()
	return w
}

// restart lets another process take over, which knows nothing.
func (w *world) restart() { w.Helper(); w.r = w.reconciler(w.client) }

// reconciler is one that has just started.
func (w *world) reconciler(client kubernetes.Interface) *reconciler.Reconciler {
	w.Helper()
	r := reconciler.New(client, w.etcd, w.events, report.NewMetrics(prometheus.NewRegistry()), slog.New(slog.NewJSONHandler(w.log, nil)), reconciler.Options{
		Render: manifests.Options{GuardImage: "ghcr.io/quorate/quorate:v0.1.0"}, BackupURL: w.backups, BackupRunner: scheduler.InJob, Namespaces: w.only,
	})
	w.Cleanup(r.Close)
	w.must(r.Start(w.Context()))
	return r
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// version is that of the template which the member's pod was made from, "" while it is not ready.
func (w *world) version(member string) string {
	pod, err := w.kube.CoreV1().Pods(w.namespace).Get(context.Background(), member, metav1.GetOptions{})
	if err != nil || len(pod.Status.Conditions) == 0 {
		return ""
	}
	return pod.Annotations[naming.AnnotationVersion]
}

// playKubelet lets pods run and be ready, and binds their claims.
func (w *world) playKubelet() {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for ctx.Err() == nil {
			w.runPods(ctx)
			w.bindClaims(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	w.Cleanup(func() { cancel(); ended.Wait() })
}

func (w *world) runPods(ctx context.Context) {
	pods, err := w.kube.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return // it is asked again
	}
	for _, p := range pods.Items {
		if p.DeletionTimestamp != nil || len(p.Status.Conditions) > 0 {
			continue
		}
		now := metav1.Now()
		p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, "10.9.0."+fmt.Sprint(naming.Ordinal(p.Name)+1), nil
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}}
		for _, c := range p.Spec.Containers {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: c.Name, Image: c.Image, Ready: true, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
			})
		}
		_, _ = w.kube.CoreV1().Pods(w.namespace).UpdateStatus(ctx, &p, metav1.UpdateOptions{})
	}
}

func (w *world) bindClaims(ctx context.Context) {
	claims, err := w.kube.CoreV1().PersistentVolumeClaims(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, c := range claims.Items {
		if c.Status.Phase == corev1.ClaimBound {
			continue
		}
		c.Spec.VolumeName = "pv-" + c.Name
		bound, err := w.kube.CoreV1().PersistentVolumeClaims(w.namespace).Update(ctx, &c, metav1.UpdateOptions{})
		if err != nil {
			continue
		}
		bound.Status.Phase, bound.Status.Capacity = corev1.ClaimBound, c.Spec.Resources.Requests
		_, _ = w.kube.CoreV1().PersistentVolumeClaims(w.namespace).UpdateStatus(ctx, bound, metav1.UpdateOptions{})
	}
}

// until makes passes until the plan is as wanted.
func (w *world) until(what string, wanted func(decision.Plan) bool) decision.Plan {
	w.Helper()
	var p decision.Plan
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		// A pass that fails is tried again; the log has it.
		wait, _ := w.r.Pass(w.Context(), w.wish)
		var err error
		if p, err = w.r.Plan(w.Context(), w.wish); err != nil {
			w.Fatal(err)
		}
		if wanted(p) {
			return p
		}
		time.Sleep(min(max(wait, 50*time.Millisecond), time.Second))
	}
	w.Fatalf("waited for %s; the plan is\n%s\nand the log says\n%s", what, p.Text(), w.log)
	return p
}

func (w *world) untilIdle() decision.Plan {
	w.Helper()
	return w.until("the cluster to be what Git says", decision.Plan.Idle)
}

// untilHeld makes passes until a rule holds with some words.
func (w *world) untilHeld(rule string, words ...string) decision.Plan {
	w.Helper()
	return w.until(rule+" to hold with "+strings.Join(words, ", "), func(p decision.Plan) bool {
		return p.Hold != nil && p.Hold.Rule == rule && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(p.Hold.String(), word) })
	})
}

// passes makes passes for a while, and returns what quorate wrote meanwhile.
func (w *world) passes(n int) []string {
	w.Helper()
	w.writes.take()
	for range n {
		wait, err := w.r.Pass(w.Context(), w.wish)
		if err != nil {
			w.Log(err)
		}
		time.Sleep(min(wait, 100*time.Millisecond))
	}
	return w.writes.take()
}

func (w *world) set() *appsv1.StatefulSet {
	w.Helper()
	set, err := w.kube.AppsV1().StatefulSets(w.namespace).Get(w.Context(), "orders", metav1.GetOptions{})
	w.must(err)
	return set
}

func (w *world) pods() map[string]corev1.Pod {
	w.Helper()
	list, err := w.kube.CoreV1().Pods(w.namespace).List(w.Context(), metav1.ListOptions{})
	w.must(err)
	pods := map[string]corev1.Pod{}
	for _, p := range list.Items {
		pods[p.Name] = p
	}
	return pods
}

// commit is what Git says from now on.
func (w *world) commit(edit func(*schema.EtcdCluster)) {
	edit(&w.wish.EtcdCluster)
	w.wish.Commit, w.wish.Digest = w.wish.Commit+"1", ""
	w.wish = w.wish.Identified()
}

// writesTo are the requests that create or change a resource.
func writesTo(group, resource string) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
	}
}

func match(group, resource string) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: writesTo(group, resource)}}}
}

// settle is how long the API server takes to see a policy or a webhook.
const settle = 2 * time.Second

// inForce waits until the API server acts by what was just configured. It is removed by stop, or at the end.
func (w *world) inForce(remove func()) (stop func()) {
	stop = sync.OnceFunc(func() {
		remove()
		time.Sleep(settle)
	})
	w.Cleanup(stop)
	time.Sleep(settle)
	return stop
}

func (w *world) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"test": w.namespace}}
}

// refuse lets the API server refuse objects of the namespace that do not meet a CEL expression.
func (w *world) refuse(group, resource, expression, message string) (stop func()) {
	w.Helper()
	name := w.namespace + "-" + resource
	client := w.kube.AdmissionregistrationV1()
	_, err := client.ValidatingAdmissionPolicies().Create(w.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: match(group, resource), Validations: []admissionv1.Validation{{Expression: expression, Message: message}},
		},
	}, metav1.CreateOptions{})
	w.must(err)
	_, err = client.ValidatingAdmissionPolicyBindings().Create(w.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}, MatchResources: &admissionv1.MatchResources{NamespaceSelector: w.selector()},
		},
	}, metav1.CreateOptions{})
	w.must(err)
	return w.inForce(func() {
		_ = client.ValidatingAdmissionPolicyBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
		_ = client.ValidatingAdmissionPolicies().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}
