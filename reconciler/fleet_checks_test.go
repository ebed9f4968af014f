package reconciler_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/schema"
)

// application is a real server that a check asks, and what it answers.
type application struct {
	*httptest.Server
	status, asked atomic.Int32
}

// startApplication starts one outside of any bubble: what waits for the network is no wait there.
func startApplication(t *testing.T) *application {
	t.Helper()
	a := &application{}
	a.status.Store(http.StatusServiceUnavailable)
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.asked.Add(1)
		w.WriteHeader(int(a.status.Load()))
	}))
	t.Cleanup(a.Close)
	return a
}

// checked has a cluster checked by what the application answers.
func (a *application) checked(stable time.Duration) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) {
		c.Spec.Upgrade.Checks = []schema.UpgradeCheck{{Name: "smoke", HTTP: &schema.HTTPCheck{URL: a.URL + "/healthz"}, For: &metav1.Duration{Duration: stable}}}
	}
}

// allowed lets quorate ask the application.
func (a *application) allowed(o *reconciler.Options) {
	o.CheckHosts = []string{strings.TrimPrefix(a.URL, "http://")}
}

// inWaveOne puts a cluster into the wave above that of the others.
func inWaveOne(c *schema.EtcdCluster) { c.Spec.Upgrade.Wave = 1 }

// holdOf is what keeps a cluster waiting.
func (f *fleet) holdOf(c desired.Cluster) *decision.Hold {
	f.Helper()
	f.serve()
	p, err := f.R.Plan(f.Context(), c)
	if err != nil {
		f.Fatal(err)
	}
	return p.Hold
}

// statusOf is what quorate status shows of a cluster.
func (f *fleet) statusOf(name string) *schema.ClusterStatus {
	f.Helper()
	all, _ := f.R.Statuses()
	i := slices.IndexFunc(all, func(s schema.Status) bool { return s.Kind == schema.KindCluster && s.Metadata.Name == name })
	if i < 0 {
		f.Fatalf("no status of %s among %d", name, len(all))
	}
	return all[i].Status.Cluster
}

// A higher wave begins when the checks of the lower one hold, and have for as long as they must. They
// are asked when all else is done, and a lower wave waits for no check.
func TestAWaveWaitsForChecks(t *testing.T) {
	app := startApplication(t)
	inFleet(t, []string{"canary"}, func(f *fleet) {
		f.Reconfigure(app.allowed)
		orders := reconciler.WishOf("orders", clustertest.SetVersion("3.6.16"), inWaveOne)
		canary := reconciler.WishOf("canary", clustertest.SetVersion("3.6.16"), app.checked(time.Minute))
		f.R.SetDesired([]desired.Cluster{orders, canary})
		if h := f.holdOf(orders); h == nil || !strings.Contains(h.Message, "shop/canary (its file has not been applied yet") {
			t.Fatalf("held by %v", h)
		}
		f.untilDone(canary)
		if n := app.asked.Load(); n != 0 {
			t.Errorf("asked %d times before anything waited for it alone", n)
		}

		begun := time.Now().UTC()
		const notYet = "wave 1 begins when every lower wave is done; not yet: shop/canary (check smoke"
		h := f.holdOf(orders)
		if want := notYet + ": HTTP 503 from " + app.URL + "/healthz, since " + begun.Format(time.RFC3339) + ")"; h == nil || h.Message != want || h.Rule != "fleet" || !strings.Contains(h.Do, "spec.upgrade.checks") {
			t.Fatalf("held by %v, want %s", h, want)
		}
		if _, err := f.R.Pass(f.Context(), orders); err != nil {
			t.Fatal(err)
		}
		if s := f.statusOf("orders"); s == nil || s.Hold == nil || s.Hold.Message != h.Message || s.Hold.Do != h.Do {
			t.Errorf("its status says %+v", s)
		}
		for range 3 {
			time.Sleep(20 * time.Second)
			if again := f.holdOf(orders); again == nil || again.Message != h.Message {
				t.Errorf("then by %v", again)
			}
		}
		app.status.Store(http.StatusOK)
		time.Sleep(20 * time.Second)
		settles := time.Now().UTC()
		if h := f.holdOf(orders); h == nil || h.Message != notYet+" holds since "+settles.Format(time.RFC3339)+", and must for 1m0s)" {
			t.Errorf("held by %v", h)
		}
		time.Sleep(59 * time.Second)
		if h := f.holdOf(orders); h == nil {
			t.Error("it begins too early")
		}
		time.Sleep(time.Second)
		if h := f.holdOf(orders); h != nil {
			t.Errorf("held by %v", h)
		}
		f.untilDone(orders)
		if begun := f.rolls(); len(begun) != 2 || begun[0] != "shop/canary" || begun[1] != "shop/orders" {
			t.Errorf("begun %v", begun)
		}
		asked := app.asked.Load()
		f.untilDone(canary)
		for range 5 {
			time.Sleep(time.Minute)
			for _, c := range []desired.Cluster{orders, canary} {
				if _, err := f.R.Pass(f.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := app.asked.Load(); n != asked {
			t.Errorf("at rest it is asked %d times", n-asked)
		}
	})
}

// What quorate does before it acts is decided by an answer of the last seconds: a check that fails after
// the plan was made keeps the wave from beginning.
func TestACheckThatFailsInTimeKeepsAWave(t *testing.T) {
	app := startApplication(t)
	app.status.Store(http.StatusOK)
	inFleet(t, []string{"canary"}, func(f *fleet) {
		f.Reconfigure(app.allowed)
		orders, canary := reconciler.WishOf("orders", clustertest.SetVersion("3.6.16"), inWaveOne), reconciler.WishOf("canary", app.checked(0))
		f.R.SetDesired([]desired.Cluster{orders, canary})
		f.untilDone(canary)
		if h := f.holdOf(orders); h != nil {
			t.Fatalf("held by %v", h)
		}
		app.status.Store(http.StatusInternalServerError)
		time.Sleep(10 * time.Second)
		for range 20 {
			f.serve()
			wait, err := f.R.Pass(f.Context(), orders)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(wait)
		}
		if begun := f.rolls(); len(begun) != 0 {
			t.Errorf("begun %v", begun)
		}
		app.Close()
		if h := f.holdOf(orders); h == nil || !strings.Contains(h.Message, "cannot be reached") {
			t.Errorf("when it is gone: %v", h)
		}
	})
}

// Nothing is asked for a plan that is only shown, or by a daemon that may not ask the host.
func TestWhereNoCheckIsAsked(t *testing.T) {
	app := startApplication(t)
	app.status.Store(http.StatusOK)
	inFleet(t, []string{"canary"}, func(f *fleet) {
		orders := reconciler.WishOf("orders", clustertest.SetVersion("3.6.16"), inWaveOne)
		canary := reconciler.WishOf("canary", app.checked(0))
		f.R.SetDesired([]desired.Cluster{orders, canary})
		f.untilDone(canary)
		if h := f.holdOf(orders); h == nil || !strings.Contains(h.Message, "shop/canary (check smoke is asked by the daemon") {
			t.Errorf("a plan: %v", h)
		}
		f.Reconfigure(func(o *reconciler.Options) { o.CheckHosts = []string{} })
		if h := f.holdOf(orders); h == nil || !strings.Contains(h.Message, app.URL+"/healthz may not be asked, since") {
			t.Errorf("a host that is not allowed: %v", h)
		}
		f.Reconfigure(app.allowed)
		dry := f.R.DryRun(etcd.New())
		t.Cleanup(dry.Close)
		if dry.Options.CheckHosts != nil {
			t.Error("a pull request has checks asked")
		}
		if n := app.asked.Load(); n != 0 {
			t.Errorf("asked %d times", n)
		}
	})
}

// 603: a higher wave begins when a run of a CronJob has succeeded that began after the lower wave was
// done. quorate reads it while the wave waits for it alone, and never writes one.
func TestAWaveWaitsForARunOfACronJob(t *testing.T) {
	inFleet(t, []string{"canary"}, func(f *fleet) {
		f.Reconfigure(func(o *reconciler.Options) { o.CheckHosts = []string{} })
		orders := reconciler.WishOf("orders", clustertest.SetVersion("3.6.16"), inWaveOne)
		canary := reconciler.WishOf("canary", clustertest.SetVersion("3.6.16"), func(c *schema.EtcdCluster) {
			c.Spec.Upgrade.Checks = []schema.UpgradeCheck{{Name: "smoke", CronJob: &schema.CronJobCheck{Name: "smoke-test"}}}
		})
		cron, err := f.API.BatchV1().CronJobs("shop").Create(f.Context(), &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "smoke-test"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		run := func(name string) *batchv1.Job {
			job, err := f.API.BatchV1().Jobs("shop").Create(f.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
				Name: name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
			}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return job
		}
		end := func(job *batchv1.Job, how batchv1.JobConditionType) {
			job.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue}}
			if _, err := f.API.BatchV1().Jobs("shop").UpdateStatus(f.Context(), job, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Second)
		}
		end(run("before"), batchv1.JobComplete)
		f.R.SetDesired([]desired.Cluster{orders, canary})
		f.API.ClearActions()
		f.untilDone(canary)
		held := func(when, want string) {
			t.Helper()
			if h := f.holdOf(orders); (want == "") != (h == nil) || h != nil && !strings.Contains(h.Message, "not yet: shop/canary (check smoke: "+want) {
				t.Fatalf("%s: held by %v, want %s", when, h, want)
			}
		}
		if asked := f.API.Requests(); slices.Contains(asked, "get cronjobs smoke-test") {
			t.Errorf("asked before anything waited for it alone: %v", asked)
		}
		held("none since", "no run of CronJob smoke-test has begun after 2")
		time.Sleep(time.Second) // a run of the very second may have begun before
		first := run("first")
		time.Sleep(20 * time.Second)
		held("one is under way", "Job first of CronJob smoke-test, created at ")
		end(first, batchv1.JobFailed)
		held("one failed", "Job first of CronJob smoke-test failed, since ")
		second := run("second")
		end(second, batchv1.JobComplete)
		held("one succeeded", "")
		for _, r := range f.API.Writes() {
			if strings.Contains(r, "jobs") && r != "create jobs first" && r != "update jobs first" && r != "create jobs second" && r != "update jobs second" {
				t.Errorf("quorate writes: %s", r)
			}
		}
		f.untilDone(orders)
		if begun := f.rolls(); len(begun) != 2 || begun[1] != "shop/orders" {
			t.Errorf("begun %v", begun)
		}
	})
}
