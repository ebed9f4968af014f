package reconciler

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/record/recordtest"
	"github.com/quorate/quorate/schema"
)

// WishOf is what Git says of a cluster of the fleet.
func WishOf(name string, edits ...func(*schema.EtcdCluster)) desired.Cluster {
	c := clustertest.Orders(clustertest.SetVersion("3.6.12"), clustertest.SkipBackup, func(c *schema.EtcdCluster) { c.Metadata.Name = name })
	for _, edit := range edits {
		edit(&c)
	}
	schema.Default(&c)
	return desired.Cluster{EtcdCluster: c, Commit: "0a1b2c3"}
}

// A change of members shows in the record, and counts as well.
func TestMembersOnTheirWayDisrupt(t *testing.T) {
	for want, edit := range map[string]func(*record.Record){
		"orders-3 is joining":        func(r *record.Record) { r.Joining = &record.Joining{Member: "orders-3"} },
		"orders-2 is leaving":        func(r *record.Record) { r.Leaving = &record.Leaving{Member: "orders-2", ID: "fd422379fda50e48"} },
		"orders-2 is being replaced": func(r *record.Record) { r.Replacing = "orders-2" },
		"its StatefulSet is gone":    func(*record.Record) {},
	} {
		r := recordtest.Formed()
		edit(&r)
		if got, _ := disrupted(observe.Standing{Record: recordtest.Stored(r)}, WishOf("orders")); got != want {
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
		"hibernated":      {func(r *record.Record) { joins(r); r.Hibernated = true }, clustertest.SkipBackup},
		"deleted":         {func(r *record.Record) { joins(r); r.Deleted = true }, clustertest.SkipBackup},
		"never formed":    {func(r *record.Record) { *r = record.New("t"); joins(r) }, clustertest.SkipBackup},
		"only observed":   {joins, observed},
		"to be deleted":   {func(*record.Record) {}, func(c *schema.EtcdCluster) { c.Spec.State = schema.StateDeleted }},
		"to be hibernate": {func(*record.Record) {}, func(c *schema.EtcdCluster) { c.Spec.State = schema.StateHibernated }},
	} {
		r := recordtest.Formed()
		test.rec(&r)
		if got, _ := disrupted(observe.Standing{Record: recordtest.Stored(r)}, WishOf("orders", test.file)); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got, _ := disrupted(observe.Standing{}, WishOf("orders")); got != "" {
		t.Errorf("never made: %q", got)
	}
}

// 350: a cluster is broken where members are missing, and not by what quorate has begun.
func TestWhatIsBroken(t *testing.T) {
	recovering := func(r *record.Record) { r.Recovering = &record.Recovering{Member: "orders-0"} }
	for name, c := range map[string]struct {
		rec   func(*record.Record)
		ready int32
		want  bool
	}{
		"a member is missing":    {func(*record.Record) {}, 2, true},
		"none is":                {func(*record.Record) {}, 3, false},
		"it is being recovered":  {recovering, 1, false},
		"a member is on its way": {func(r *record.Record) { r.Joining = &record.Joining{Member: "orders-3"} }, 2, false},
	} {
		r := recordtest.Formed()
		c.rec(&r)
		set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}, Status: appsv1.StatefulSetStatus{ReadyReplicas: c.ready}}
		if _, broken := disrupted(observe.Standing{Record: recordtest.Stored(r), Set: set}, WishOf("orders")); broken != c.want {
			t.Errorf("%s: broken %t", name, broken)
		}
	}
}

// A lower wave is not over while a file of it waits to be applied.
func TestWhatIsPlainlyUnfinished(t *testing.T) {
	c := WishOf("orders")
	broken, observed, asleep := c, WishOf("orders", func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve }), WishOf("orders", func(c *schema.EtcdCluster) { c.Spec.State = schema.StateHibernated })
	broken.Problems = []string{"no"}
	applied := func(hash string) observe.Standing {
		r := recordtest.Formed()
		if r.Applied = nil; hash != "" {
			r.Applied = &record.Applied{SpecHash: hash}
		}
		return observe.Standing{Record: recordtest.Stored(r), Set: &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(0))}}}
	}
	damaged := applied("")
	damaged.Record.Data[naming.KeyRecord] = "{"
	for name, test := range map[string]struct {
		standing observe.Standing
		file     desired.Cluster
		want     string
	}{
		"done":               {applied(schema.SpecHash(c.Spec)), c, ""},
		"a file with errors": {applied(schema.SpecHash(c.Spec)), broken, "its file has errors"},
		"only observed":      {observe.Standing{}, observed, ""},
		"hibernated":         {observe.Standing{}, asleep, ""},
		"never made":         {observe.Standing{}, c, "it has not been made yet"},
		"a damaged record":   {damaged, c, "its record cannot be read"},
		"never applied":      {applied(""), c, "its file has not been applied yet"},
		"another file":       {applied("other"), c, "its file has not been applied yet"},
	} {
		if got := unfinished(test.standing, test.file); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// What only has to be noted down is done; what waits for anything else is not.
func TestWhatIsLeftToDo(t *testing.T) {
	note, roll := decision.Step{Action: action.RecordApplied{}}, decision.Step{Action: action.StartRoll{}}
	hold := func(kind decision.HoldKind) *decision.Hold { return &decision.Hold{Kind: kind, Message: "waits"} }
	for name, test := range map[string]struct {
		plan decision.Plan
		want string
	}{
		"nothing":                      {decision.Plan{}, ""},
		"a note":                       {decision.Plan{Steps: []decision.Step{note}}, ""},
		"a roll":                       {decision.Plan{Steps: []decision.Step{roll}}, "still to do: " + roll.Action.String()},
		"a roll after a note":          {decision.Plan{Steps: []decision.Step{note, roll}}, "still to do: " + roll.Action.String()},
		"a hold":                       {decision.Plan{Hold: hold(decision.Waiting)}, "waits"},
		"a hold before a note":         {decision.Plan{Hold: hold(decision.Waiting), Steps: []decision.Step{note}}, "waits"},
		"health to confirm":            {decision.Plan{Hold: hold(decision.Confirm)}, "waits"},
		"health to confirm for a note": {decision.Plan{Hold: hold(decision.Confirm), Steps: []decision.Step{note}}, ""},
		"health to confirm for a roll": {decision.Plan{Hold: hold(decision.Confirm), Steps: []decision.Step{roll}}, "still to do: " + roll.Action.String()},
		"a note that is observed":      {decision.Plan{Hold: hold(decision.ObserveOnly), Steps: []decision.Step{note}}, ""},
	} {
		if got := leftToDo(test.plan); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
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
		if got, broken := unsettled(s); got != want || broken != strings.Contains(want, "members are ready") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What is asleep, or deleted, has nothing that a check could ask; one that is only observed has.
func TestWhichClustersAreChecked(t *testing.T) {
	checked := func(c *schema.EtcdCluster) {
		c.Spec.Upgrade.Checks = []schema.UpgradeCheck{{Name: "smoke", HTTP: &schema.HTTPCheck{URL: "http://a"}}}
	}
	is := func(s schema.State) func(*schema.EtcdCluster) {
		return func(c *schema.EtcdCluster) { c.Spec.State = s }
	}
	asked := askBelow(t.Context(), nil, []lower{
		{Cluster: WishOf("without")},
		{Cluster: WishOf("running", checked)},
		{Cluster: WishOf("asleep", checked, is(schema.StateHibernated))},
		{Cluster: WishOf("deleted", checked, is(schema.StateDeleted))},
		{Cluster: WishOf("observed", checked, func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve })},
	}, time.Now)
	if len(asked) != 2 || asked[0].Cluster != "shop/running" || asked[1].Cluster != "shop/observed" {
		t.Errorf("asked %+v", asked)
	}
}

// 603: runs count from when a cluster was noted to be what its file says, or its StatefulSet last told
// something new, whichever is later; and from the last of all clusters of lower waves.
func TestSinceWhenLowerWavesAreDone(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	checked := func(c *schema.EtcdCluster) {
		c.Spec.Upgrade.Checks = []schema.UpgradeCheck{{Name: "smoke", CronJob: &schema.CronJobCheck{Name: "smoke-test"}}}
	}
	wish := WishOf("canary", checked)
	noted := func(hash string, at time.Time) *corev1.ConfigMap {
		r := recordtest.Formed()
		r.Applied = &record.Applied{SpecHash: hash, At: at}
		return recordtest.Stored(r)
	}
	told := func(subresource string, at time.Time) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Subresource: subresource, Time: &metav1.Time{Time: at}}}}}
	}
	hash := schema.SpecHash(wish.Spec)
	never := recordtest.Formed()
	never.Applied = nil
	damaged := noted(hash, noon)
	damaged.Data[naming.KeyRecord] = "{"
	for name, c := range map[string]struct {
		standing observe.Standing
		at       time.Time
		known    bool
	}{
		"noted last":              {observe.Standing{Record: noted(hash, noon), Set: told("status", noon.Add(-time.Minute))}, noon, true},
		"restarted since":         {observe.Standing{Record: noted(hash, noon), Set: told("status", noon.Add(time.Minute))}, noon.Add(time.Minute), true},
		"of another file":         {observe.Standing{Record: noted("other", noon.Add(time.Hour)), Set: told("status", noon)}, noon, false},
		"by an older quorate":     {observe.Standing{Record: noted(hash, time.Time{}), Set: told("status", noon)}, noon, false},
		"never noted":             {observe.Standing{Record: recordtest.Stored(never), Set: told("status", noon)}, noon, false},
		"a damaged record":        {observe.Standing{Record: damaged, Set: told("status", noon)}, noon, false},
		"no record":               {observe.Standing{Set: told("status", noon)}, noon, false},
		"no StatefulSet":          {observe.Standing{Record: noted(hash, noon)}, noon, false},
		"a status of unknown age": {observe.Standing{Record: noted(hash, noon), Set: told("", noon.Add(time.Hour))}, noon, false},
	} {
		canary := lower{wish, c.standing}
		if at, known := canary.done(); !at.Equal(c.at) || known != c.known {
			t.Errorf("%s: %s, known %v", name, at, known)
		}
		other := func(at time.Time) lower { return lower{WishOf("other"), observe.Standing{Set: told("status", at)}} }
		for later, want := range map[time.Duration]time.Time{time.Hour: noon.Add(time.Hour), -time.Hour: c.at} {
			if !c.known {
				want = time.Time{}
			}
			if all := subjectsOf([]lower{canary, other(noon.Add(later))}); len(all) != 1 || all[0].Key != "shop/canary" || !all[0].Done.Equal(want) {
				t.Errorf("%s, and another %s later: %+v", name, later, all)
			}
		}
	}
}
