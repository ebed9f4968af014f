package reconciler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// benchClusters is how many clusters one pass over all looks at.
const benchClusters = 1000

// passOverAll makes a pass over every cluster, and wants each to be at rest.
func passOverAll(b *testing.B, r *reconciler.Reconciler, clusters map[string]*desired.Cluster) {
	b.Helper()
	for key, c := range clusters {
		if wait, err := r.Pass(b.Context(), *c); err != nil || wait != r.Options.Resync {
			p, _ := r.Plan(b.Context(), *c)
			b.Fatalf("%s: wait %s, error %v\n%s", key, wait, err, p.Text())
		}
	}
}

func podAtRest(name string, set *appsv1.StatefulSet) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: set.Spec.Template.Labels, Annotations: set.Spec.Template.Annotations},
		Spec:       set.Spec.Template.Spec,
		Status: corev1.PodStatus{
			PodIP: fmt.Sprintf("10.0.0.%d", naming.Ordinal(name)), Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: naming.ContainerEtcd, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}

// fromApply is the object that an apply of the configuration makes.
func fromApply[T any](b *testing.B, configuration any) *T {
	b.Helper()
	o := new(T)
	if err := json.Unmarshal(mustJSON(b, configuration), o); err != nil {
		b.Fatal(err)
	}
	return o
}

func mustJSON(b *testing.B, value any) []byte {
	b.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// BenchmarkNoOpPass1000Clusters looks once at each of 1,000 clusters that are
// what Git says. The members answer at once: what is measured is quorate.
func BenchmarkNoOpPass1000Clusters(b *testing.B) {
	api, clusters := standingClusters(b)
	r := reconciler.New(api, &healthyEtcd{}, &eventrecord.FakeRecorder{}, report.NewMetrics(prometheus.NewRegistry()),
		slog.New(slog.DiscardHandler), reconciler.Options{Render: reconcilertest.OrdersOptions()})
	defer r.Queue().ShutDown()
	if err := r.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	r.SetDesired(clusters)
	wanted := r.Desired()
	passOverAll(b, r, wanted)
	api.ClearActions()
	b.ReportAllocs()
	for b.Loop() {
		passOverAll(b, r, wanted)
	}
	b.ReportMetric(float64(len(api.Actions()))/float64(b.N), "api-requests/op")
	b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N*benchClusters), "ms/cluster")
	if n := len(api.Actions()); n > 0 {
		b.Errorf("%d API requests, want none", n)
	}
}

// healthyEtcd answers for any cluster whose members run 3.6.16.
type healthyEtcd struct{ reconcilertest.FakeEtcd }

func (*healthyEtcd) Round(_ context.Context, _ string, members []etcd.Endpoint, deep bool) state.Round {
	r := state.Round{At: time.Now(), ClusterID: "c1", ClusterVersion: "3.6.0", Deep: deep}
	for _, e := range members {
		r.Members = append(r.Members, state.Member{
			ID: reconcilertest.FakeMemberID(e.Member), Name: e.Member, Version: "3.6.16", Leader: "a0", Term: 2, CommitIndex: 100, AppliedIndex: 100, Revision: 7,
		})
	}
	return r
}

// standingClusters are clusters that stand, and the API server that has them.
func standingClusters(b *testing.B) (*fake.Clientset, []desired.Cluster) {
	b.Helper()
	owners := fieldOwners(b)
	var objects []runtime.Object
	var clusters []desired.Cluster
	for i := range benchClusters {
		c := clustertest.Orders(func(c *schema.EtcdCluster) { c.Metadata.Name = fmt.Sprintf("orders%d", i) })
		schema.Default(&c)
		clusters = append(clusters, desired.Cluster{EtcdCluster: c, Commit: "0a1b2c3"})
		objects = append(objects, standingCluster(b, c, owners)...)
	}
	return fake.NewClientset(objects...), clusters
}

// fieldOwners are the managed fields that server-side apply leaves on each kind
// of object. They name no cluster, so that one apply serves all.
func fieldOwners(b *testing.B) map[string][]metav1.ManagedFieldsEntry {
	b.Helper()
	api, m := fake.NewClientset(), renderForBench(b, clustertest.Orders())
	headless, err1 := api.CoreV1().Services("shop").Apply(b.Context(), m.Headless, kube.ApplyOptions())
	client, err2 := api.CoreV1().Services("shop").Apply(b.Context(), m.Client, kube.ApplyOptions())
	budget, err3 := api.PolicyV1().PodDisruptionBudgets("shop").Apply(b.Context(), m.PDB, kube.ApplyOptions())
	set, err4 := api.AppsV1().StatefulSets("shop").Apply(b.Context(), m.StatefulSet, kube.ApplyOptions())
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		b.Fatal(err)
	}
	return map[string][]metav1.ManagedFieldsEntry{
		"headless": headless.ManagedFields, "client": client.ManagedFields, "budget": budget.ManagedFields, "set": set.ManagedFields,
	}
}

func renderForBench(b *testing.B, c schema.EtcdCluster) manifests.Manifests {
	b.Helper()
	o := reconcilertest.OrdersOptions()
	o.Partition = c.Spec.Replicas
	m, err := manifests.Render(c, o)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// standingCluster is everything that the API server has of one cluster at rest.
func standingCluster(b *testing.B, c schema.EtcdCluster, owners map[string][]metav1.ManagedFieldsEntry) []runtime.Object {
	b.Helper()
	m := renderForBench(b, c)
	headless, client := fromApply[corev1.Service](b, m.Headless), fromApply[corev1.Service](b, m.Client)
	budget, set := fromApply[policyv1.PodDisruptionBudget](b, m.PDB), fromApply[appsv1.StatefulSet](b, m.StatefulSet)
	headless.ManagedFields, client.ManagedFields = owners["headless"], owners["client"]
	budget.ManagedFields, set.ManagedFields = owners["budget"], owners["set"]
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: c.Metadata.Name + "-1", Namespace: "shop", Labels: naming.OwnLabels(c)},
		Data:       runtime.RawExtension{Raw: mustJSON(b, map[string]any{"spec": map[string]any{"template": set.Spec.Template}})},
	}
	set.Status.CurrentRevision, set.Status.UpdateRevision = revision.Name, revision.Name
	objects := []runtime.Object{headless, client, budget, set, revision, recordAtRest(b, c)}
	for i := range int(c.Spec.Replicas) {
		objects = append(objects, podAtRest(naming.Member(c.Metadata.Name, int32(i)), set), &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "data-" + naming.Member(c.Metadata.Name, int32(i)), Namespace: "shop", Labels: naming.OwnLabels(c)},
		})
	}
	secrets, err := certs.Issue(c, reconcilertest.OrdersOptions().ClusterDomain, nil, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range secrets {
		objects = append(objects, s)
	}
	for i, o := range objects {
		if o, ok := o.(metav1.Object); ok {
			o.SetUID(types.UID(fmt.Sprintf("%s-%d", c.Metadata.Name, i)))
			o.SetResourceVersion("1")
		}
	}
	return objects
}

func recordAtRest(b *testing.B, c schema.EtcdCluster) *corev1.ConfigMap {
	b.Helper()
	r := record.New(c.Metadata.Name + "-0123456789abcdef")
	r.ClusterID = "c1"
	for i := range int(c.Spec.Replicas) {
		r.Members[naming.Member(c.Metadata.Name, int32(i))] = reconcilertest.FakeMemberID(naming.Member(c.Metadata.Name, int32(i)))
	}
	r.Applied = &record.Applied{SpecHash: schema.SpecHash(c.Spec), Version: c.Spec.Version, Commit: "0a1b2c3"}
	return fromApply[corev1.ConfigMap](b, r.ConfigMap(c))
}
