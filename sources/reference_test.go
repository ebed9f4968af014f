package sources_test

import (
	"testing"

	"github.com/quorate/quorate/sources"
)

// refer opens without a branch.
func refer(t *testing.T, open opener, cfg sources.Config) *sources.Repository {
	t.Helper()
	cfg.Branch = noBranch
	return open(t, cfg)
}

func TestEveryKindOfReferenceIsFollowed(t *testing.T) {
	everyWay(t, map[string]string{"a.yaml": "1"}, func(t *testing.T, u *upstream, open opener) {
		first := u.git(u.work, "rev-parse", "HEAD")
		u.git(u.work, "tag", "v1.0.0")
		second := u.commit("two", map[string]string{"a.yaml": "2"})
		u.git(u.work, "tag", "--annotate", "--message", "words", "1.10.0")
		u.git(u.work, "tag", "v1.9.0", first)
		u.git(u.work, "tag", "v2.0.0-rc.1", first)
		u.git(u.work, "tag", "newest", first)
		u.git(u.work, "push", "--quiet", "--tags", "origin")

		wants := func(cfg sources.Config, commit string) {
			t.Helper()
			repo := refer(t, open, cfg)
			for range 2 {
				if got := fetch(t, repo); got.Commit != commit {
					t.Errorf("%+v: got %s, want %s", cfg, got.Commit, commit)
				}
			}
		}
		wants(sources.Config{Tag: "v1.0.0"}, first)
		wants(sources.Config{Tag: "1.10.0"}, second)
		wants(sources.Config{Semver: "1.x"}, second)
		wants(sources.Config{Semver: ">=1.0.0 <1.10.0"}, first)
		wants(sources.Config{Semver: ">=2.0.0-0"}, first)
		wants(sources.Config{Commit: second}, second)
		refused(t, refer(t, open, sources.Config{Tag: "v1.0"}), sources.ErrBranchGone, "no tag v1.0", "push the tag again")
		refused(t, refer(t, open, sources.Config{Semver: "3.x"}), sources.ErrBranchGone, "no tag with a version in 3.x")
	})
}

// A tag with a message is followed as well where no branch ends at its commit: some servers give
// only what a reference names itself, which is the tag.
func TestTagOfAnEarlierCommitIsFollowed(t *testing.T) {
	everyWay(t, map[string]string{"a.yaml": "1"}, func(t *testing.T, u *upstream, open opener) {
		first := u.git(u.work, "rev-parse", "HEAD")
		second := u.commit("two", map[string]string{"a.yaml": "2"})
		u.commit("three", map[string]string{"a.yaml": "3"})
		u.git(u.work, "tag", "--annotate", "--message", "words", "v1.0.0", second)
		u.git(u.work, "push", "--quiet", "--tags", "origin")
		for _, cfg := range []sources.Config{{Tag: "v1.0.0"}, {Semver: "1.x"}} {
			for _, applied := range []string{"", first} {
				if got := after(t, refer(t, open, cfg), sources.Trust{Applied: applied}, nil); got.Commit != second {
					t.Errorf("%+v: got %s, want %s", cfg, got.Commit, second)
				}
			}
		}
	})
}

// A commit that is not there says so, over whatever it is asked for.
func TestCommitThatIsNotThereIsAnError(t *testing.T) {
	const absent = "0123456789012345678901234567890123456789"
	everyWay(t, map[string]string{"a.yaml": "1"}, func(t *testing.T, _ *upstream, open opener) {
		refusedAny(t, refer(t, open, sources.Config{Commit: absent}), absent)
	})
}

// A tag that moves is seen like a branch.
func TestTagThatMovesIsSeen(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "1"})
	u.git(u.work, "tag", "stable")
	u.git(u.work, "push", "--quiet", "--tags", "origin")
	repo := refer(t, at(serve(t, u).repo()), sources.Config{Tag: "stable"})
	fetch(t, repo)
	second := u.commit("two", map[string]string{"a.yaml": "2"})
	u.git(u.work, "tag", "--force", "stable")
	u.git(u.work, "push", "--quiet", "--force", "--tags", "origin")
	if got := fetch(t, repo); got.Commit != second {
		t.Errorf("got %s, want %s", got.Commit, second)
	}
}
