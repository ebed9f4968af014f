package sources_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/sources"
)

// fetchBranches reads all branches with a prefix of which wanted is true.
func fetchBranches(t *testing.T, repo *sources.Repository, wanted func(name, commit string) bool) []sources.Branch {
	t.Helper()
	var list []sources.Branch
	if err := repo.FetchBranches(t.Context(), "quorate/status", wanted, func(b sources.Branch) { list = append(list, b) }); err != nil {
		t.Fatal(err)
	}
	return list
}

// All branches of one prefix are read, each as it is, and no other; one that is not wanted is
// not.
func TestBranchesOfAPrefixAreRead(t *testing.T) {
	overSome(t, map[string]string{"a.yaml": "1"}, func(t *testing.T, u *upstream, open opener) {
		push := func(branch, content, message string) {
			t.Helper()
			u.git(u.work, "checkout", "--quiet", "--orphan", branch)
			write(t, u.work+"/a.yaml", content)
			u.git(u.work, "add", "--all")
			u.git(u.work, "commit", "--quiet", "--message", message)
			u.git(u.work, "push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
		}
		repo := open(t, sources.Config{})
		if err := repo.FetchBranches(t.Context(), "quorate/status", nil, func(sources.Branch) {}); err == nil {
			t.Error("no branch is no error")
		}
		push("quorate/status-eu", "eu", "status\n\nQuorate-Heartbeat: 30m0s\nQuorate-Status-Of: one")
		push("quorate/status", "first", "status\n\nQuorate-Heartbeat: -30m0s")
		push("quorate/other", "other", "status")
		list := fetchBranches(t, repo, nil)
		if len(list) != 2 || list[0].Name != "quorate/status" || list[1].Name != "quorate/status-eu" || list[0].When.IsZero() {
			t.Fatalf("read %+v", list)
		}
		if text(list[0].Snapshot, "a.yaml") != "first" || text(list[1].Snapshot, "a.yaml") != "eu" {
			t.Errorf("they hold %q and %q", list[0].Files, list[1].Files)
		}
		if list[0].Heartbeat != 0 || list[1].Heartbeat != 30*time.Minute {
			t.Errorf("their heartbeats are %s and %s", list[0].Heartbeat, list[1].Heartbeat)
		}
		again := fetchBranches(t, repo, func(name, commit string) bool { return name != "quorate/status-eu" || commit != list[1].Commit })
		if len(again) != 1 || again[0].Name != "quorate/status" {
			t.Errorf("what is not wanted was read: %+v", again)
		}
	})
}

// A branch that is too large says so, and hides no other.
func TestABranchThatCannotBeReadHidesNoOther(t *testing.T) {
	overSome(t, map[string]string{"a.yaml": "1"}, func(t *testing.T, u *upstream, open opener) {
		u.git(u.work, "push", "--quiet", "origin", "HEAD:refs/heads/quorate/status-b")
		write(t, u.work+"/b.yaml", "2")
		u.git(u.work, "add", "--all")
		u.git(u.work, "commit", "--quiet", "--message", "two")
		u.git(u.work, "push", "--quiet", "origin", "HEAD:refs/heads/quorate/status-a")
		list := fetchBranches(t, open(t, sources.Config{Limits: sources.Limits{Files: 1}}), nil)
		if len(list) != 2 || list[0].Err == nil || !strings.Contains(list[0].Err.Error(), "more than 1 YAML files") || list[0].Commit == "" || list[1].Err != nil || text(list[1].Snapshot, "a.yaml") != "1" {
			t.Errorf("read %+v", list)
		}
	})
}
