package page

import (
	"errors"
	"fmt"
	"html"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/cmd/quorate/internal/branches"
	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

func TestPagesShowWhatIsKnown(t *testing.T) {
	h := newWorld().handler()
	for path, wants := range map[string][]string{
		"/": {
			"shop/orders", "3.5.21 to 3.6.16, wanted 3.6.16", "3 of 3 healthy", "Service drifted", "restarting orders-1 3.5.21 → 3.6.16", "restart orders-1 3.5.21",
			`<time datetime="2026-03-01T02:00:11Z">2026-03-01 02:00 UTC</time>`, "0 2 * * 6 for 3h0m0s, Europe/Berlin", "ledger-1 does not answer; check its pod", "not reconciled yet", "A commit is held.",
		},
		"/?kind=EtcdBackupSchedule": {"shop/nightly", "shop/orders", "2026-03-03 02:00 UTC"},
		"/objects/EtcdCluster/shop/orders": {
			"<del><code>ClusterIP</code></del> became <ins><code>NodePort</code></ins>", "It is put back: after the steps before it",
			"1 of 3 members run what Git says", "8.0 MiB of 2.0 GiB (0 %), 5.0 MiB in use", `value="8388608"`, "1.9 GiB of 2.0 GiB (92 %), 7.0 MiB in use",
			`2026-03-02 09:03 UTC</time> <strong>Warning</strong> <strong>HoldUnhealthy</strong> orders-2 does not answer (3 times)`, "<strong>RestartMember</strong> restart orders-2", "keeps for an hour",
			"Pod orders-2: <strong>Warning</strong> <strong>Unhealthy</strong> Readiness probe failed",
			"orders-0", "leader", "8e9e05c52164694d", "restart orders-1 3.5.21", "the others keep the quorum", "Undo: reversible by reverting the commit", "spec.type", "kubectl-edit",
			"backup for 3.6.16, 8.0 MiB, revision 41", "2bf7b928e9d0", "restore drill of s3://backups/shop/orders/b.db: key /a differs", "next backup for schedule nightly",
			"backup for EtcdBackup before-the-move", "Upgrade orders to 3.6.16, by Ada", "0123456789abcdef0123456789abcdef01234567",
			"SSH key of ada@example.com", "<code>v1.4.0</code>, signed with SSH key of release@example.com", "<code>89ab..0123</code>, annotation by kubectl",
		},
		"/objects/EtcdCluster/shop/ledger": {"<p>ledger-1 does not answer</p>", "Held by the rule", "health", "What to do:", "kubectl -n shop describe pod ledger-1", "3.5.21 is not the newest patch", "What comes when the hold ends"},
		"/git": {
			"a commit waits for approval", "fedcba9876543210fedcba9876543210fedcba98</code>", "Clean up, by Bob <bob@example.com>", "quorate.dev/approve=0123456789abcdef0123456789abcdef01234567..fedcba9876543210fedcba9876543210fedcba98", "branch main", "Ada", "Upgrade orders to 3.6.16",
			"SSH key SHA256:uNiVztksCsDhcc0u9e8BrrQXVUpKZIDTMczCvj3tD2s of ada@example.com", "<code>v1.4.0</code>, signed with SSH key SHA256:uNiVztksCsDhcc0u9e8BrrQXVUpKZIDTMczCvj3tD2s of release@example.com", "89abcdef0123456789abcdef0123456789abcdef..0123456789abcdef0123456789abcdef01234567</code>, annotation by kubectl-annotate at", "clusters/ledger.yaml:6:3",
		},
		"/pulls":                         {"Pull request 7", "shop/orders: changed", "3.5.35 → 3.6.16", "back up through orders-0", "Undo: reversible", "3 restarts", "shop/nightly: added", "clusters/ledger.yaml:6"},
		"/objects/EtcdCluster/shop/none": {"no EtcdCluster shop/none is known"},
		"/?phase=Sleepy":                 {"give one of"},
	} {
		body := html.UnescapeString(fetch(t, h, path).Body.String())
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s does not show %q", path, want)
			}
		}
	}
	body := fetch(t, h, "/objects/EtcdCluster/shop/orders").Body.String()
	if strings.Contains(body, "Back-off") || strings.Index(body, "HoldUnhealthy") > strings.Index(body, "TakeBackup") {
		t.Error("Events of another cluster are shown, or the oldest first")
	}
	if i, j := strings.Index(fetch(t, h, "/").Body.String(), "shop/ledger"), strings.Index(fetch(t, h, "/").Body.String(), "shop/carts"); i > j {
		t.Error("what wants a person is not first")
	}
}

// 224: a page runs nothing, loads nothing and is framed by nothing from elsewhere, is kept
// by no cache, and has nothing inline that its policy would stop. What is to be copied is
// what is meant: it has no character that is not seen.
func TestPagesKeepToTheirPolicy(t *testing.T) {
	h := newWorld().handler()
	inline := regexp.MustCompile(`(?i)<style|<script>|<script [^>]*>[^<]|\sstyle=|\son[a-z]+=|javascript:`)
	for _, path := range append(everyPage(), "/static/page.css", "/static/page.js", "/static/icon.svg") {
		got := fetch(t, h, path)
		header := got.Header()
		if header.Get("Content-Security-Policy") != policy || header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s has the headers %v", path, header)
		}
		if strings.HasPrefix(path, "/static/") {
			if got.Code != http.StatusOK {
				t.Errorf("%s answers %d", path, got.Code)
			}
			continue
		}
		body := got.Body.String()
		if header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(header.Get("Content-Type"), "text/html") {
			t.Errorf("%s has the headers %v", path, header)
		}
		if found := inline.FindString(body); found != "" {
			t.Errorf("%s has %q inline", path, found)
		}
		if strings.ContainsAny(body, "\u200b\u200c\u200d\u2060\ufeff\u00ad") {
			t.Errorf("%s has characters that are not seen", path)
		}
		if strings.Contains(body, "http://") || strings.Contains(strings.ReplaceAll(body, "https://git.example.com", ""), "https://") {
			t.Errorf("%s refers to another server", path)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "data:") {
		t.Errorf("the policy is %s", policy)
	}
}

// 224: whatever stands in names, messages and commits is shown, and is nothing else.
func TestHostileTextsAreShownAsTexts(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>'`
	s := cmdtest.Cluster("orders", schema.PhaseStalled, evil, evil)
	c := s.Status.Cluster
	c.Version.Wanted, c.Version.Lowest, c.Version.Highest = evil, evil, evil
	c.Members = []schema.MemberStatus{{Name: evil, ID: evil, Version: evil, Role: evil, Health: evil}}
	w := &world{measured: map[string]schema.Measured{"orders": {Members: []schema.MemberDatabase{{Name: evil, Size: math.MaxInt64, Quota: -1}}}}}
	c.Drift = []schema.DriftStatus{{Kind: evil, Name: evil, State: evil, Fields: []string{evil}, Manager: evil, Since: evil, Fight: evil, Correction: evil, Changes: []schema.FieldDrift{{Path: evil, Live: evil, Wanted: evil, Manager: evil, Since: evil}}}}
	c.Hold = &schema.HoldStatus{Kind: evil, Rule: evil, Message: evil, Do: evil}
	c.Plan = []schema.StepStatus{{Action: evil, Reason: evil, Undo: evil}}
	c.Rollout = &schema.RolloutStatus{Done: -1}
	c.Warnings, c.Maintenance = []string{evil}, []string{evil}
	c.Backups = []schema.BackupStatus{{For: evil, URL: evil, Time: evil, SHA256: evil}}
	s.Status.Commit, s.Status.Accepted = evil, schema.Acceptance{Signer: evil, Tag: evil, TagSigner: evil, Approval: evil, ApprovedBy: evil}
	named := cmdtest.Ready(evil)
	named.Metadata.Namespace = "javascript:alert(3)"
	w.git = follow.Details{State: follow.State{Commit: evil, Held: evil, HeldCommit: evil, Problems: []string{evil}}, Source: evil, Reference: evil, Author: evil, Subject: evil, HeldAuthor: evil, HeldSubject: evil, Reason: evil, Approve: evil, Signer: evil, Tag: sources.Tag{Name: evil, Signer: evil}, Approval: follow.Approval{From: evil, To: evil, By: evil}}
	w.set(s)
	w.set(named)
	w.pulls = []api.Pull{proposal(evil, evil)}
	w.view = &branches.View{Problem: evil, Branches: []branches.Branch{{Name: evil, Statuses: []schema.Status{named}, Doubt: evil, Unread: []string{evil}}}}
	w.events = []runtime.Object{happened("quorate", "StatefulSet", "orders", evil, evil, 1, false), happened(evil, "Pod", "orders-0", evil, evil, 2, true)}
	h := w.handler()
	query := "%22%3E%3Cscript%3Ealert(1)%3C/script%3E"
	for _, path := range []string{"/", "/?q=" + query, "/?namespace=" + query, "/?kind=" + query, "/?sort=" + query, "/objects/EtcdCluster/shop/orders", "/objects/" + query + "/a/b", "/?branch=" + query, "/?branch=x" + query, "/objects/EtcdCluster/shop/orders?branch=" + query, "/git", "/pulls", "/" + query} {
		body := fetch(t, h, path).Body.String()
		if !strings.Contains(body, "script&gt;alert(1)") {
			t.Errorf("%s does not show the text", path)
		}
		for _, bad := range []string{"<script>", "<img", `href="javascript:`, "href='javascript:"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s has %s", path, bad)
			}
		}
	}
}

// 221: the pages of 10,000 clusters lead from the first to the last, in each order.
func TestAFleetOfTenThousandIsPaged(t *testing.T) {
	w := &world{}
	for i := range 10_000 {
		s := cmdtest.Cluster(fmt.Sprintf("c%05d", i), schema.Phases()[i%4], "Because", "it is so")
		w.list = append(w.list, s)
	}
	h := w.handler()
	link := regexp.MustCompile(`href="(/objects/[^"]+)"`)
	next := regexp.MustCompile(`rel="next" href="([^"]+)"`)
	for _, start := range []string{"/?sort=-name", "/?phase=Stalled"} {
		seen, pages := map[string]bool{}, 0
		for path := start; path != ""; {
			body := fetch(t, h, path).Body.String()
			found := link.FindAllStringSubmatch(body, -1)
			for _, m := range found {
				seen[m[1]] = true
			}
			if len(found) > perPage || len(body) > 200_000 {
				t.Fatalf("%s has %d rows in %d bytes", path, len(found), len(body))
			}
			path, pages = "", pages+1
			if m := next.FindStringSubmatch(body); m != nil {
				path = html.UnescapeString(m[1])
			}
		}
		want := map[string]int{"/?sort=-name": 10_000, "/?phase=Stalled": 2500}[start]
		if len(seen) != want || pages != want/perPage {
			t.Errorf("%s: %d clusters on %d pages", start, len(seen), pages)
		}
	}
	if body := fetch(t, h, "/?page=4711").Body.String(); !strings.Contains(body, "There are no more.") {
		t.Error("a page behind the last one does not say so")
	}
	if body := fetch(t, h, "/?sort=-name").Body.String(); !strings.Contains(body, `aria-sort="descending"`) || strings.Index(body, "c09999") > strings.Index(body, "c09998") {
		t.Error("the order is not that which is asked for")
	}
}

// 246: an API server that gives no Events leaves a sentence, and the page stays.
func TestAPageWithoutEventsStays(t *testing.T) {
	w := newWorld()
	feed := api.NewFeed(w.details)
	feed.SetStatuses(w)
	kube := fake.NewClientset()
	kube.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no"))
	})
	feed.SetEvents(api.NewEvents(kube))
	got := fetch(t, Handler(feed), "/objects/EtcdCluster/shop/orders")
	body := html.UnescapeString(got.Body.String())
	for _, want := range []string{"It is not known: read the Events of namespace shop: quorate may not; let it list events", "They are not known:", "restart orders-1 3.5.21", "8.0 MiB of 2.0 GiB"} {
		if got.Code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d, no %q", got.Code, want)
		}
	}
}

func TestADaemonThatDoesNotReconcileYetSaysSo(t *testing.T) {
	got := fetch(t, Handler(api.NewFeed(func() follow.Details { return follow.Details{} })), "/")
	if body := got.Body.String(); got.Code != http.StatusServiceUnavailable || !strings.Contains(body, "waits for the lease") || !strings.Contains(body, `http-equiv="refresh"`) {
		t.Errorf("%d: %s", got.Code, body)
	}
}

func TestPagesAreOnlyRead(t *testing.T) {
	h := newWorld().handler()
	for _, path := range []string{"/", "/git", "/objects/EtcdCluster/shop/orders"} {
		to := httptest.NewRecorder()
		h.ServeHTTP(to, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
		if to.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s answers %d", path, to.Code)
		}
	}
}

// 225: texts stand out from what is behind them by 4.5, lines around controls by 3, on
// light and dark pages (WCAG 2.2 AA).
func TestColoursHaveContrast(t *testing.T) {
	text, err := files.ReadFile("static/page.css")
	if err != nil {
		t.Fatal(err)
	}
	themes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(string(text), -1)
	if len(themes) != 2 {
		t.Fatalf("%d themes", len(themes))
	}
	for i, theme := range themes {
		colours := map[string]float64{}
		for _, m := range regexp.MustCompile(`--([a-z]+): #([0-9a-f]{6});`).FindAllStringSubmatch(theme[1], -1) {
			colours[m[1]] = luminance(t, m[2])
		}
		for _, behind := range []string{"page", "card"} {
			for front, least := range map[string]float64{"text": 4.5, "muted": 4.5, "link": 4.5, "stalled": 4.5, "reconciling": 4.5, "ready": 4.5, "unknown": 4.5, "line": 3} {
				a, b := colours[front], colours[behind]
				if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); len(colours) != 10 || ratio < least {
					t.Errorf("theme %d: %s on %s has the contrast %.2f, want %.1f", i, front, behind, ratio, least)
				}
			}
		}
	}
	rest := regexp.MustCompile(`(?s):root \{.*?\}`).ReplaceAllString(string(text), "")
	if bare := regexp.MustCompile(`#[0-9a-f]{3,6}\b`).FindString(rest); bare != "" {
		t.Errorf("the colour %s is in no theme", bare)
	}
}

// luminance is WCAG's relative luminance of a colour.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
