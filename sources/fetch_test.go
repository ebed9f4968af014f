package sources_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/sources"
)

// everyWay runs a test against the repository as a path, as a file URL, and over
// HTTP and SSH in both of Git's protocols; under -short as a path, and in the newer protocol only.
func everyWay(t *testing.T, files map[string]string, test func(t *testing.T, u *upstream, open opener)) {
	t.Helper()
	start := func(t *testing.T) *upstream {
		if files == nil {
			return newUpstream(t)
		}
		return newUpstreamWith(t, files)
	}
	t.Run("path", func(t *testing.T) {
		u := start(t)
		test(t, u, at(u.bare))
	})
	if !testing.Short() {
		t.Run("file URL", func(t *testing.T) {
			u := start(t)
			test(t, u, at("file://"+u.bare))
		})
	}
	for name, old := range map[string]bool{"http": false, "http, protocol 0": true} {
		if old && testing.Short() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			u := start(t)
			srv := serve(t, u)
			srv.old.Store(old)
			test(t, u, at(srv.repo()))
		})
	}
	t.Run("http, Azure DevOps", func(t *testing.T) {
		u := start(t)
		test(t, u, at(serveAzure(t, u, azureOffers).repo()))
	})
	for name, old := range map[string]bool{"ssh": false, "ssh, protocol 0": true} {
		if old && testing.Short() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			u := start(t)
			srv := serveSSH(t, u, old)
			test(t, u, func(t testing.TB, cfg sources.Config) *sources.Repository {
				cfg.URL, cfg.Auth = srv.repo(), sources.Auth{Dir: srv.credentials}
				return open(t, cfg)
			})
		})
	}
}

// opener is open with the place filled in.
type opener func(testing.TB, sources.Config) *sources.Repository

func at(url string) opener {
	return func(t testing.TB, cfg sources.Config) *sources.Repository {
		cfg.URL = url
		return open(t, cfg)
	}
}

func TestFetchReadsTheYAMLFilesUnderThePath(t *testing.T) {
	files := map[string]string{
		"clusters/orders.yaml":     "kind: EtcdCluster\n",
		"clusters/b/backup.yml":    "kind: EtcdBackup\n",
		"clusters/b-other.yaml":    "kind: EtcdRestore\n",
		"clusters/README.md":       "words",
		"clusters/empty.yaml":      "",
		"elsewhere/unwatched.yaml": "kind: EtcdCluster\n",
	}
	everyWay(t, files, func(t *testing.T, u *upstream, open opener) {
		got := fetch(t, open(t, sources.Config{Path: "/clusters/"}))
		wantPaths(t, got, "clusters/b-other.yaml", "clusters/b/backup.yml", "clusters/empty.yaml", "clusters/orders.yaml")
		for _, file := range got.Files {
			if string(file.Data) != files[file.Path] {
				t.Errorf("%s holds %q, want %q", file.Path, file.Data, files[file.Path])
			}
		}
		if want := u.git(u.work, "rev-parse", "HEAD"); got.Commit != want {
			t.Errorf("commit %s, want %s", got.Commit, want)
		}
		if want := u.git(u.work, "rev-parse", "HEAD:clusters"); got.Tree != want {
			t.Errorf("tree %s, want %s", got.Tree, want)
		}
		wantSkipped(t, got)
	})
}

func TestFetchTellsWhoCommittedWhatAndWhen(t *testing.T) {
	u := newUpstream(t)
	u.commit("Grow orders\n\nBecause it is full.", map[string]string{"a.yaml": "a"})
	got := fetch(t, open(t, sources.Config{URL: u.bare}))
	when := time.Date(2024, 5, 2, 10, 0, 0, 0, time.UTC)
	if got.Subject != "Grow orders" || got.Author != "Ada <ada@example.com>" || !got.When.Equal(when) {
		t.Errorf("got %q, %q, %v", got.Subject, got.Author, got.When)
	}
}

func TestFetchOfTheRootTakesEveryDirectory(t *testing.T) {
	files := map[string]string{"a.yaml": "a", "x/y/z.yaml": "z"}
	everyWay(t, files, func(t *testing.T, u *upstream, open opener) {
		for _, path := range []string{"", ".", "/", "./"} {
			got := fetch(t, open(t, sources.Config{Path: path}))
			wantPaths(t, got, "a.yaml", "x/y/z.yaml")
			if want := u.git(u.work, "rev-parse", "HEAD^{tree}"); got.Tree != want {
				t.Errorf("path %q: tree %s, want %s", path, got.Tree, want)
			}
		}
	})
}

func TestFetchOfAWorkingTreeReadsOnlyWhatIsCommitted(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "committed"})
	write(t, filepath.Join(u.work, "a.yaml"), "edited")
	got := fetch(t, open(t, sources.Config{URL: u.work}))
	if string(got.Files[0].Data) != "committed" {
		t.Errorf("got %q", got.Files[0].Data)
	}
}

func TestFetchReadsPackedRepositories(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": strings.Repeat("line\n", 1000)})
	u.commit("change", map[string]string{"a.yaml": strings.Repeat("line\n", 1001), "b.yaml": "b"})
	u.git(u.bare, "gc", "--quiet")
	got := fetch(t, open(t, sources.Config{URL: u.bare}))
	wantPaths(t, got, "a.yaml", "b.yaml")
	if len(got.Files[0].Data) != 5005 {
		t.Errorf("a.yaml has %d bytes, want 5005", len(got.Files[0].Data))
	}
}

// While Git writes a branch or a tag, its new place is in a file next to it, empty at first.
func TestFetchBesideAGitThatWrites(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	for _, name := range []string{"HEAD.lock", "packed-refs.lock", "refs/heads/main.lock", "refs/heads/other.lock", "refs/tags/v1.lock"} {
		write(t, filepath.Join(u.bare, name), "")
	}
	wantPaths(t, fetch(t, open(t, sources.Config{URL: u.bare})), "a.yaml")
}

func TestFetchOfAPathWithoutYAMLIsAValidSnapshot(t *testing.T) {
	everyWay(t, map[string]string{"clusters/README.md": "none yet"}, func(t *testing.T, _ *upstream, open opener) {
		got := fetch(t, open(t, sources.Config{Path: "clusters"}))
		wantPaths(t, got)
		if got.Commit == "" || got.Tree == "" {
			t.Errorf("got %+v, want commit and tree", got)
		}
	})
}

func TestUnchangedHeadCostsOneRequest(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv := serve(t, u)
	repo := open(t, sources.Config{URL: srv.repo()})
	for range 3 {
		wantPaths(t, fetch(t, repo), "a.yaml")
	}
	// What the server can do, the branch and its files; then the branch twice.
	if lists, posts := srv.lists.Load(), srv.posts.Load(); lists != 1 || posts != 4 {
		t.Errorf("three fetches made %d and %d requests, want 1 and 4", lists, posts)
	}
}

func TestNewCommitIsSeen(t *testing.T) {
	everyWay(t, map[string]string{"a.yaml": "one"}, func(t *testing.T, u *upstream, open opener) {
		repo := open(t, sources.Config{})
		fetch(t, repo)
		commit := u.commit("change", map[string]string{"a.yaml": "two"})
		got := fetch(t, repo)
		if got.Commit != commit || string(got.Files[0].Data) != "two" {
			t.Errorf("got commit %s with %q, want %s with two", got.Commit, got.Files[0].Data, commit)
		}
	})
}

func TestRewrittenHistoryIsSeen(t *testing.T) {
	everyWay(t, map[string]string{"a.yaml": "one"}, func(t *testing.T, u *upstream, open opener) {
		repo := open(t, sources.Config{})
		fetch(t, repo)
		u.git(u.work, "commit", "--quiet", "--amend", "--message", "other")
		u.git(u.work, "push", "--quiet", "--force", "origin", "main")
		if got := fetch(t, repo); got.Subject != "other" {
			t.Errorf("got %q", got.Subject)
		}
	})
}

func TestCommitElsewhereChangesCommitButNotTree(t *testing.T) {
	everyWay(t, map[string]string{"clusters/a.yaml": "a"}, func(t *testing.T, u *upstream, open opener) {
		repo := open(t, sources.Config{Path: "clusters"})
		before := fetch(t, repo)
		u.commit("docs", map[string]string{"docs/guide.md": "words"})
		after := fetch(t, repo)
		if after.Commit == before.Commit || after.Tree != before.Tree {
			t.Errorf("commit %s to %s, tree %s to %s", before.Commit, after.Commit, before.Tree, after.Tree)
		}
		wantPaths(t, after, "clusters/a.yaml")
	})
}

func TestEmptyRepositoryIsAnError(t *testing.T) {
	everyWay(t, nil, func(t *testing.T, _ *upstream, open opener) {
		repo := open(t, sources.Config{})
		err := refused(t, repo, sources.ErrEmptyRepository, "fetch branch main of ", "push the branch")
		if !errors.Is(err, sources.ErrBranchGone) {
			t.Errorf("%v is not ErrBranchGone", err)
		}
	})
}

func TestMissingBranchIsAnError(t *testing.T) {
	everyWay(t, map[string]string{"a.yaml": "a"}, func(t *testing.T, _ *upstream, open opener) {
		repo := open(t, sources.Config{Branch: "release"})
		err := refused(t, repo, sources.ErrBranchGone, "no branch release")
		if errors.Is(err, sources.ErrEmptyRepository) {
			t.Errorf("%v is ErrEmptyRepository", err)
		}
	})
}

func TestDeletedBranchIsAnErrorUntilItIsBack(t *testing.T) {
	everyWay(t, map[string]string{"a.yaml": "a"}, func(t *testing.T, u *upstream, open opener) {
		repo := open(t, sources.Config{})
		before := fetch(t, repo)
		u.git(u.bare, "update-ref", "-d", "refs/heads/main")
		refused(t, repo, sources.ErrBranchGone)
		u.git(u.work, "push", "--quiet", "origin", "main")
		if after := fetch(t, repo); after.Commit != before.Commit || len(after.Files) != 1 {
			t.Errorf("got %+v", after)
		}
	})
}

func TestTagOfTheSameNameIsNotTheBranch(t *testing.T) {
	everyWay(t, map[string]string{"a.yaml": "a"}, func(t *testing.T, u *upstream, open opener) {
		u.git(u.work, "tag", "v1")
		u.git(u.work, "push", "--quiet", "origin", "v1")
		refused(t, open(t, sources.Config{Branch: "v1"}), sources.ErrBranchGone)
	})
}

func TestPathThatIsGoneIsAnError(t *testing.T) {
	everyWay(t, map[string]string{"clusters/a.yaml": "a", "other.yaml": "o"}, func(t *testing.T, u *upstream, open opener) {
		repo := open(t, sources.Config{Path: "clusters"})
		fetch(t, repo)
		u.git(u.work, "rm", "--quiet", "-r", "clusters")
		commit := u.push("remove")
		refused(t, repo, sources.ErrPathGone, "path clusters does not exist in commit "+commit)
	})
}

// 141: what is followed is a directory of the repository itself.
func TestPathThatIsNoDirectoryIsAnError(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"real/a.yaml": "a", "file": "words"})
	if err := os.Symlink("real", filepath.Join(u.work, "link")); err != nil {
		t.Fatal(err)
	}
	u.git(u.work, "update-index", "--add", "--cacheinfo", "160000,"+u.git(u.work, "rev-parse", "HEAD")+",module")
	u.git(u.work, "add", "link")
	u.push("odd entries")
	for path, says := range map[string]string{
		"file":      "file in path file is a file",
		"link":      "link in path link is a symbolic link",
		"link/deep": "link in path link/deep is a symbolic link",
		"module":    "module in path module is a submodule",
		"real/none": "path real/none does not exist",
	} {
		refused(t, open(t, sources.Config{URL: u.bare, Path: path}), sources.ErrPathGone, says)
	}
}

func TestMissingRepositoryIsAnErrorUntilItIsBack(t *testing.T) {
	everyWay(t, map[string]string{"a.yaml": "a"}, func(t *testing.T, u *upstream, open opener) {
		repo := open(t, sources.Config{})
		fetch(t, repo)
		away := filepath.Join(t.TempDir(), "away")
		move(t, u.bare, away)
		refused(t, repo, sources.ErrRepositoryNotFound, "etcd.git")
		move(t, away, u.bare)
		wantPaths(t, fetch(t, repo), "a.yaml")
	})
}

func move(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestDirectoryThatIsNoRepositoryIsAnError(t *testing.T) {
	refused(t, open(t, sources.Config{URL: t.TempDir()}), sources.ErrRepositoryNotFound)
}

// 141: nothing leads out of the repository, or to another one.
func TestSymlinksAndSubmodulesAreSkipped(t *testing.T) {
	everyWay(t, map[string]string{"clusters/a.yaml": "a"}, func(t *testing.T, u *upstream, open opener) {
		for name, target := range map[string]string{"clusters/passwd.yaml": "/etc/passwd", "clusters/up": ".."} {
			if err := os.Symlink(target, filepath.Join(u.work, name)); err != nil {
				t.Fatal(err)
			}
		}
		u.git(u.work, "add", "--all")
		u.git(u.work, "update-index", "--add", "--cacheinfo", "160000,"+u.git(u.work, "rev-parse", "HEAD")+",clusters/module")
		u.push("links")
		got := fetch(t, open(t, sources.Config{Path: "clusters"}))
		wantPaths(t, got, "clusters/a.yaml")
		wantSkipped(t, got,
			"clusters/module: submodule, which is never followed",
			"clusters/passwd.yaml: symbolic link, which is never followed",
			"clusters/up: symbolic link, which is never followed")
	})
}

func TestLimitsAreErrors(t *testing.T) {
	files := map[string]string{"a.yaml": "12345", "b.yaml": "12345", "c.md": strings.Repeat("x", 100), "d/e/f.yaml": ""}
	for name, tc := range map[string]struct {
		limits sources.Limits
		says   string
	}{
		"too many files":   {sources.Limits{Files: 2}, "more than 2 YAML files"},
		"too many bytes":   {sources.Limits{TotalBytes: 9, FileBytes: 400}, "split it, or read less with --path"},
		"too many entries": {sources.Limits{Objects: 5}, "5"},
	} {
		t.Run(name, func(t *testing.T) {
			everyWay(t, files, func(t *testing.T, _ *upstream, open opener) {
				refused(t, open(t, sources.Config{Limits: tc.limits}), sources.ErrTooLarge, tc.says)
			})
		})
	}
}

// One file that is too large is named, and hides no other.
func TestOversizedFileIsNamed(t *testing.T) {
	everyWay(t, map[string]string{"a.yaml": "a", "big.yaml": strings.Repeat("x", 2<<20), "c.yaml": "c"}, func(t *testing.T, _ *upstream, open opener) {
		got := fetch(t, open(t, sources.Config{}))
		wantPaths(t, got, "a.yaml", "big.yaml", "c.yaml")
		wantUnread(t, got, "big.yaml", "more than 1048576 bytes, the most that is read: split it")
	})
}

// wantUnread wants one file, and no other, to be without its content, for a reason.
func wantUnread(t *testing.T, s sources.Snapshot, path, why string) {
	t.Helper()
	for _, f := range s.Files {
		if is := f.Path == path; is != (f.Data == nil) || is != (f.Unread != "") || is && !strings.Contains(f.Unread, why) {
			t.Errorf("%s has %d bytes, and is not read because %q", f.Path, len(f.Data), f.Unread)
		}
	}
}

// Files that are not read count as files.
func TestOversizedFilesAreNotWithoutEnd(t *testing.T) {
	large := strings.Repeat("x", 1001)
	files := map[string]string{"a.yaml": large, "b.yaml": large, "c.yaml": large}
	overSome(t, files, func(t *testing.T, _ *upstream, open opener) {
		refused(t, open(t, sources.Config{Limits: sources.Limits{FileBytes: 1000, Files: 2}}), sources.ErrTooLarge, "more than 2 YAML files")
	})
}

func TestServerThatFiltersLeavesOutLargeFiles(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a", "image.bin": strings.Repeat("x", 2<<20)})
	u.git(u.bare, "config", "uploadpack.allowFilter", "true")
	limits := sources.Limits{UnpackedBytes: 1 << 20}
	repo := open(t, sources.Config{URL: serve(t, u).repo(), Limits: limits})
	wantPaths(t, fetch(t, repo), "a.yaml")

	u.commit("too large", map[string]string{"big.yaml": strings.Repeat("y", 2<<20)})
	got := fetch(t, repo)
	wantPaths(t, got, "a.yaml", "big.yaml")
	wantUnread(t, got, "big.yaml", "more than 1048576 bytes")

	u.commit("as large as may be", map[string]string{"big.yaml": strings.Repeat("y", 1<<10)})
	limits.FileBytes = 1 << 10
	repo = open(t, sources.Config{URL: serve(t, u).repo(), Limits: limits})
	wantPaths(t, fetch(t, repo), "a.yaml", "big.yaml")
}

func TestPackThatUnpacksToTooMuchIsRefusedWithLittleMemory(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	zeros, err := os.Create(filepath.Join(u.work, "zeros"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(zeros.Truncate(64<<20), zeros.Close()); err != nil {
		t.Fatal(err)
	}
	u.commit("bomb", nil)
	repo := open(t, sources.Config{URL: serve(t, u).repo(), Limits: sources.Limits{UnpackedBytes: 32 << 20}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	refused(t, repo, sources.ErrTooLarge, "unpacks to more than 33554432 bytes")
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("the refusal allocated %d bytes", used)
	}
}

func TestPackThatIsTooLargeIsRefused(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	noise := make([]byte, 64<<10)
	state := uint32(1)
	for i := range noise { // xorshift: compresses to nothing smaller
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		noise[i] = byte(state)
	}
	u.commit("noise", map[string]string{"noise": string(noise)})
	repo := open(t, sources.Config{URL: serve(t, u).repo(), Limits: sources.Limits{PackBytes: 32 << 10}})
	refused(t, repo, sources.ErrTooLarge, "more than 32768 bytes for one commit")
}

// A tree of a few hundred bytes, ten times in itself ten levels deep, has ten
// billion files.
func TestTreesThatRepeatAreNotWalkedWithoutEnd(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	tree := u.git(u.work, "rev-parse", "HEAD^{tree}")
	for range 10 {
		var list strings.Builder
		for i := range 10 {
			fmt.Fprintf(&list, "040000 tree %s\td%d\n", tree, i)
		}
		write(t, filepath.Join(u.root, "list"), list.String())
		tree = u.git(u.work, "-c", "alias.mk=!git mktree <"+filepath.Join(u.root, "list"), "mk")
	}
	commit := u.git(u.work, "commit-tree", "-m", "bomb", tree)
	u.git(u.work, "push", "--quiet", "--force", "origin", commit+":refs/heads/main")
	for _, url := range []string{u.bare, serve(t, u).repo()} {
		repo := open(t, sources.Config{URL: url, Limits: sources.Limits{Files: 200}})
		refused(t, repo, sources.ErrTooLarge, "more than 200 YAML files")
	}
}

func TestDeepNestingIsRefused(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{strings.Repeat("d/", 300) + "a.yaml": "a"})
	refused(t, open(t, sources.Config{URL: u.bare}), sources.ErrTooLarge, "nested more than 256 directories deep")
}

func TestCallerThatGoesAwayStopsTheFetch(t *testing.T) {
	everyWay(t, map[string]string{"a.yaml": "a"}, func(t *testing.T, _ *upstream, open opener) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		snapshot, err := open(t, sources.Config{}).Fetch(ctx)
		wantRefusal(t, snapshot, err, context.Canceled, "stopped by the caller")
		if errors.Is(err, sources.ErrUnreachable) {
			t.Errorf("%v is ErrUnreachable, but no server was asked", err)
		}
	})
}

func TestFetchesMayRunTogether(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	repo := open(t, sources.Config{URL: serve(t, u).repo()})
	done := make(chan error)
	for range 4 {
		go func() {
			_, err := repo.Fetch(t.Context())
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestDamagedRepositoryIsAnError(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	blob := u.git(u.work, "rev-parse", "HEAD:a.yaml")
	if err := os.Remove(filepath.Join(u.bare, "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	refused(t, open(t, sources.Config{URL: u.bare}), sources.ErrUnreachable, "file a.yaml cannot be read", "git fsck")
	refused(t, open(t, sources.Config{URL: serve(t, u).repo()}), sources.ErrUnreachable)
}

func BenchmarkFetch2000Files(b *testing.B) {
	files := map[string]string{}
	for i := range 2000 {
		files[fmt.Sprintf("clusters/team-%d/cluster-%d.yaml", i%50, i)] = fmt.Sprintf("kind: EtcdCluster\nname: c%d\n", i)
	}
	u := newUpstreamWith(b, files)
	for name, url := range map[string]string{"path": u.bare, "http": serve(b, u).repo()} {
		b.Run("changed/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fetch(b, open(b, sources.Config{URL: url, Path: "clusters"}))
			}
		})
		b.Run("unchanged/"+name, func(b *testing.B) {
			repo := open(b, sources.Config{URL: url, Path: "clusters"})
			fetch(b, repo)
			b.ReportAllocs()
			for b.Loop() {
				fetch(b, repo)
			}
		})
	}
}
