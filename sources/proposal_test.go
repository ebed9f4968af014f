package sources_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/sources"
)

const pull = "refs/pull/7/head"

// propose commits files on a branch of a commit, and makes it pull request 7.
func (u *upstream) propose(from string, files map[string]string) string {
	u.tb.Helper()
	u.git(u.work, "checkout", "--quiet", "--detach", from)
	defer u.git(u.work, "checkout", "--quiet", "main")
	for name, content := range files {
		write(u.tb, u.work+"/"+name, content)
	}
	u.git(u.work, "add", "--all")
	u.git(u.work, "commit", "--quiet", "--allow-empty", "--message", "propose")
	u.git(u.work, "push", "--quiet", "--force", "origin", "HEAD:"+pull)
	return u.git(u.work, "rev-parse", "HEAD")
}

func text(s sources.Snapshot, path string) string {
	for _, f := range s.Files {
		if f.Path == path {
			return string(f.Data)
		}
	}
	return ""
}

// What the branch got since a pull request left it is no change of the pull
// request, and neither is what the pull request took from it again.
func TestProposalIsComparedWithWhereItLeftTheBranch(t *testing.T) {
	overSome(t, map[string]string{"a.yaml": "1", "b.yaml": "1"}, func(t *testing.T, u *upstream, open opener) {
		first := u.git(u.work, "rev-parse", "HEAD")
		second := u.commit("second", map[string]string{"b.yaml": "2"})
		repo := open(t, sources.Config{})
		if got := fetch(t, repo); got.Commit != second {
			t.Fatalf("at %s", got.Commit)
		}
		check := func(head, base, a, b, baseB string) {
			t.Helper()
			p, err := repo.FetchProposal(t.Context(), pull, second)
			if err != nil {
				t.Fatal(err)
			}
			if p.Head.Commit != head || p.Base.Commit != base {
				t.Errorf("from %s to %s, want %s to %s", p.Base.Commit, p.Head.Commit, base, head)
			}
			if text(p.Head, "a.yaml") != a || text(p.Head, "b.yaml") != b || text(p.Base, "a.yaml") != "1" || text(p.Base, "b.yaml") != baseB {
				t.Errorf("from %v to %v", p.Base.Files, p.Head.Files)
			}
		}
		old := u.propose(first, map[string]string{"a.yaml": "3"})
		check(old, first, "3", "1", "1")
		u.git(u.work, "checkout", "--quiet", "--detach", old)
		u.git(u.work, "merge", "--quiet", "--no-edit", "main")
		merged := u.git(u.work, "rev-parse", "HEAD")
		u.git(u.work, "push", "--quiet", "--force", "origin", "HEAD:"+pull)
		u.git(u.work, "checkout", "--quiet", "main")
		check(merged, second, "3", "2", "2")
		check(u.propose(second, nil), second, "1", "2", "2")
		u.git(u.work, "push", "--quiet", "--force", "origin", first+":"+pull)
		check(first, first, "1", "1", "1")
		if got := fetch(t, repo); got.Commit != second {
			t.Errorf("now the repository is at %s", got.Commit)
		}
	})
}

func TestProposalIsReadWithinTheSameLimits(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"clusters/a.yaml": "1"})
	first := u.git(u.work, "rev-parse", "HEAD")
	repo := open(t, sources.Config{URL: serve(t, u).repo(), Path: "clusters", Limits: sources.Limits{FileBytes: 1000}})
	refuse := func(kind error, says ...string) {
		t.Helper()
		p, err := repo.FetchProposal(t.Context(), pull, first)
		wantRefusal(t, p.Head, err, kind, says...)
	}
	refuse(sources.ErrBranchGone, "fetch "+pull, "no "+pull)
	u.propose(first, map[string]string{"clusters/large.yaml": strings.Repeat("x", 1001)})
	p, err := repo.FetchProposal(t.Context(), pull, first)
	if err != nil {
		t.Fatal(err)
	}
	wantPaths(t, p.Head, "clusters/a.yaml", "clusters/large.yaml")
	wantUnread(t, p.Head, "clusters/large.yaml", "more than 1000 bytes")
	u.git(u.work, "checkout", "--quiet", "--orphan", "island")
	u.git(u.work, "commit", "--quiet", "--message", "alone")
	u.git(u.work, "push", "--quiet", "--force", "origin", "HEAD:"+pull)
	refuse(sources.ErrRewritten, "no commit in common", "rebase it")
}

// A pull request may be older than the watched path.
func TestProposalMayBringThePath(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"README.md": "1"})
	first := u.git(u.work, "rev-parse", "HEAD")
	second := u.commit("second", map[string]string{"clusters/a.yaml": "1"})
	u.propose(first, map[string]string{"clusters/b.yaml": "1"})
	p, err := open(t, sources.Config{URL: u.bare, Path: "clusters"}).FetchProposal(t.Context(), pull, second)
	if err != nil || p.Base.Commit != first || p.Base.Files != nil || text(p.Head, "clusters/b.yaml") != "1" {
		t.Errorf("%+v, %v", p, err)
	}
}
