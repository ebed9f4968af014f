package api

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// world is what a reconciler and a poller would say.
type world struct {
	mu    sync.Mutex
	list  []schema.Status
	whole bool
	git   follow.Details
	// measured is by the name of a cluster.
	measured map[string]schema.Measured
}

func (w *world) Statuses() ([]schema.Status, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.Clone(w.list)
	schema.SortStatuses(list)
	return list, w.whole
}

func (w *world) Measured(_, name string) schema.Measured { return w.measured[name] }

func (w *world) details() follow.Details {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.git
}

func (w *world) set(list ...schema.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list, w.whole = list, true
}

// serve is a handler over a world, and what asks it.
func serve(t *testing.T, w *world) (*Feed, func(path string) (int, http.Header, string)) {
	t.Helper()
	feed := NewFeed(w.details)
	feed.SetStatuses(w)
	h := Handler(feed)
	return feed, func(path string) (int, http.Header, string) {
		t.Helper()
		return ask(t, h, http.MethodGet, path)
	}
}

func ask(t *testing.T, h http.Handler, method, path string) (int, http.Header, string) {
	t.Helper()
	to := httptest.NewRecorder()
	h.ServeHTTP(to, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return to.Code, to.Header(), to.Body.String()
}

// fleet is many clusters in many phases, and a few objects of other kinds.
func fleet(n int) []schema.Status {
	var list []schema.Status
	for i := range n {
		phase := schema.Phases()[i%4]
		s := cmdtest.Cluster(fmt.Sprintf("c%05d", i), phase, "Because", "it is so")
		s.Metadata.Namespace = fmt.Sprintf("team-%d", i%7)
		s.Status.Cluster.Version.Lowest = fmt.Sprintf("3.%d.%d", 4+i%3, i%40)
		s.Status.Cluster.Members = []schema.MemberStatus{{Name: s.Metadata.Name + "-0", ID: "8e9e05c52164694d", Version: "3.6.16", Role: schema.RoleVoter, Leader: true, Health: schema.HealthHealthy}}
		s.Status.Cluster.Drift = []schema.DriftStatus{{Kind: "Service", Name: "x", State: "drifted", Fields: []string{"spec.type"}, Manager: "kubectl"}}
		s.Status.Cluster.Hold = &schema.HoldStatus{Kind: "Waiting", Rule: "window", Message: "the window is closed", Do: "wait"}
		s.Status.Cluster.Plan = []schema.StepStatus{{Action: "restart x", Reason: "it is next"}}
		list = append(list, s)
	}
	b := schema.NewStatus(schema.KindBackupSchedule, "team-1", "nightly", schema.PhaseReady, "Idle", "")
	b.Status.Schedule = &schema.ScheduleStatus{Cluster: "team-1/c00001", Last: &schema.BackupStatus{URL: "s3://b/a.db", Time: "2026-03-01T02:00:11Z"}, Drill: &schema.DrillStatus{URL: "s3://b/a.db", Time: "2026-03-02T02:00:11Z", Result: "passed"}}
	once := schema.NewStatus(schema.KindBackup, "team-1", "once", schema.PhaseReady, "Taken", "")
	once.Status.Backup = &schema.BackupRunStatus{Cluster: "team-1/c00001", Taken: &schema.BackupStatus{URL: "s3://b/a.db", Time: "2026-03-01T02:00:11Z"}}
	restore := schema.NewStatus(schema.KindRestore, "team-1", "again", schema.PhaseReady, "Restored", "")
	restore.Status.Restore = &schema.RestoreStatus{Cluster: "team-1/c00001", Source: "s3://b/a.db"}
	return append(list, b, once, restore)
}

// 221: every answer is what the description says, those that fail as well.
func TestAnswersAreWhatTheDescriptionSays(t *testing.T) {
	w := &world{list: fleet(20), measured: map[string]schema.Measured{"c00001": {
		Members: []schema.MemberDatabase{{Name: "c00001-0", Size: 8 << 20, InUse: 5 << 20, Quota: 2 << 30}},
	}}}
	feed, get := serve(t, w)
	fits := judge(t)
	report := preview.NewReport(schema.Set{Problems: []schema.Problem{{File: "x.yaml", Message: "bad"}}})
	report.Clusters = []preview.ClusterReport{{
		Namespace: "shop", Name: "orders", Change: preview.Changed, Changes: []preview.FieldChange{{Field: "spec.version", From: "3.5.35", To: "3.6.16"}},
		Hold: &preview.HoldReport{Message: "no"}, Steps: []preview.StepReport{{Action: "restart"}}, Warnings: []string{"w"}, Unknown: []string{},
	}}
	report.Count(0)
	feed.SetPulls(func() []Pull { return []Pull{{7, "a", "2026-03-01T02:00:11Z", report}} })
	long := strings.Repeat("x", maxText+1)
	for path, codes := range map[string]map[string]int{
		"/statuses": {
			"": 200, "?kind=&namespace=&name=&phase=&q=&sort=&limit=&continue=": 200, "?kind=EtcdBackup": 200, "?sort=-version&limit=3": 200, "?q=no-such": 200,
			"?kind=Pod": 400, "?phase=Sleepy": 400, "?sort=colour": 400, "?limit=0": 400, "?limit=5001": 400, "?limit=x": 400, "?continue=x": 400, "?what=1": 400, "?kind=EtcdBackup&kind=EtcdCluster": 400, "?q=" + long: 400, "?%zz": 400,
		},
		"/statuses/{kind}/{namespace}/{name}":               {"EtcdCluster/team-1/c00001": 200, "EtcdCluster/team-1/c99999": 404, "Pod/x/y": 404, "EtcdCluster/team-1/c00001?x=1": 400},
		"/statuses/EtcdCluster/{namespace}/{name}/measured": {"team-1/c00001/measured": 200, "team-2/c00002/measured": 200, "team-1/c99999/measured": 404, "team-1/c00001/measured?x=1": 400},
		"/statuses/EtcdCluster/{namespace}/{name}/events":   {"team-1/c00001/events": 503, "team-1/c99999/events": 404, "team-1/c00001/events?x=1": 400},
		"/git":          {"": 200, "?x=1": 400},
		"/openapi.json": {"": 200},
		"/pulls":        {"": 200, "?x=1": 400},
		"/branches":     {"": 200, "?x=1": 400},
		"/events":       {"?x=1": 400},
	} {
		for suffix, code := range codes {
			request := Prefix + path + suffix
			if base, _, ok := strings.Cut(path, "{"); ok {
				request = Prefix + base + suffix
			}
			got, header, body := get(request)
			if got != code || header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s answers %d %v, want %d: %s", request, got, header, code, body)
			}
			fits(Prefix+path, got, header.Get("Content-Type"), []byte(body))
		}
	}
	w.git = follow.Details{
		State:  follow.State{Commit: "a", Held: "no", HeldCommit: "b", Problems: []string{"x.yaml:1: bad"}},
		Source: "https://git.example.com/etcd.git@main", Reference: "branch main", Author: "Ada <ada@example.com>", Subject: "Change", When: time.Unix(1, 0), Signer: "SSH key of ada", Tag: sources.Tag{Name: "v1", Signer: "SSH key of bob"}, Approval: follow.Approval{From: "0a", To: "1b", By: "annotation"}, HeldAuthor: "Bob <bob@example.com>", HeldSubject: "Rewrite", HeldWhen: time.Unix(3, 0), Reason: "history", Approve: "kubectl", LastSuccess: time.Unix(2, 0), Failures: 3,
	}
	code, header, body := get(Prefix + "/git")
	fits(Prefix+"/git", code, header.Get("Content-Type"), []byte(body))
	for _, part := range []string{`"hash":"a"`, `"subject":"Rewrite","time":"1970-01-01T00:00:03Z"`, `"time":"1970-01-01T00:00:01Z"`, `"approve":"kubectl"`, `"lastSuccess":"1970-01-01T00:00:02Z"`, `"failures":3`, `"signer":"SSH key of ada","tag":"v1","tagSigner":"SSH key of bob","approval":"0a..1b","approvedBy":"annotation"`, `"problems":["x.yaml:1: bad"]`} {
		if !strings.Contains(body, part) {
			t.Errorf("git has no %s: %s", part, body)
		}
	}
}

func TestOnlyReadingIsAllowed(t *testing.T) {
	h := Handler(NewFeed((&world{}).details))
	fits := judge(t)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		code, header, body := ask(t, h, method, Prefix+"/git")
		if code != http.StatusMethodNotAllowed || header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s answers %d", method, code)
		}
		fits(Prefix+"/git", code, header.Get("Content-Type"), []byte(body))
	}
	if code, _, _ := ask(t, h, http.MethodHead, Prefix+"/git"); code != http.StatusOK {
		t.Errorf("HEAD answers %d", code)
	}
	if code, _, body := ask(t, h, http.MethodGet, Prefix+"/secrets"); code != http.StatusNotFound || !strings.Contains(body, `{"error":"there is no /api/v1/secrets`) {
		t.Errorf("a path that there is not answers %d %s", code, body)
	}
}

// A daemon that waits for the lease knows nothing, and says so.
func TestADaemonThatDoesNotReconcileSaysSo(t *testing.T) {
	h := Handler(NewFeed((&world{}).details))
	for _, path := range []string{"/statuses", "/statuses/EtcdCluster/shop/orders"} {
		code, header, body := ask(t, h, http.MethodGet, Prefix+path)
		if code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(body, "waits for the lease") {
			t.Errorf("%s answers %d %s", path, code, body)
		}
	}
}

// list asks for all answers to a query, one after the other; meanwhile is called
// between two of them.
func list(t *testing.T, get func(string) (int, http.Header, string), query url.Values, meanwhile func()) (all []schema.Status, last StatusList) {
	t.Helper()
	for {
		code, _, body := get(Prefix + "/statuses?" + query.Encode())
		last = StatusList{}
		if err := json.Unmarshal([]byte(body), &last); err != nil || code != http.StatusOK {
			t.Fatalf("%d, %v: %s", code, err, body)
		}
		all = append(all, last.Items...)
		if last.Continue == "" {
			return all, last
		}
		query.Set("continue", last.Continue)
		meanwhile()
	}
}

// 221: 10,000 clusters come page by page, each once, in each order, while others come
// and go.
func TestPagesOfAFleetAreStable(t *testing.T) {
	w := &world{}
	w.set(fleet(10_000)...)
	feed, get := serve(t, w)
	for _, order := range []string{"", "phase", "-version"} {
		all, last := list(t, get, url.Values{"sort": {order}, "limit": {"2999"}}, func() {})
		seen := map[string]bool{}
		for _, s := range all {
			seen[id(s)] = true
		}
		if len(all) != 10_003 || len(seen) != 10_003 || last.Total != 10_003 || !last.Whole {
			t.Errorf("%q: %d statuses, %d different, %d told", order, len(all), len(seen), last.Total)
		}
	}
	all, _ := list(t, get, url.Values{"limit": {"2100"}, "kind": {schema.KindCluster}}, func() {
		next := w.list[:len(w.list):len(w.list)]
		next = slices.Delete(slices.Clone(next), 5, 9)
		w.set(append(next, cmdtest.Ready(fmt.Sprintf("new-%d", rand.Int())))...)
		feed.SetStatuses(w)
	})
	seen := map[string]int{}
	for _, s := range all {
		seen[id(s)]++
	}
	for _, s := range w.list {
		if s.Kind == schema.KindCluster && s.Metadata.Namespace != "shop" && seen[id(s)] != 1 {
			t.Fatalf("%s was told %d times", id(s), seen[id(s)])
		}
	}
}

// Two answers never have the same object, whatever the order.
func TestEachOrderHasEachObjectOnce(t *testing.T) {
	w := &world{}
	w.set(fleet(200)...)
	_, get := serve(t, w)
	for _, order := range Orders() {
		for _, sign := range []string{"", "-"} {
			all, _ := list(t, get, url.Values{"sort": {sign + order}, "limit": {"17"}}, func() {})
			seen := map[string]bool{}
			for _, s := range all {
				seen[id(s)] = true
			}
			if len(all) != 203 || len(seen) != 203 {
				t.Errorf("%s%s: %d statuses, %d different", sign, order, len(all), len(seen))
			}
		}
	}
}

func TestStatusesAreFilteredAndSorted(t *testing.T) {
	w := &world{}
	a, b, c := cmdtest.Ready("a"), cmdtest.Cluster("b", schema.PhaseStalled, "Unhealthy", "Orders-1 does not answer"), cmdtest.Cluster("c", schema.PhaseReconciling, "Roll", "on it")
	a.Status.Cluster.Version.Lowest, b.Status.Cluster.Version.Lowest, c.Status.Cluster.Version.Lowest = "3.10.1", "3.5.9", "3.5.21"
	c.Metadata.Namespace = "other"
	w.set(a, b, c, schema.NewStatus(schema.KindBackup, "shop", "a", schema.PhaseReady, "Taken", ""))
	_, get := serve(t, w)
	for query, want := range map[string]string{
		"":                               "other/c shop/a shop/b shop/a",
		"kind=EtcdCluster":               "other/c shop/a shop/b",
		"name=a":                         "shop/a shop/a",
		"namespace=shop&sort=-name":      "shop/b shop/a shop/a",
		"phase=Stalled":                  "shop/b",
		"q=orders-1":                     "shop/b",
		"q=SHOP/B":                       "shop/b",
		"q=3.10.":                        "shop/a",
		"kind=EtcdCluster&sort=version":  "shop/b other/c shop/a",
		"kind=EtcdCluster&sort=-version": "shop/a other/c shop/b",
		"kind=EtcdCluster&sort=phase":    "shop/b other/c shop/a",
	} {
		_, _, body := get(Prefix + "/statuses?" + query)
		var list StatusList
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range list.Items {
			names = append(names, s.Metadata.Namespace+"/"+s.Metadata.Name)
		}
		if got := strings.Join(names, " "); got != want || list.Total != len(names) {
			t.Errorf("%q: got %s (%d), want %s", query, got, list.Total, want)
		}
	}
}

// A token continues the query that it was given for, and no other.
func TestATokenIsOfOneQuery(t *testing.T) {
	w := &world{}
	w.set(fleet(10)...)
	_, get := serve(t, w)
	_, _, body := get(Prefix + "/statuses?limit=2&sort=name")
	var first StatusList
	if err := json.Unmarshal([]byte(body), &first); err != nil || first.Continue == "" {
		t.Fatalf("%v: %s", err, body)
	}
	if code, _, body := get(Prefix + "/statuses?limit=2&sort=-name&continue=" + first.Continue); code != http.StatusBadRequest || !strings.Contains(body, "leave it out to begin again") {
		t.Errorf("another query continues: %d %s", code, body)
	}
}
