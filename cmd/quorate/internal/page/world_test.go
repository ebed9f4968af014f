package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/cmd/quorate/internal/branches"
	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// world is what a reconciler and a poller would say.
type world struct {
	mu   sync.Mutex
	list []schema.Status
	git  follow.Details
	// measured is by the name of a cluster.
	measured map[string]schema.Measured
	// events are those of Kubernetes.
	events []runtime.Object
	// pulls are the plans of open pull requests.
	pulls []api.Pull
	// view are the status branches of other Kubernetes clusters; nil where none are read.
	view *branches.View
}

func (w *world) beside() *branches.View {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view
}

func (w *world) open() []api.Pull { return w.pulls }

func (w *world) Statuses() ([]schema.Status, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.Clone(w.list)
	schema.SortStatuses(list)
	return list, true
}

func (w *world) Measured(_, name string) schema.Measured {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.measured[name]
}

func (w *world) details() follow.Details {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.git
}

// set replaces the status of an object.
func (w *world) set(s schema.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, old := range w.list {
		if old.Kind == s.Kind && old.Metadata == s.Metadata {
			w.list[i] = s
			return
		}
	}
	w.list = append(w.list, s)
}

// roll sets how far the upgrade of a cluster of three members is.
func (w *world) roll(done int) {
	w.set(upgrading(done))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.measured = map[string]schema.Measured{"orders": {Members: []schema.MemberDatabase{
		{Name: "orders-0", Size: 8 << 20, InUse: 5 << 20, Quota: 2 << 30}, {Name: "orders-1", Size: 1900 << 20, InUse: 7 << 20, Quota: 2 << 30},
	}}}
}

// handler serves the pages and the API of a world, as the daemon does.
func (w *world) handler() http.Handler {
	feed := api.NewFeed(w.details)
	feed.SetStatuses(w)
	feed.SetPulls(w.open)
	feed.SetBranches(w.beside)
	feed.SetEvents(api.NewEvents(fake.NewClientset(w.events...)))
	mux := http.NewServeMux()
	mux.Handle(api.Prefix+"/", api.Handler(feed))
	mux.Handle("/", Handler(feed))
	return mux
}

// fetch asks for a page.
func fetch(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	to := httptest.NewRecorder()
	h.ServeHTTP(to, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return to
}

// upgrading is a cluster in the midst of an upgrade, with so many members done.
func upgrading(done int) schema.Status {
	s := cmdtest.Cluster("orders", schema.PhaseReconciling, "RestartMember", "restarting orders-1 3.5.21 → 3.6.16; 2 left to go")
	s.Status.Commit = "0123456789abcdef0123456789abcdef01234567"
	s.Status.Accepted = schema.Acceptance{Signer: "SSH key of ada@example.com", Tag: "v1.4.0", TagSigner: "SSH key of release@example.com", Approval: "89ab..0123", ApprovedBy: "annotation by kubectl"}
	c := s.Status.Cluster
	c.Maintenance = []string{"0 2 * * 6 for 3h0m0s, Europe/Berlin"}
	c.Replicas.Healthy = 3
	if done < 3 {
		c.Rollout = &schema.RolloutStatus{Done: int32(done), Members: 3}
	}
	for i := range 3 {
		version := "3.5.21"
		if 2-i < done {
			version = "3.6.16"
		}
		c.Members = append(c.Members, schema.MemberStatus{Name: fmt.Sprintf("orders-%d", i), ID: []string{"8e9e05c52164694d", "91bc3c398fb3c146", "fd422379fda50e48"}[i], Version: version, Role: schema.RoleVoter, Leader: i == 0, Health: schema.HealthHealthy})
	}
	for i := 2 - done; i >= 0; i-- {
		c.Plan = append(c.Plan, schema.StepStatus{Action: fmt.Sprintf("restart orders-%d 3.5.21 → 3.6.16", i), Reason: "all members are healthy and caught up, the others keep the quorum", Undo: "reversible by reverting the commit until the last member runs 3.6.16"})
	}
	c.Drift = []schema.DriftStatus{{
		Kind: "Service", Name: "orders-client", State: "drifted", Fields: []string{".spec.type"}, Manager: "kubectl-edit",
		Correction: "after the steps before it", Changes: []schema.FieldDrift{{Path: ".spec.type", Live: "NodePort", Wanted: "ClusterIP", Manager: "kubectl-edit", Since: "2026-03-02T09:41:00Z"}},
	}}
	c.Backups = []schema.BackupStatus{{For: "3.6.16", URL: "s3://backups/shop/orders/a.db", Time: "2026-03-01T02:00:11Z", Size: 8 << 20, Revision: 41, SHA256: "2bf7b928e9d0f4c3a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718"}}
	return s
}

// happened is an Event of Kubernetes at a minute.
func happened(source, kind, name, reason, message string, minute int, warning bool) *corev1.Event {
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%d", name, minute), Namespace: "shop"},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "shop", Name: name}, Source: corev1.EventSource{Component: source},
		Reason: reason, Message: message, Type: corev1.EventTypeNormal, Count: 1, LastTimestamp: metav1.NewTime(time.Date(2026, 3, 2, 9, minute, 0, 0, time.UTC)),
	}
	if warning {
		e.Type, e.Count = corev1.EventTypeWarning, 3
	}
	return e
}

// newWorld has one of everything.
func newWorld() *world {
	w := &world{git: follow.Details{
		State:  follow.State{Commit: "0123456789abcdef0123456789abcdef01234567", Problems: []string{"clusters/ledger.yaml:6:3: spec.version: put it in quotes"}},
		Source: "https://git.example.com/etcd.git@main:clusters", Reference: "branch main", Author: "Ada <ada@example.com>", Subject: "Upgrade orders to 3.6.16",
		When: time.Unix(1_772_000_000, 0), LastSuccess: time.Unix(1_772_000_100, 0),
	}}
	w.git.Signer = "SSH key SHA256:uNiVztksCsDhcc0u9e8BrrQXVUpKZIDTMczCvj3tD2s of ada@example.com"
	w.git.Tag = sources.Tag{Name: "v1.4.0", Signer: "SSH key SHA256:uNiVztksCsDhcc0u9e8BrrQXVUpKZIDTMczCvj3tD2s of release@example.com"}
	w.git.Approval = follow.Approval{From: "89abcdef0123456789abcdef0123456789abcdef", To: w.git.Commit, By: "annotation by kubectl-annotate at 2026-03-02T09:00:00Z"}
	w.git.Held, w.git.HeldCommit, w.git.Reason = "mass change: commit fedcba9876543210fedcba9876543210fedcba98 deletes 12 of 20 clusters at once", "fedcba9876543210fedcba9876543210fedcba98", "mass-change"
	w.git.HeldAuthor, w.git.HeldSubject, w.git.HeldWhen = "Bob <bob@example.com>", "Clean up", time.Unix(1_772_000_050, 0)
	w.git.Approve = "kubectl -n quorate-system annotate --overwrite configmap quorate-git-0a1b2c3d4e quorate.dev/approve=0123456789abcdef0123456789abcdef01234567..fedcba9876543210fedcba9876543210fedcba98"
	held := cmdtest.Cluster("ledger", schema.PhaseStalled, "Unhealthy", "ledger-1 does not answer; check its pod: kubectl -n shop describe pod ledger-1")
	held.Status.Cluster.Hold = &schema.HoldStatus{Kind: "Unhealthy", Rule: "health", Message: "ledger-1 does not answer", Do: "check its pod: kubectl -n shop describe pod ledger-1"}
	held.Status.Cluster.Members = []schema.MemberStatus{{Name: "ledger-1", Health: schema.HealthUnhealthy}}
	held.Status.Cluster.Warnings = []string{"3.5.21 is not the newest patch"}
	nightly := schema.NewStatus(schema.KindBackupSchedule, "shop", "nightly", schema.PhaseReady, "Idle", "the last backup is good")
	nightly.Status.Schedule = &schema.ScheduleStatus{
		Cluster: "shop/orders", Next: "2026-03-03T02:00:00Z", Last: &schema.BackupStatus{URL: "s3://backups/shop/orders/b.db", Time: "2026-03-02T02:00:11Z", Size: 8 << 20},
		Drill: &schema.DrillStatus{URL: "s3://backups/shop/orders/b.db", Time: "2026-03-02T04:00:11Z", Result: "key /a differs"},
	}
	once := schema.NewStatus(schema.KindBackup, "shop", "before-the-move", schema.PhaseReady, "Taken", "the backup is good")
	once.Status.Backup = &schema.BackupRunStatus{Cluster: "shop/orders", Taken: &schema.BackupStatus{URL: "s3://backups/shop/orders/c.db", Time: "2026-02-02T02:00:11Z"}}
	again := schema.NewStatus(schema.KindRestore, "shop", "again", schema.PhaseReady, "Restored", "the cluster began with s3://backups/shop/orders/c.db")
	again.Status.Restore = &schema.RestoreStatus{Cluster: "shop/carts", Source: "s3://backups/shop/orders/c.db", Time: "2026-02-03T02:00:11Z"}
	for _, s := range []schema.Status{
		held, cmdtest.Ready("carts"), nightly, once, again,
		schema.NewStatus(schema.KindCluster, "shop", "new", schema.PhaseUnknown, "NotLookedAt", "not reconciled yet"),
	} {
		w.set(s)
	}
	w.roll(1)
	w.events = []runtime.Object{
		happened("quorate", "StatefulSet", "orders", "TakeBackup", "back up through orders-0: before 3.6.16", 1, false),
		happened("quorate", "StatefulSet", "orders", "RestartMember", "restart orders-2 3.5.21 → 3.6.16: the others keep the quorum", 2, false),
		happened("quorate", "StatefulSet", "orders", "HoldUnhealthy", "orders-2 does not answer", 3, true),
		happened("kubelet", "Pod", "orders-2", "Unhealthy", "Readiness probe failed: connection refused", 4, true),
		happened("kubelet", "Pod", "ledger-1", "BackOff", "Back-off restarting failed container", 5, true),
	}
	w.pulls = []api.Pull{proposal("3.5.35", "3.6.16")}
	w.view = twoBranches("two of three members are gone")
	return w
}

// twoBranches are the status branches of two other Kubernetes clusters: one with clusters of the
// same names as here, of which one is stalled, and one without news.
func twoBranches(why string) *branches.View {
	orders := cmdtest.Cluster("orders", schema.PhaseStalled, "QuorumLost", why)
	nightly := schema.NewStatus(schema.KindBackupSchedule, "shop", "weekly", schema.PhaseReady, "Idle", "the last backup is good")
	nightly.Status.Schedule = &schema.ScheduleStatus{Cluster: "shop/orders", Next: "2026-03-09T02:00:00Z"}
	old := cmdtest.Cluster("orders", schema.PhaseUnknown, "NoNews", "nothing was written since 2026-03-01T09:00:00Z; the last news was Ready: the cluster is what Git says")
	old.Status.Cluster.Members = []schema.MemberStatus{{Name: "orders-0", ID: "8e9e05c52164694d", Health: schema.HealthUnknown}}
	return &branches.View{Read: time.Unix(1_772_000_100, 0), Branches: []branches.Branch{
		{Name: "quorate/status-eu", Commit: "ab", Written: time.Unix(1_772_000_000, 0), Statuses: []schema.Status{orders, cmdtest.Ready("carts"), nightly}, Unread: []string{"notes.yaml"}},
		{Name: "quorate/status-us", Commit: "cd", Written: time.Unix(1_771_000_000, 0), Statuses: []schema.Status{old}, Doubt: "nothing was written since 2026-03-01T09:00:00Z"},
	}}
}

// proposal is a pull request with everything in it that a plan may have, in texts.
func proposal(from, to string) api.Pull {
	r := preview.NewReport(schema.Set{Problems: []schema.Problem{{File: "clusters/ledger.yaml", Line: 6, Message: from}}})
	r.Clusters = []preview.ClusterReport{{
		Namespace: "shop", Name: "orders", Change: preview.Changed, Changes: []preview.FieldChange{{Field: "spec.version", From: from, To: to}},
		Hold: &preview.HoldReport{Rule: "window", Message: to, Do: "wait"}, Warnings: []string{to}, Disruption: "3 restarts, one at a time, quorum kept",
		Steps: []preview.StepReport{{Action: "back up through orders-0", Reason: "before " + from, Undo: "reversible at any time by reverting the commit"}},
	}}
	r.Others = []preview.ObjectReport{{Kind: schema.KindBackupSchedule, Namespace: "shop", Name: "nightly", Change: preview.Added, Description: from}}
	r.Count(1)
	return api.Pull{Number: 7, Head: "baf0ca3000000000000000000000000000000000", Planned: "2026-03-01T02:00:11Z", Report: r}
}

// everyPage is a path for each page there is.
func everyPage() []string {
	return []string{
		"/", "/?kind=EtcdBackup", "/?kind=EtcdBackupSchedule", "/?kind=EtcdRestore", "/?q=nothing-has-this", "/?phase=Sleepy",
		"/objects/EtcdCluster/shop/orders", "/objects/EtcdCluster/shop/ledger", "/objects/EtcdCluster/shop/new", "/objects/EtcdBackup/shop/before-the-move",
		"/objects/EtcdBackupSchedule/shop/nightly", "/objects/EtcdRestore/shop/again", "/objects/EtcdCluster/shop/none",
		"/?branch=quorate%2Fstatus-eu", "/?branch=.", "/?branch=elsewhere", "/objects/EtcdCluster/shop/orders?branch=quorate%2Fstatus-eu", "/objects/EtcdCluster/shop/orders?branch=quorate%2Fstatus-us", "/git", "/pulls", "/no-such-page",
	}
}
