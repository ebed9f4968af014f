package checks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/checks"
	"github.com/quorate/quorate/reconciler/state"
	quorate "github.com/quorate/quorate/schema"
)

// smokeTest is the CronJob of the tests.
func smokeTest() *batchv1.CronJob {
	return &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "smoke-test", Namespace: "shop", UID: "u1"}}
}

// runCheck is a check of it.
func runCheck() quorate.UpgradeCheck {
	return quorate.UpgradeCheck{Name: "smoke", CronJob: &quorate.CronJobCheck{Name: "smoke-test"}, Timeout: &metav1.Duration{Duration: 30 * time.Second}}
}

// runOf is a Job, some time after noon, that has an owner by its UID and has ended so, "" for not yet.
func runOf(name string, owner types.UID, after time.Duration, end batchv1.JobConditionType) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "shop", CreationTimestamp: metav1.NewTime(newClock().at.Add(after)),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "smoke-test", UID: owner, Controller: new(true)}},
	}}
	if end != "" {
		job.Status.Conditions = []batchv1.JobCondition{{Type: end, Status: corev1.ConditionTrue}}
	}
	return job
}

// askRuns asks an API server once.
func askRuns(t *testing.T, api *fake.Clientset, check quorate.UpgradeCheck) state.Check {
	t.Helper()
	s := subject("orders", check)
	s.Done = newClock().at
	all := checks.New(nil, api, time.Now).Ask(t.Context(), []checks.Subject{s}, untilNo)
	if len(all) != 1 || all[0].Since.IsZero() {
		t.Fatalf("answers %+v", all)
	}
	return all[0]
}

// 603: runs are the Jobs of the namespace that the CronJob owns as their controller, by its UID.
func TestWhichJobsAreRuns(t *testing.T) {
	good := runOf("good", "u1", time.Minute, batchv1.JobComplete)
	elsewhere, notController, ownerless := good.DeepCopy(), good.DeepCopy(), good.DeepCopy()
	elsewhere.Namespace = "other"
	notController.OwnerReferences[0].Controller = nil
	ownerless.OwnerReferences = nil
	const none = "no run of CronJob smoke-test has begun after 2026-03-01T12:00:00Z"
	for name, c := range map[string]struct {
		jobs []runtime.Object
		want string
	}{
		"its own":                         {[]runtime.Object{good}, ""},
		"beside a failed one of another":  {[]runtime.Object{good, runOf("bad", "u2", time.Hour, batchv1.JobFailed)}, ""},
		"one that failed":                 {[]runtime.Object{good, runOf("bad", "u1", time.Hour, batchv1.JobFailed)}, "Job bad of CronJob smoke-test failed"},
		"one of a CronJob that is gone":   {[]runtime.Object{runOf("good", "u0", time.Minute, batchv1.JobComplete)}, none},
		"one of another namespace":        {[]runtime.Object{elsewhere}, none},
		"one that is not controlled":      {[]runtime.Object{notController}, none},
		"one with the name alone":         {[]runtime.Object{ownerless}, none},
		"one from before the last change": {[]runtime.Object{runOf("good", "u1", -time.Minute, batchv1.JobComplete)}, none},
	} {
		got := askRuns(t, fake.NewClientset(append(c.jobs, smokeTest())...), runCheck())
		if (c.want == "") != (got.Problem == "") || !strings.HasPrefix(got.Problem, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// 603: what cannot be read does not hold, and says what is missing. Nothing but two reads is ever asked.
func TestWhatIsNotReadDoesNotHold(t *testing.T) {
	good := runOf("good", "u1", time.Minute, batchv1.JobComplete)
	forbids := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: resource}, "", errors.New("no rule"))
	}
	for name, c := range map[string]struct {
		cron             *batchv1.CronJob
		verb, resource   string
		err              error
		problem, do, why string
	}{
		"there is no CronJob":     {nil, "", "", nil, "there is no CronJob smoke-test in namespace shop", "create it, or correct cronJob.name", ""},
		"no right to the CronJob": {smokeTest(), "get", "cronjobs", forbids("cronjobs"), "quorate may not get CronJob smoke-test in namespace shop", "deploy/base/clusterrole.yaml", "no rule"},
		"no right to the Jobs":    {smokeTest(), "list", "jobs", forbids("jobs"), "quorate may not list Jobs in namespace shop", "deploy/base/clusterrole.yaml", "no rule"},
		"the CronJob is not read": {smokeTest(), "get", "cronjobs", errors.New("boom"), "quorate cannot get CronJob smoke-test in namespace shop", "", "boom"},
		"the Jobs are not read":   {smokeTest(), "list", "jobs", errors.New("boom"), "quorate cannot list Jobs in namespace shop", "", "boom"},
	} {
		api := fake.NewClientset(good.DeepCopy())
		if c.cron != nil {
			api = fake.NewClientset(good.DeepCopy(), c.cron)
		}
		if c.err != nil {
			api.PrependReactor(c.verb, c.resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
		}
		got := askRuns(t, api, runCheck())
		if got.Problem != c.problem || !strings.Contains(got.Do, c.do) || (c.do == "") != (got.Do == "") || !strings.Contains(got.Detail, c.why) {
			t.Errorf("%s: %+v", name, got)
		}
		for _, a := range api.Actions() {
			if !a.Matches("get", "cronjobs") && !a.Matches("list", "jobs") || a.GetNamespace() != "shop" {
				t.Errorf("%s: asked to %s %s in %s", name, a.GetVerb(), a.GetResource().Resource, a.GetNamespace())
			}
		}
	}
}

// 603: an API server that does not answer in time does not hold.
func TestALateAPIServerDoesNotHold(t *testing.T) {
	api := fake.NewClientset(smokeTest())
	ctx, cancel := context.WithCancel(t.Context())
	api.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		cancel()
		return true, nil, context.Canceled
	})
	got := checks.New(nil, api, time.Now).Ask(ctx, []checks.Subject{subject("orders", runCheck())}, untilNo)
	if len(got) != 1 || got[0].Problem != "no answer of the API server within 30s" {
		t.Errorf("%+v", got)
	}
}

// 603: Jobs are read some at a time, all of them or none: of more than can be read none counts.
func TestJobsAreReadByPages(t *testing.T) {
	for pages, want := range map[int]string{
		10: "",
		11: "there are more than 5000 Jobs in namespace shop, and no more are read",
	} {
		api, asked := fake.NewClientset(smokeTest()), 0
		api.PrependReactor("list", "jobs", func(a clienttesting.Action) (bool, runtime.Object, error) {
			list, _ := a.(clienttesting.ListActionImpl)
			if from := map[bool]string{true: "", false: fmt.Sprint(asked)}[asked == 0]; list.ListOptions.Continue != from || list.ListOptions.Limit != 500 {
				t.Errorf("page %d asked for by %+v", asked, list.ListOptions)
			}
			asked++
			answer := &batchv1.JobList{}
			if asked < pages {
				answer.Continue = fmt.Sprint(asked)
			} else {
				answer.Items = []batchv1.Job{*runOf("good", "u1", time.Minute, batchv1.JobComplete)}
			}
			return true, answer, nil
		})
		if got := askRuns(t, api, runCheck()); got.Problem != want {
			t.Errorf("%d pages: %+v", pages, got)
		}
	}
}

// 603: an answer of the last seconds counts no longer once the lower waves are changed again.
func TestAnAnswerIsOfItsChange(t *testing.T) {
	c, api := newClock(), fake.NewClientset(smokeTest(), runOf("good", "u1", time.Minute, batchv1.JobComplete))
	a, s := checks.New(nil, api, c.now), subject("orders", runCheck())
	for _, step := range []struct {
		done  time.Duration
		asked int
		holds bool
	}{{0, 1, true}, {0, 1, true}, {time.Minute, 2, false}, {0, 3, true}} {
		s.Done = newClock().at.Add(step.done)
		got := a.Ask(t.Context(), []checks.Subject{s}, untilNo)
		lists := 0
		for _, action := range api.Actions() {
			if action.Matches("list", "jobs") {
				lists++
			}
		}
		if (got[0].Problem == "") != step.holds || lists != step.asked {
			t.Errorf("done at %s: asked %d times, %+v", step.done, lists, got)
		}
	}
}
