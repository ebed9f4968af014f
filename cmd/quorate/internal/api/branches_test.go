package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/branches"
	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/schema"
)

// beside are two status branches, whose Kubernetes clusters have clusters of the same names.
func beside() *branches.View {
	stalled := cmdtest.Cluster("orders", schema.PhaseStalled, "QuorumLost", "two of three members are gone")
	return &branches.View{Read: time.Unix(3, 0), Problem: "the network", Branches: []branches.Branch{
		{Name: "quorate/status-eu", Commit: "ab", Written: time.Unix(1, 0), Statuses: []schema.Status{cmdtest.Ready("carts"), stalled}},
		{Name: "quorate/status-us", Commit: "cd", Written: time.Unix(2, 0), Statuses: []schema.Status{cmdtest.Ready("orders")}, Doubt: "no news", Unread: slices.Repeat([]string{"x.yaml"}, maxUnread+1)},
	}}
}

// What is on the status branches of other Kubernetes clusters is asked for by the name of a branch,
// and never mixed with what this daemon reconciles.
func TestStatusBranchesAreServed(t *testing.T) {
	feed, get := serve(t, &world{list: []schema.Status{cmdtest.Ready("orders")}, whole: true})
	fits := judge(t)
	ask := func(path, route string, code int, wants ...string) string {
		t.Helper()
		got, header, body := get(Prefix + path)
		fits(Prefix+route, got, header.Get("Content-Type"), []byte(body))
		if got != code {
			t.Errorf("%s answers %d: %s", path, got, body)
		}
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s has no %s: %s", path, want, body)
			}
		}
		return body
	}
	const one = "/statuses/{kind}/{namespace}/{name}"
	ask("/branches", "/branches", 200, `"items":[]`, "give the daemon --page-status-branches")
	ask("/statuses?branch=quorate/status-eu", "/statuses", 404, "--page-status-branches")
	feed.SetBranches(func() *branches.View {
		t.Error("branches are read for what this daemon reconciles")
		return nil
	})
	ask("/statuses", "/statuses", 200)
	ask("/statuses/EtcdCluster/shop/orders", one, 200)
	feed.SetBranches(beside)
	list := ask("/branches", "/branches", 200, `"read":"1970-01-01T00:00:03Z","problem":"the network"`,
		`{"name":"quorate/status-eu","commit":"ab","written":"1970-01-01T00:00:01Z","objects":2,"unread":[]}`, `"objects":1,"doubt":"no news","unread":["x.yaml"`)
	if n := strings.Count(list, "x.yaml"); n != maxUnread {
		t.Errorf("%d files are named", n)
	}
	for _, path := range []string{"/statuses", "/statuses?branch=."} {
		if body := ask(path, "/statuses", 200, `"total":1,"whole":true`); strings.Contains(body, "QuorumLost") {
			t.Errorf("%s has what is on a branch: %s", path, body)
		}
	}
	ask("/statuses?branch=quorate/status-eu", "/statuses", 200, `"total":2,"whole":true`, "QuorumLost")
	ask("/statuses?branch=quorate/status-eu&phase=Stalled", "/statuses", 200, `"total":1`, "QuorumLost")
	ask("/statuses?branch=quorate/status-us", "/statuses", 200, `"total":1,"whole":false`)
	ask("/statuses?branch=quorate/status", "/statuses", 404, "no status branch quorate/status is known")
	ask("/statuses/EtcdCluster/shop/orders?branch=quorate/status-eu", one, 200, "QuorumLost")
	ask("/statuses/EtcdCluster/shop/orders", one, 200, "the cluster is what Git says")
	ask("/statuses/EtcdCluster/shop/carts", one, 404)
	ask("/statuses/EtcdCluster/shop/carts?branch=quorate/status-us", one, 404)
	ask("/statuses/EtcdCluster/shop/orders?branch=elsewhere", one, 404)
	ask("/statuses/EtcdCluster/shop/orders/measured?branch=quorate/status-eu", "/statuses/EtcdCluster/{namespace}/{name}/measured", 400)

	var first, second StatusList
	if err := json.Unmarshal([]byte(ask("/statuses?branch=quorate/status-eu&limit=1", "/statuses", 200)), &first); err != nil || first.Continue == "" {
		t.Fatalf("%v: %+v", err, first)
	}
	if err := json.Unmarshal([]byte(ask("/statuses?branch=quorate/status-eu&limit=1&continue="+first.Continue, "/statuses", 200)), &second); err != nil || second.Items[0].Metadata.Name != "orders" || second.Continue != "" {
		t.Errorf("%v: %+v", err, second)
	}
	ask("/statuses?branch=quorate/status-us&limit=1&continue="+first.Continue, "/statuses", 400, "begin again")
}

// All Kubernetes clusters are chosen from together, each object with its branch.
func TestAllBranchesAreChosenFrom(t *testing.T) {
	look := Look{List: []schema.Status{cmdtest.Ready("orders")}, Branches: beside()}
	for branch, want := range map[string]string{
		"": "quorate/status-eu shop/orders,quorate/status-eu shop/carts, shop/orders,quorate/status-us shop/orders", Here: " shop/orders",
		"quorate/status-us": "quorate/status-us shop/orders", "elsewhere": "",
	} {
		q := Query{Branch: branch, Sort: "phase"}
		page, total := q.Choose(look, 0, 10)
		var got []string
		for _, s := range page {
			got = append(got, s.Branch+" "+s.Metadata.Namespace+"/"+s.Metadata.Name)
		}
		if text := strings.Join(got, ","); text != want || total != len(got) {
			t.Errorf("branch %q: %d %s, want %s", branch, total, text, want)
		}
		if page, total := q.Choose(look, total, 10); len(page) != 0 || total != len(got) {
			t.Errorf("branch %q: behind the end are %+v", branch, page)
		}
	}
	for branch, want := range map[string]int{"": 4, Here: 1, "quorate/status-eu": 2, "elsewhere": 0} {
		if n := len(slices.Collect(look.Of(branch))); n != want {
			t.Errorf("branch %q has %d", branch, n)
		}
	}
}

// Those who follow events are told when a status branch has changed, and only then.
func TestAChangedStatusBranchIsTold(t *testing.T) {
	feed, _ := serve(t, &world{whole: true})
	views := make(chan *branches.View, 1)
	view := beside()
	feed.SetBranches(func() *branches.View {
		select {
		case view = <-views:
		default:
		}
		return view
	})
	s, cancel, err := feed.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	time.Sleep(2 * maxAge)
	select {
	case <-s.Git:
		t.Error("nothing has changed")
	default:
	}
	views <- beside()
	select {
	case <-s.Git:
	case <-time.After(time.Minute):
		t.Error("it is not told")
	}
}
