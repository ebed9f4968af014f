package reconciler

import (
	"context"
	"errors"
	"fmt"
	"io"
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

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/record/recordtest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// fleetEtcd is the etcd of several clusters, by key. What no roll asks for goes to
// that of orders.
type fleetEtcd struct {
	etcd.Members
	clusters map[string]*fakeEtcd
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
	*world
	etcds map[string]*fakeEtcd
	names []string
}

// skipBackup lets an upgrade begin with the roll itself.
func skipBackup(c *schema.EtcdCluster) { c.Spec.Upgrade.Backup = schema.BackupSkip }

func inFleet(t *testing.T, names []string, test func(f *fleet)) {
	t.Helper()
	formed(t, func(w *world) {
		f := &fleet{world: w, etcds: map[string]*fakeEtcd{w.wish.Key(): w.etcd}, names: names}
		w.ask(fleetEtcd{w.etcd, f.etcds})
		for _, name := range names {
			f.add(name)
		}
		w.api.ClearActions()
		w.log.Reset()
		test(f)
	}, clustertest.SetVersion("3.6.12"), skipBackup)
}

// wishOf is what Git says of a cluster of the fleet.
func wishOf(name string, edits ...func(*schema.EtcdCluster)) desired.Cluster {
	c := clustertest.Orders(clustertest.SetVersion("3.6.12"), skipBackup, func(c *schema.EtcdCluster) { c.Metadata.Name = name })
	for _, edit := range edits {
		edit(&c)
	}
	schema.Default(&c)
	return desired.Cluster{EtcdCluster: c, Commit: "0a1b2c3"}
}

// add forms another cluster.
func (f *fleet) add(name string) {
	f.Helper()
	c := wishOf(name)
	e := &fakeEtcd{leader: name + "-0", version: func(member string) string { return f.pod(member).Annotations[naming.AnnotationVersion] }}
	for i := range int(c.Spec.Replicas) {
		e.members = append(e.members, naming.Member(c.Metadata.Name, int32(i)))
	}
	f.etcds[c.Key()] = e
	f.untilDone(c)
}

// untilDone makes passes over a cluster until it is what Git says.
func (f *fleet) untilDone(c desired.Cluster) {
	f.Helper()
	for range 200 {
		f.serve()
		p, err := f.r.Plan(f.Context(), c)
		if err != nil {
			f.Fatal(err)
		}
		if p.Idle() {
			return
		}
		wait, err := f.r.Pass(f.Context(), c)
		if err != nil {
			f.Fatal(err)
		}
		time.Sleep(wait)
	}
	f.Fatalf("%s is never done:\n%s", c.Key(), f.log)
}

// serve lets the controllers of all clusters act, and the caches catch up.
func (f *fleet) serve() {
	f.Helper()
	for f.control() {
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
	object, err := f.api.Tracker().Get(setsResource(), "shop", name)
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
		pod := f.pod(name)
		if pod == nil || pod.Annotations[naming.AnnotationTemplateHash] != template.Annotations[naming.AnnotationTemplateHash] && i >= int(partitionOf(set)) {
			pod = &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Annotations: template.Annotations, Labels: template.Labels},
				Spec:       template.Spec,
				Status: corev1.PodStatus{
					PodIP:             "10.0.1." + name,
					ContainerStatuses: []corev1.ContainerStatus{{Name: naming.ContainerEtcd, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
					Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}},
				},
			}
			f.put(podsResource(), pod)
		}
		if pod.Annotations[naming.AnnotationTemplateHash] == template.Annotations[naming.AnnotationTemplateHash] {
			updated++
		}
	}
	before := set.Status.DeepCopy()
	set.Status.ObservedGeneration, set.Status.UpdateRevision, set.Status.ReadyReplicas = set.Generation, f.revision(set), *set.Spec.Replicas
	if updated == *set.Spec.Replicas {
		set.Status.CurrentRevision = set.Status.UpdateRevision
	}
	if !equality.Semantic.DeepEqual(before, &set.Status) {
		f.put(setsResource(), set)
	}
}

// rolls are the clusters that have begun a roll, by the log.
func (f *fleet) rolls() []string {
	f.Helper()
	var begun []string
	actions := f.lines("done", "action")
	for i, key := range f.lines("done", "cluster") {
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
		clusters := []desired.Cluster{wishOf("orders", clustertest.SetVersion("3.6.16")), wishOf("baskets", clustertest.SetVersion("3.6.16")), wishOf("users", clustertest.SetVersion("3.6.16"))}
		f.r.SetDesired(clusters)
		// What has been decided is carried out a moment later.
		f.reconfigure(func(o *Options) {
			o.Lease = func() error {
				time.Sleep(time.Second)
				return nil
			}
		})
		var workers sync.WaitGroup
		errs := make([]error, len(clusters))
		for i, c := range clusters {
			workers.Go(func() { _, errs[i] = f.r.Pass(f.Context(), c) })
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
		f.api.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, watch.NewFake(), nil
		})
		f.as(state.Owner{})
		orders := wishOf("orders", clustertest.SetVersion("3.6.16"))
		f.r.SetDesired([]desired.Cluster{orders, wishOf("baskets")})
		set := f.setOf("baskets")
		set.Status.ReadyReplicas = 2
		f.put(setsResource(), set)
		if _, err := f.r.Pass(f.Context(), orders); !errors.Is(err, state.ErrChanged) || len(f.rolls()) > 0 {
			t.Errorf("error %v, begun %v", err, f.rolls())
		}
	})
}

// With two places, two begin.
func TestMaxDisruptedIsHowManyBegin(t *testing.T) {
	inFleet(t, []string{"baskets", "users"}, func(f *fleet) {
		f.reconfigure(func(o *Options) { o.MaxDisrupted = 2 })
		clusters := []desired.Cluster{wishOf("orders", clustertest.SetVersion("3.6.16")), wishOf("baskets", clustertest.SetVersion("3.6.16")), wishOf("users", clustertest.SetVersion("3.6.16"))}
		f.r.SetDesired(clusters)
		for _, c := range clusters {
			if _, err := f.r.Pass(f.Context(), c); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		if begun := f.rolls(); len(begun) != 2 {
			t.Errorf("%v have begun", begun)
		}
		if holds := f.lines("hold", "message"); len(holds) != 1 || !strings.Contains(holds[0], "at most 2 clusters") || !strings.Contains(holds[0], "shop/baskets (its StatefulSet has just been changed)") {
			t.Errorf("holds %q", holds)
		}
	})
}

// The fleet is not remembered but looked at: a daemon that has just started sees
// who is disrupted, and goes on with what has begun.
func TestANewDaemonCountsWhatIsDisrupted(t *testing.T) {
	inFleet(t, []string{"baskets"}, func(f *fleet) {
		orders, baskets := wishOf("orders", clustertest.SetVersion("3.6.16")), wishOf("baskets", clustertest.SetVersion("3.6.16"))
		f.r.SetDesired([]desired.Cluster{orders, baskets})
		for len(f.rolls()) == 0 {
			if _, err := f.r.Pass(f.Context(), baskets); err != nil {
				t.Fatal(err)
			}
			f.serve()
		}
		f.as(state.Owner{})
		f.r.SetDesired([]desired.Cluster{orders, baskets})
		p, err := f.r.Plan(f.Context(), orders)
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
		orders, canary := wishOf("orders", clustertest.SetVersion("3.6.16"), wave(1)), wishOf("canary", clustertest.SetVersion("3.6.16"))
		f.r.SetDesired([]desired.Cluster{orders, canary})
		waits := func(why string) {
			t.Helper()
			p, err := f.r.Plan(f.Context(), orders)
			if err != nil || p.Hold == nil || p.Hold.Rule != "fleet" || !strings.Contains(p.Hold.Message, "wave 1 begins") || !strings.Contains(p.Hold.Message, "shop/canary ("+why) {
				t.Errorf("want %q, error %v, plan:\n%s", why, err, p.Text())
			}
		}
		waits("its file has not been carried out yet")
		f.untilDone(canary)
		// Kubernetes and the record are content; a member is not.
		f.etcds["shop/canary"].change = func(r *state.Round) { r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: "a1"}} }
		waits("")
		f.etcds["shop/canary"].change = nil
		broken := desired.Cluster{Commit: "bad", Problems: []string{"canary.yaml:1: no version"}}
		broken.Metadata = canary.Metadata
		f.r.SetDesired([]desired.Cluster{orders, broken})
		waits("its file has errors")
		f.r.SetDesired([]desired.Cluster{orders, canary})
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
		orders := wishOf("orders", clustertest.SetVersion("3.6.16"), func(c *schema.EtcdCluster) { c.Spec.Upgrade.Wave = 1 })
		f.r.SetDesired([]desired.Cluster{orders, wishOf("canary", observe, clustertest.SetVersion("3.6.16"))})
		if p, err := f.r.Plan(f.Context(), orders); err != nil || p.Hold == nil || !strings.Contains(p.Hold.Message, "shop/canary (still to do: start the roll") {
			t.Errorf("error %v, plan:\n%s", err, p.Text())
		}
		f.r.SetDesired([]desired.Cluster{orders, wishOf("canary", observe)})
		if p, err := f.r.Plan(f.Context(), orders); err != nil || p.Hold != nil {
			t.Errorf("error %v, plan:\n%s", err, p.Text())
		}
	})
}

// A change of members shows in the record, and counts as well.
func TestMembersOnTheirWayDisrupt(t *testing.T) {
	for want, edit := range map[string]func(*record.Record){
		"orders-3 is on its way in":  func(r *record.Record) { r.Joining = &record.Joining{Member: "orders-3"} },
		"orders-2 is on its way out": func(r *record.Record) { r.Leaving = &record.Leaving{Member: "orders-2", ID: "fd422379fda50e48"} },
		"orders-2 is being replaced": func(r *record.Record) { r.Replacing = "orders-2" },
		"its StatefulSet is gone":    func(*record.Record) {},
	} {
		r := recordtest.Formed()
		edit(&r)
		if got := disrupted(standing{record: recordtest.Stored(r)}, wishOf("orders")); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A cluster that serves nobody by its own file is not disrupted.
func TestWhatDoesNotDisrupt(t *testing.T) {
	joins := func(r *record.Record) { r.Joining = &record.Joining{Member: "orders-3"} }
	observed := func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve }
	for name, test := range map[string]struct {
		rec  func(*record.Record)
		file func(*schema.EtcdCluster)
	}{
		"hibernated":      {func(r *record.Record) { joins(r); r.Hibernated = true }, skipBackup},
		"deleted":         {func(r *record.Record) { joins(r); r.Deleted = true }, skipBackup},
		"never formed":    {func(r *record.Record) { *r = record.New("t"); joins(r) }, skipBackup},
		"only observed":   {joins, observed},
		"to be deleted":   {func(*record.Record) {}, func(c *schema.EtcdCluster) { c.Spec.State = schema.StateDeleted }},
		"to be hibernate": {func(*record.Record) {}, func(c *schema.EtcdCluster) { c.Spec.State = schema.StateHibernated }},
	} {
		r := recordtest.Formed()
		test.rec(&r)
		if got := disrupted(standing{record: recordtest.Stored(r)}, wishOf("orders", test.file)); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := disrupted(standing{}, wishOf("orders")); got != "" {
		t.Errorf("never made: %q", got)
	}
}

// A lower wave is not over while a file of it waits to be carried out.
func TestWhatIsPlainlyUnfinished(t *testing.T) {
	c := wishOf("orders")
	broken, observed, asleep := c, wishOf("orders", func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve }), wishOf("orders", func(c *schema.EtcdCluster) { c.Spec.State = schema.StateHibernated })
	broken.Problems = []string{"no"}
	applied := func(hash string) standing {
		r := recordtest.Formed()
		if r.Applied = nil; hash != "" {
			r.Applied = &record.Applied{SpecHash: hash}
		}
		return standing{record: recordtest.Stored(r), set: &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(0))}}}
	}
	damaged := applied("")
	damaged.record.Data[naming.KeyRecord] = "{"
	for name, test := range map[string]struct {
		standing standing
		file     desired.Cluster
		want     string
	}{
		"done":               {applied(schema.SpecHash(c.Spec)), c, ""},
		"a file with errors": {applied(schema.SpecHash(c.Spec)), broken, "its file has errors"},
		"only observed":      {standing{}, observed, ""},
		"hibernated":         {standing{}, asleep, ""},
		"never made":         {standing{}, c, "it has not been made yet"},
		"a damaged record":   {damaged, c, "its record cannot be read"},
		"never applied":      {applied(""), c, "its file has not been carried out yet"},
		"another file":       {applied("other"), c, "its file has not been carried out yet"},
	} {
		if got := unfinished(test.standing, test.file); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// What only has to be noted down is done; what waits for anything else is not.
func TestWhatIsLeftToDo(t *testing.T) {
	note, roll := plan.Step{Action: action.RecordApplied{}}, plan.Step{Action: action.StartRoll{}}
	hold := func(kind plan.HoldKind) *plan.Hold { return &plan.Hold{Kind: kind, Message: "waits"} }
	for name, test := range map[string]struct {
		plan plan.Plan
		want string
	}{
		"nothing":                      {plan.Plan{}, ""},
		"a note":                       {plan.Plan{Steps: []plan.Step{note}}, ""},
		"a roll":                       {plan.Plan{Steps: []plan.Step{roll}}, "still to do: " + roll.Action.String()},
		"a roll after a note":          {plan.Plan{Steps: []plan.Step{note, roll}}, "still to do: " + roll.Action.String()},
		"a hold":                       {plan.Plan{Hold: hold(plan.HoldWaiting)}, "waits"},
		"a hold before a note":         {plan.Plan{Hold: hold(plan.HoldWaiting), Steps: []plan.Step{note}}, "waits"},
		"health to confirm":            {plan.Plan{Hold: hold(plan.HoldConfirm)}, "waits"},
		"health to confirm for a note": {plan.Plan{Hold: hold(plan.HoldConfirm), Steps: []plan.Step{note}}, ""},
		"health to confirm for a roll": {plan.Plan{Hold: hold(plan.HoldConfirm), Steps: []plan.Step{roll}}, "still to do: " + roll.Action.String()},
		"a note that is observed":      {plan.Plan{Hold: hold(plan.HoldObserve), Steps: []plan.Step{note}}, ""},
	} {
		if got := leftToDo(test.plan); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// At rest nobody asks what the others do.
func TestFleetAtRestAsksNothing(t *testing.T) {
	inFleet(t, []string{"baskets"}, func(f *fleet) {
		f.r.SetDesired([]desired.Cluster{f.wish, wishOf("baskets")})
		f.mustPass()
		if requests := f.api.requests(); len(requests) > 0 {
			t.Errorf("requests %q", requests)
		}
	})
}

func TestUnsettled(t *testing.T) {
	set := func(edit func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}}
		s.Generation, s.Status.ObservedGeneration, s.Status.ReadyReplicas = 2, 2, 3
		s.Status.CurrentRevision, s.Status.UpdateRevision = "a", "a"
		edit(s)
		return s
	}
	for want, s := range map[string]*appsv1.StatefulSet{
		"":                                      set(func(*appsv1.StatefulSet) {}),
		"its StatefulSet has just been changed": set(func(s *appsv1.StatefulSet) { s.Generation++ }),
		"it is being rolled":                    set(func(s *appsv1.StatefulSet) { s.Status.UpdateRevision = "b" }),
		"2 of 3 members are ready":              set(func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 2 }),
		"0 of 1 members are ready":              set(func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas, s.Spec.Replicas = 0, nil }),
	} {
		if got := unsettled(s); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
