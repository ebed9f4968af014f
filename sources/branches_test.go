package sources_test

import (
	"testing"

	"github.com/quorate/quorate/sources"
)

// All branches of one prefix are read, each as it is, and no other.
func TestBranchesOfAPrefixAreRead(t *testing.T) {
	overSome(t, map[string]string{"a.yaml": "1"}, func(t *testing.T, u *upstream, open opener) {
		push := func(branch, content string) {
			t.Helper()
			u.git(u.work, "checkout", "--quiet", "--orphan", branch)
			write(t, u.work+"/a.yaml", content)
			u.git(u.work, "add", "--all")
			u.git(u.work, "commit", "--quiet", "--message", "status")
			u.git(u.work, "push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
		}
		repo := open(t, sources.Config{})
		if _, err := repo.FetchBranches(t.Context(), "quorate/status"); err == nil {
			t.Error("no branch is no error")
		}
		push("quorate/status-eu", "eu")
		push("quorate/status", "first")
		push("quorate/other", "other")
		list, err := repo.FetchBranches(t.Context(), "quorate/status")
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != 2 || list[0].Name != "quorate/status" || list[1].Name != "quorate/status-eu" || list[0].When.IsZero() {
			t.Fatalf("read %+v", list)
		}
		if text(list[0].Snapshot, "a.yaml") != "first" || text(list[1].Snapshot, "a.yaml") != "eu" {
			t.Errorf("they hold %q and %q", list[0].Files, list[1].Files)
		}
	})
}
