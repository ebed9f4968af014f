package page

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/quorate/quorate/cmd/quorate/internal/branches"
)

// shown is the text of a page, without its tags, each line trimmed.
func shown(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	body := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(fetch(t, h, path).Body.String(), " ")
	return strings.Join(strings.Fields(html.UnescapeString(body)), " ")
}

// The fleet has the clusters of all Kubernetes clusters, each with its own; those of the same
// name are told apart, and one can be chosen.
func TestTheFleetHasAllKubernetesClusters(t *testing.T) {
	h := newWorld().handler()
	for path, tc := range map[string]struct{ wants, not []string }{
		"/": {[]string{
			"Stalled shop/orders quorate/status-eu 3.5.21 to 3.6.16, wanted 3.6.16 2 of 3 healthy none two of three members are gone", "Reconciling shop/orders this one", "Ready shop/carts this one", "Ready shop/carts quorate/status-eu",
			"Unknown shop/orders quorate/status-us 3.5.21 to 3.6.16, wanted 3.6.16 unknown unknown nothing was written since", "1 to 7 of 7", "Clusters 7", "Schedules 2", "Stalled 2", "Unknown 2", "Kubernetes cluster all this one quorate/status-eu quorate/status-us",
			"Nothing is known of how the objects of 1 other Kubernetes cluster are now. Why", "this one 7 now up to date", "quorate/status-eu 3 2026-02-25 06:13 UTC up to date; files that hold no status that is understood: 1, first notes.yaml",
			"quorate/status-us 1 2026-02-13 16:26 UTC Unknown : nothing was written since 2026-03-01T09:00:00Z", "as read at 2026-02-25 06:15 UTC",
		}, nil},
		"/?branch=quorate/status-eu":                                {[]string{"1 to 2 of 2", "shop/orders quorate/status-eu", "Clusters 2", "Schedules 1", "Stalled 1", "Show all"}, []string{"shop/orders this one", "shop/ledger", "quorate/status-us 3"}},
		"/?branch=.":                                                {[]string{"1 to 4 of 4", "shop/orders this one", "Clusters 4"}, []string{"shop/orders quorate/status"}},
		"/?branch=quorate/status-us&phase=Ready":                    {[]string{"None matches."}, nil},
		"/?kind=EtcdBackupSchedule":                                 {[]string{"shop/weekly quorate/status-eu shop/orders", "shop/nightly this one shop/orders"}, nil},
		"/?branch=elsewhere":                                        {[]string{"No such Kubernetes cluster", "no status branch elsewhere is known"}, nil},
		"/objects/EtcdCluster/shop/carts?branch=x":                  {[]string{"no status branch x is known"}, nil},
		"/objects/EtcdCluster/shop/ledger?branch=quorate/status-eu": {[]string{"no EtcdCluster shop/ledger is known"}, nil},
		"/objects/EtcdCluster/shop/orders?branch=quorate/status-eu": {
			[]string{
				"EtcdCluster: Stalled two of three members are gone", "that of the status branch quorate/status-eu , as its daemon wrote at 2026-02-25 06:13 UTC", "3 voters, 2 healthy",
				"It is not known: only the daemon in that Kubernetes cluster knows it.", "They are not known: only the daemon in that Kubernetes cluster knows it.", "EtcdBackupSchedule shop/weekly",
			},
			[]string{"RestartMember", "restarting orders-1", "nightly", "Some objects were not reconciled"},
		},
		"/objects/EtcdCluster/shop/orders?branch=quorate/status-us": {
			[]string{"EtcdCluster: Unknown nothing was written since 2026-03-01T09:00:00Z", "health unknown", "orders-0 Unknown", "no step was known when this was written", "None was known when this was written."},
			[]string{"the cluster is what Git says. ", "is what quorate wants of it", "2 healthy"},
		},
		"/objects/EtcdCluster/shop/orders": {[]string{"restarting orders-1", "nightly"}, []string{"weekly", "status branch"}},
	} {
		text := shown(t, h, path)
		for _, want := range tc.wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not show %q:\n%s", path, want, text)
			}
		}
		for _, not := range tc.not {
			if strings.Contains(text, not) {
				t.Errorf("%s shows %q:\n%s", path, not, text)
			}
		}
	}
	body := fetch(t, h, "/?branch=quorate/status-eu&kind=EtcdCluster").Body.String()
	for _, link := range []string{`href="/objects/EtcdCluster/shop/orders?branch=quorate%2Fstatus-eu"`, `href="/?branch=quorate%2Fstatus-eu&amp;kind=EtcdBackup"`, `href="/?branch=quorate%2Fstatus-eu&amp;phase=Stalled"`, `<option value="quorate/status-eu" selected>`} {
		if !strings.Contains(body, link) {
			t.Errorf("there is no %s", link)
		}
	}
}

// Where no status branches are read, nothing on the page speaks of them.
func TestOneKubernetesClusterIsShownAlone(t *testing.T) {
	w := newWorld()
	w.view = nil
	for _, path := range []string{"/", "/objects/EtcdCluster/shop/orders"} {
		if text := shown(t, w.handler(), path); strings.Contains(text, "Kubernetes cluster") || strings.Contains(text, "this one") {
			t.Errorf("%s: %s", path, text)
		}
	}
}

// Before the first read the page asks again without the script, and says why nothing is there.
func TestBranchesThatWereNotReadAreTold(t *testing.T) {
	w := newWorld()
	w.view.Problem = "fetch the branches quorate/status*: the server does not answer"
	if text := shown(t, w.handler(), "/"); !strings.Contains(text, "are not up to date. fetch the branches quorate/status*: the server does not answer.") || strings.Contains(fetch(t, w.handler(), "/").Body.String(), "http-equiv") {
		t.Error(text)
	}
	w.view = &branches.View{Problem: "the status branches have not been read yet"}
	if text := shown(t, w.handler(), "/"); !strings.Contains(text, "have not been read yet") || !strings.Contains(fetch(t, w.handler(), "/").Body.String(), `http-equiv="refresh"`) {
		t.Error(text)
	}
}

// An open page shows what changes on a status branch, without being loaded again.
func TestAnOpenPageFollowsAStatusBranch(t *testing.T) {
	w := newWorld()
	tab := startBrowser(t).open(w.handler())
	for path, part := range map[string]string{"/": "rows", "/objects/EtcdCluster/shop/orders?branch=quorate%2Fstatus-eu": "object"} {
		tab.load(path)
		tab.eval(`window.same = true`)
		w.mu.Lock()
		w.view = twoBranches("the quorum is back, " + part)
		w.mu.Unlock()
		tab.await(`document.querySelector("[data-live=` + part + `]").textContent.includes("the quorum is back, ` + part + `")`)
		if tab.eval("window.same") != true {
			t.Errorf("%s was loaded again", path)
		}
	}
	if complaints := tab.complained(); complaints != nil {
		t.Errorf("the pages complain of %q", complaints)
	}
}
