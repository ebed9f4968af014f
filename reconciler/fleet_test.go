package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// fleetEtcd is the etcd of several clusters, by key. What no roll asks for goes to
// that of orders.
type fleetEtcd struct {
	reconciler.Members
	clusters map[string]*reconcilertest.FakeEtcd
}

func (e fleetEtcd) Round(ctx context.Context, cluster string, members []etcd.Endpoint, deep bool) state.Round {
	return e.clusters[cluster].Round(ctx, cluster, members, deep)
}

func (e fleetEtcd) MoveLeader(ctx context.Context, cluster string, leader etcd.Target, toID string) error {
	return e.clusters[cluster].MoveLeader(ctx, cluster, leader, toID)
}

func (e fleetEtcd) Snapshot(ctx context.Context, cluster string, member etcd.Target) (io.ReadCloser, error) {
	return e.clusters[cluster].Snapshot(ctx, cluster, member)
}

func (e fleetEtcd) Forget(cluster string) { e.clusters[cluster].Forget(cluster) }

// fleet is orders and other clusters beside it, all formed and applied.
type fleet struct {
	*reconcilertest.World
	etcds map[string]*reconcilertest.FakeEtcd
	names []string
}

func inFleet(t *testing.T, names []string, test func(f *fleet)) {
	t.Helper()
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		f := &fleet{World: w, etcds: map[string]*reconcilertest.FakeEtcd{w.Wish.Key(): w.Etcd}, names: names}
		w.Ask(fleetEtcd{w.Etcd, f.etcds})
		for _, name := range names {
			f.add(name)
		}
		w.API.ClearActions()
		w.Log.Reset()
		test(f)
	}, clustertest.SetVersion("3.6.12"), clustertest.SkipBackup)
}

// add forms another cluster.
func (f *fleet) add(name string) {
	f.Helper()
	c := reconciler.WishOf(name)
	e := &reconcilertest.FakeEtcd{Leader: name + "-0", Version: func(member string) string { return f.Pod(member).Annotations[naming.AnnotationVersion] }}
	for i := range int(c.Spec.Replicas) {
		e.Members = append(e.Members, naming.Member(c.Metadata.Name, int32(i)))
	}
	f.etcds[c.Key()] = e
	f.untilDone(c)
}

// untilDone makes passes over a cluster until it is what Git says.
func (f *fleet) untilDone(c desired.Cluster) {
	f.Helper()
	for range 200 {
		f.serve()
		p, err := f.R.Plan(f.Context(), c)
		if err != nil {
			f.Fatal(err)
		}
		if p.Idle() {
			return
		}
		wait, err := f.R.Pass(f.Context(), c)
		if err != nil {
			f.Fatal(err)
		}
		time.Sleep(wait)
	}
	f.Fatalf("%s is never done:\n%s", c.Key(), f.Log)
}

// serve lets the controllers of all clusters act, and the caches catch up.
func (f *fleet) serve() {
	f.Helper()
	for f.Control() {
	}
	for _, name := range f.names {
		if set := f.setOf(name); set != nil {
			f.roll(set)
		}
	}
	synctest.Wait()
}

func (f *fleet) setOf(name string) *appsv1.StatefulSet {
	f.Helper()
	object, err := f.API.Tracker().Get(reconcilertest.SetsResource(), "shop", name)
	if err != nil {
		return nil
	}
	set, _ := object.(*appsv1.StatefulSet)
	return set
}

// roll gives each pod that the partition lets go the set's template.
func (f *fleet) roll(set *appsv1.StatefulSet) {
	f.Helper()
	template, updated := set.Spec.Template, int32(0)
	for i := range int(*set.Spec.Replicas) {
		name := fmt.Sprintf("%s-%d", set.Name, i)
		pod := f.Pod(name)
		if pod == nil || pod.Annotations[naming.AnnotationTemplateHash] != template.Annotations[naming.AnnotationTemplateHash] && i >= int(observe.Partition(set)) {
			pod = &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Annotations: template.Annotations, Labels: template.Labels},
				Spec:       template.Spec,
				Status: corev1.PodStatus{
					PodIP:             "10.0.1." + name,
					ContainerStatuses: []corev1.ContainerStatus{{Name: naming.ContainerEtcd, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
					Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}},
				},
			}
			f.Put(reconcilertest.PodsResource(), pod)
		}
		if pod.Annotations[naming.AnnotationTemplateHash] == template.Annotations[naming.AnnotationTemplateHash] {
			updated++
		}
	}
	before := set.Status.DeepCopy()
	set.Status.ObservedGeneration, set.Status.UpdateRevision, set.Status.ReadyReplicas = set.Generation, f.Revision(set), *set.Spec.Replicas
	if updated == *set.Spec.Replicas {
		set.Status.CurrentRevision = set.Status.UpdateRevision
	}
	if !equality.Semantic.DeepEqual(before, &set.Status) {
		told := metav1.ManagedFieldsEntry{
			Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", APIVersion: "apps/v1", Time: new(metav1.Now()),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:readyReplicas":{}}}`),
		}
		set.ManagedFields = append(slices.DeleteFunc(set.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "status" }), told)
		f.Put(reconcilertest.SetsResource(), set)
	}
}

// rolls are the clusters that have begun a roll, by the log.
func (f *fleet) rolls() []string {
	f.Helper()
	var begun []string
	actions := f.Lines("step done", "action")
	for i, key := range f.Lines("step done", "cluster") {
		if strings.HasPrefix(actions[i], "start the roll") {
			begun = append(begun, key)
		}
	}
	return begun
}

// I28: two workers that look at the same moment both see a place, and only one
// takes it.
func TestTwoWorkersNeverTakeTheLastPlace(t *testing.T) {
	inFleet(t, []string{"baskets", "users"}, func(f *fleet) {
		clusters := []desired.Cluster{reconciler.WishOf("orders", clustertest.SetVersion("3.6.16")), reconciler.WishOf("baskets", clustertest.SetVersion("3.6.16")), reconciler.WishOf("users", clustertest.SetVersion("3.6.16"))}
		f.R.SetDesired(clusters)
		// What has been decided is applied a moment later.
		f.Reconfigure(func(o *reconciler.Options) {
			o.Lease = func() error {
				time.Sleep(time.Second)
				return nil
			}
		})
		var workers sync.WaitGroup
		errs := make([]error, len(clusters))
		for i, c := range clusters {
			workers.Go(func() { _, errs[i] = f.R.Pass(f.Context(), c) })
		}
		workers.Wait()
		changed := 0
		for _, err := range errs {
			if errors.Is(err, state.ErrChanged) {
				changed++
			} else if err != nil {
				t.Error(err)
			}
		}
		if begun := f.rolls(); len(begun) != 1 || changed != 2 {
			t.Errorf("%v have begun, errors %v", begun, errs)
		}
	})
}

// I3: caches that lag behind do not give away a place that is taken.
func TestStaleCachesGiveNoPlaceAway(t *testing.T) {
	inFleet(t, []string{"baskets"}, func(f *fleet) {
		f.API.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, watch.NewFake(), nil
		})
		f.As(state.Owner{})
		orders := reconciler.WishOf("orders", clustertest.SetVersion("3.6.16"))
		f.R.SetDesired([]desired.Cluster{orders, reconciler.WishOf("baskets")})
		set := f.setOf("baskets")
		set.Status.ReadyReplicas = 2
		f.Put(reconcilertest.SetsResource(), set)
		if _, err := f.R.Pass(f.Context(), orders); !errors.Is(err, state.ErrChanged) || len(f.rolls()) > 0 {
			t.Errorf("error %v, begun %v", err, f.rolls())
		}
	})
}

// With two places, two begin.
func TestMaxDisruptedIsHowManyBegin(t *testing.T) {
	inFleet(t, []string{"baskets", "users"}, func(f *fleet) {
		f.Reconfigure(func(o *reconciler.Options) { o.MaxDisrupted = 2 })
		clusters := []desired.Cluster{reconciler.WishOf("orders", clustertest.SetVersion("3.6.16")), reconciler.WishOf("baskets", clustertest.SetVersion("3.6.16")), reconciler.WishOf("users", clustertest.SetVersion("3.6.16"))}
		f.R.SetDesired(clusters)
		for _, c := range clusters {
			if _, err := f.R.Pass(f.Context(), c); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		if begun := f.rolls(); len(begun) != 2 {
			t.Errorf("%v have begun", begun)
		}
		if holds := f.Lines("on hold", "reason"); len(holds) != 1 || !strings.Contains(holds[0], "at most 2 clusters") || !strings.Contains(holds[0], "shop/baskets (its StatefulSet has just been changed)") {
			t.Errorf("holds %q", holds)
		}
	})
}

// The fleet is not remembered but looked at: a daemon that has just started sees
// who is disrupted, and continues with what has begun.
func TestANewDaemonCountsWhatIsDisrupted(t *testing.T) {
	inFleet(t, []string{"baskets"}, func(f *fleet) {
		orders, baskets := reconciler.WishOf("orders", clustertest.SetVersion("3.6.16")), reconciler.WishOf("baskets", clustertest.SetVersion("3.6.16"))
		f.R.SetDesired([]desired.Cluster{orders, baskets})
		for len(f.rolls()) == 0 {
			if _, err := f.R.Pass(f.Context(), baskets); err != nil {
				t.Fatal(err)
			}
			f.serve()
		}
		f.As(state.Owner{})
		f.R.SetDesired([]desired.Cluster{orders, baskets})
		p, err := f.R.Plan(f.Context(), orders)
		if err != nil || p.Hold == nil || p.Hold.Rule != "fleet" || !strings.Contains(p.Hold.Message, "shop/baskets (it is being rolled)") {
			t.Fatalf("error %v, plan:\n%s", err, p.Text())
		}
		f.untilDone(baskets)
		f.untilDone(orders)
	})
}

// Waves: a higher one begins when every lower one is done, members included.
func TestWavesGoOneAfterTheOther(t *testing.T) {
	inFleet(t, []string{"canary"}, func(f *fleet) {
		wave := func(n int32) func(*schema.EtcdCluster) {
			return func(c *schema.EtcdCluster) { c.Spec.Upgrade.Wave = n }
		}
		orders, canary := reconciler.WishOf("orders", clustertest.SetVersion("3.6.16"), wave(1)), reconciler.WishOf("canary", clustertest.SetVersion("3.6.16"))
		f.R.SetDesired([]desired.Cluster{orders, canary})
		waits := func(why string) {
			t.Helper()
			p, err := f.R.Plan(f.Context(), orders)
			if err != nil || p.Hold == nil || p.Hold.Rule != "fleet" || !strings.Contains(p.Hold.Message, "wave 1 begins") || !strings.Contains(p.Hold.Message, "shop/canary ("+why) {
				t.Errorf("want %q, error %v, plan:\n%s", why, err, p.Text())
			}
		}
		waits("its file has not been applied yet")
		f.untilDone(canary)
		// Kubernetes and the record are content; a member is not.
		f.etcds["shop/canary"].Change = func(r *state.Round) { r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: "a1"}} }
		waits("")
		f.etcds["shop/canary"].Change = nil
		broken := desired.Cluster{Commit: "bad", Problems: []string{"canary.yaml:1: no version"}}
		broken.Metadata = canary.Metadata
		f.R.SetDesired([]desired.Cluster{orders, broken})
		waits("its file has errors")
		f.R.SetDesired([]desired.Cluster{orders, canary})
		f.untilDone(orders)
		if begun := f.rolls(); len(begun) != 2 || begun[0] != "shop/canary" || begun[1] != "shop/orders" {
			t.Errorf("begun %v", begun)
		}
	})
}

// A cluster that is only observed is not disrupted by quorate, and holds a wave
// only while it is not what its file says.
func TestObservedClusterInAFleet(t *testing.T) {
	inFleet(t, []string{"canary"}, func(f *fleet) {
		observe := func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve }
		orders := reconciler.WishOf("orders", clustertest.SetVersion("3.6.16"), inWaveOne)
		f.R.SetDesired([]desired.Cluster{orders, reconciler.WishOf("canary", observe, clustertest.SetVersion("3.6.16"))})
		if p, err := f.R.Plan(f.Context(), orders); err != nil || p.Hold == nil || !strings.Contains(p.Hold.Message, "shop/canary (still to do: start the roll") {
			t.Errorf("error %v, plan:\n%s", err, p.Text())
		}
		f.R.SetDesired([]desired.Cluster{orders, reconciler.WishOf("canary", observe)})
		if p, err := f.R.Plan(f.Context(), orders); err != nil || p.Hold != nil {
			t.Errorf("error %v, plan:\n%s", err, p.Text())
		}
	})
}

// At rest nobody asks what the others do.
func TestFleetAtRestAsksNothing(t *testing.T) {
	inFleet(t, []string{"baskets"}, func(f *fleet) {
		f.R.SetDesired([]desired.Cluster{f.Wish, reconciler.WishOf("baskets")})
		f.MustPass()
		if requests := f.API.Requests(); len(requests) > 0 {
			t.Errorf("requests %q", requests)
		}
	})
}
