package status

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/branches/branchestest"
	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// gitFlags is a --repo, read as the command does.
func gitFlags() Git {
	var url string
	return Git{
		Add:   func(cmd *cobra.Command) { cmd.Flags().StringVar(&url, "repo", "", "repository") },
		Named: func() bool { return url != "" },
		Open: func(branch string) (*sources.Repository, error) {
			return sources.New(sources.Config{URL: url, Branch: branch})
		},
	}
}

// 576: the clusters of several Kubernetes clusters are shown beside one another, each with its
// branch, and a file that cannot be read hides no other.
func TestStatusOfAllKubernetesClusters(t *testing.T) {
	r := cmdtest.NewRepository(t)
	r.Commit("clusters/none.yaml", "")
	branchestest.Write(r, "quorate/status-eu", orders(), sessions())
	branchestest.Write(r, "quorate/status-us", orders())
	f := newFleet(t)
	out, errs := f.quorate(2, "--all", "--repo", r.Dir)
	if errs != "" || !wantLines(out, "BRANCH NAMESPACE NAME PHASE", "quorate/status-eu shop orders Stalled", "quorate/status-us shop orders Stalled", "quorate/status-eu shop sessions Ready") {
		t.Errorf("printed\n%s%s", out, errs)
	}
	out, _ = f.quorate(0, "shop/sessions", "--all", "--repo", r.Dir)
	if !strings.Contains(out, "On branch quorate/status-eu, written 20") || !strings.Contains(out, "EtcdCluster shop/sessions: Ready") {
		t.Errorf("printed\n%s", out)
	}
	out, _ = f.quorate(2, "--all", "--repo", r.Dir, "--status-branch", "quorate/status-us", "-o", "json")
	var got struct {
		Items []struct {
			Branch, Written, Kind string
			Metadata              schema.Metadata
		}
		Whole bool
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || !got.Whole || len(got.Items) != 1 || got.Items[0].Branch != "quorate/status-us" ||
		got.Items[0].Written == "" || got.Items[0].Kind != schema.KindCluster || got.Items[0].Metadata.Name != "orders" {
		t.Errorf("%v: printed %s", err, out)
	}

	r.Git("checkout", "--quiet", "quorate/status-us")
	r.Commit("clusters/shop/broken.yaml", "kind: [")
	out, errs = f.quorate(2, "--all", "--repo", r.Dir)
	if !strings.Contains(out, "sessions") || !strings.Contains(errs, "1 file of the status branches cannot be read, first quorate/status-us/clusters/shop/broken.yaml") {
		t.Errorf("printed\n%s%s", out, errs)
	}
}

// A status branch whose daemon is silent is not shown as healthy, and what it last said is.
func TestStatusOfAllDoubtsASilentDaemon(t *testing.T) {
	r := cmdtest.NewRepository(t)
	r.Commit("clusters/none.yaml", "")
	branchestest.Write(r, "quorate/status-eu", sessions())
	branchestest.Write(r, "quorate/status-us", sessions())
	r.Git("checkout", "--quiet", "quorate/status-us")
	t.Setenv("GIT_COMMITTER_DATE", time.Now().Add(-3*time.Hour).Format(time.RFC3339))
	r.Git("commit", "--quiet", "--amend", "--reuse-message", "HEAD")
	out, errs := newFleet(t).quorate(2, "--all", "--repo", r.Dir)
	if !strings.Contains(errs, "what branch quorate/status-us holds may be old: nothing was written since 20") || !strings.Contains(errs, "every 1h0m0s at least: it does not run") {
		t.Errorf("printed %s", errs)
	}
	if !wantLines(out, "BRANCH NAMESPACE NAME PHASE", "quorate/status-eu shop sessions Ready", "quorate/status-us shop sessions Unknown") || !strings.Contains(out, "0/3") {
		t.Errorf("printed\n%s", out)
	}
}

// wantLines reports whether lines that begin with these words are in a text, in this order.
func wantLines(text string, wanted ...string) bool {
	for _, line := range strings.Split(text, "\n") {
		if len(wanted) > 0 && strings.HasPrefix(strings.Join(strings.Fields(line), " "), wanted[0]) {
			wanted = wanted[1:]
		}
	}
	return len(wanted) == 0
}

func TestStatusOfAllNeedsARepository(t *testing.T) {
	for says, args := range map[string][]string{
		"--all needs --repo":           {"--all"},
		"--repo is for --all":          {"--repo", "x"},
		"--watch is for one daemon":    {"--all", "--repo", "x", "--watch"},
		"--all asks no daemon":         {"--all", "--repo", "x", "--server", "http://localhost:1"},
		"--status-branch is empty":     {"--all", "--repo", "x", "--status-branch", " "},
		"no branch quorate/elsewhere*": {"--all", "--repo", cmdtest.NewRepository(t).Dir, "--status-branch", "quorate/elsewhere"},
	} {
		if _, errs := newFleet(t).quorate(1, args...); !strings.Contains(errs, says) {
			t.Errorf("%q: %s", args, errs)
		}
	}
}
