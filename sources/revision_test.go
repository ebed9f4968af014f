package sources_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/sources"
)

// history is a working tree with two commits, in which the test then stands:
// clusters/a.yaml says "one" in the first, which is tagged, and "two" in the
// second.
func history(t *testing.T) *upstream {
	t.Helper()
	u := newUpstreamWith(t, map[string]string{
		"clusters/a.yaml": "one", "clusters/x/b.yml": "b", "clusters/README.md": "words", "other/c.yaml": "c",
	})
	u.git(u.work, "tag", "light")
	u.git(u.work, "tag", "--annotate", "--message", "first", "v1")
	u.git(u.work, "branch", "feature/x")
	u.commit("second", map[string]string{"clusters/a.yaml": "two"})
	u.git(u.root, "-C", u.bare, "config", "uploadpack.allowFilter", "true")
	t.Chdir(u.work)
	return u
}

// clone clones with the given options, and goes there.
func clone(t *testing.T, u *upstream, options ...string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	u.git(u.root, append(append([]string{"clone", "--quiet"}, options...), "file://"+u.bare, dir)...)
	t.Chdir(dir)
}

func readRevision(t *testing.T, revision string, paths ...string) sources.Snapshot {
	t.Helper()
	snapshot, err := sources.ReadRevision(t.Context(), paths, revision, sources.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// wantContent wants one file with the given content.
func wantContent(t *testing.T, s sources.Snapshot, want string) {
	t.Helper()
	if len(s.Files) != 1 || string(s.Files[0].Data) != want {
		t.Fatalf("got %q, want one file that says %q", s.Files, want)
	}
}

func TestReadRevisionTakesEveryCommonForm(t *testing.T) {
	u := history(t)
	first, second := u.git(u.work, "rev-parse", "v1^{commit}"), u.git(u.work, "rev-parse", "HEAD")
	for commit, revisions := range map[string][]string{
		first: {
			"HEAD~1", "HEAD~", "HEAD^", "HEAD^1", "@~1", "origin/main~1", "v1", "v1^{}", "light", "feature/x",
			first, first[:7], first[:8], strings.ToUpper(first[:7]), second[:7] + "~1",
		},
		second: {"HEAD", "@", "main", "origin/main", "refs/heads/main", "main~0", "main^{commit}", second},
	} {
		for _, revision := range revisions {
			t.Run(revision, func(t *testing.T) {
				got := readRevision(t, revision, "clusters/a.yaml")
				wantContent(t, got, map[string]string{first: "one", second: "two"}[commit])
				if got.Commit != commit {
					t.Errorf("got commit %s, want %s", got.Commit, commit)
				}
			})
		}
	}
}

// What go-git reads as something else, or as nothing, would compare with the
// wrong commit and find nothing wrong.
func TestReadRevisionRefusesWhatItDoesNotUnderstand(t *testing.T) {
	history(t)
	for _, revision := range []string{
		"", " ", "HEAD@{1}", "@{u}", "main:clusters", ":/second", "HEAD^{/first}", "HEAD^{tree}", "main..feature/x", "main...feature/x", "^main", "HEAD^3", "ma in",
	} {
		t.Run(revision, func(t *testing.T) {
			snapshot, err := sources.ReadRevision(t.Context(), []string{"clusters"}, revision, sources.Limits{})
			wantRefusal(t, snapshot, err, sources.ErrBranchGone, "read revision "+revision, "not the form of a revision; write a branch, a remote branch such as origin/main")
		})
	}
}

func TestReadRevisionRefusesAnAbbreviationBelowFourDigits(t *testing.T) {
	u := history(t)
	short := u.git(u.work, "rev-parse", "HEAD")[:3]
	snapshot, err := sources.ReadRevision(t.Context(), []string{"clusters"}, short, sources.Limits{})
	wantRefusal(t, snapshot, err, sources.ErrBranchGone, "it is not known here")
}

// A year is a fine tag, and may well be how some commit's hash begins.
func TestReadRevisionTakesATagBeforeAnAbbreviatedHash(t *testing.T) {
	u := history(t)
	u.git(u.work, "tag", u.git(u.work, "rev-parse", "HEAD")[:4], "HEAD~1")
	wantContent(t, readRevision(t, u.git(u.work, "rev-parse", "HEAD")[:4], "clusters/a.yaml"), "one")
}

func TestReadRevisionRefusesAnAbbreviationOfTwoCommits(t *testing.T) {
	u := history(t)
	tree := u.git(u.work, "rev-parse", "HEAD^{tree}")
	known := map[string]bool{}
	for n := 0; ; n++ {
		hash := u.git(u.work, "commit-tree", "-m", fmt.Sprint(n), tree)
		if known[hash[:4]] {
			snapshot, err := sources.ReadRevision(t.Context(), []string{"."}, hash[:4], sources.Limits{})
			wantRefusal(t, snapshot, err, sources.ErrBranchGone, "2 commits begin with "+hash[:4]+"; write more of the hash")
			return
		}
		known[hash[:4]] = true
	}
}

func TestReadRevisionSaysHowToMakeItKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		options  []string
		revision string
		says     string
	}{
		"no such name":              {nil, "nope", "it is not known here; `git branch -a`, `git tag` and `git log` list what there is"},
		"no such commit":            {nil, strings.Repeat("deadbeef", 5), "it is not known here; `git branch -a`"},
		"too short for a hash":      {nil, "abc", "it is not known here"},
		"before the first":          {nil, "HEAD~9", "there is no such commit here; `git branch -a`"},
		"no merge":                  {nil, "HEAD^2", "there is no such commit here"},
		"a branch of the remote":    {nil, "later", "it is not known here; did you mean origin/later?"},
		"a new branch":              {nil, "origin/new", "it is not known here; run `git fetch origin new`, or in GitHub Actions give actions/checkout fetch-depth: 0"},
		"with steps":                {nil, "origin/a/b~2", "run `git fetch origin a/b`, or"},
		"a clone of one branch":     {[]string{"--single-branch", "--branch=main"}, "origin/later", "run `git fetch origin later:refs/remotes/origin/later`, or"},
		"an older commit, shallow":  {[]string{"--depth=1"}, "HEAD~1", "this clone is shallow: run `git fetch --unshallow --tags`, or in GitHub Actions give actions/checkout fetch-depth: 0"},
		"a tag, shallow":            {[]string{"--depth=1"}, "v1", "this clone is shallow: run `git fetch --unshallow --tags`"},
		"an unknown branch, remote": {[]string{"--depth=1"}, "origin/later", "run `git fetch origin later:refs/remotes/origin/later`"},
		"files left out":            {[]string{"--filter=blob:none"}, "HEAD~1", "this is a partial clone, which left files out: clone without --filter"},
	} {
		t.Run(name, func(t *testing.T) {
			u := history(t)
			u.git(u.work, "push", "--quiet", "origin", "v1", "HEAD~1:refs/heads/later")
			clone(t, u, tc.options...)
			snapshot, err := sources.ReadRevision(t.Context(), []string{"clusters"}, tc.revision, sources.Limits{})
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got %+v and error %v, want %q", snapshot, err, tc.says)
			}
		})
	}
}

// The commands that the messages tell people to run do help.
func TestReadRevisionKnowsWhatItsAdviceFetches(t *testing.T) {
	for name, tc := range map[string]struct{ option, revision, advice string }{
		"one branch": {"--single-branch", "origin/later", "git fetch origin later:refs/remotes/origin/later"},
		"shallow":    {"--depth=1", "HEAD~1", "git fetch --unshallow --tags"},
	} {
		t.Run(name, func(t *testing.T) {
			u := history(t)
			u.git(u.work, "push", "--quiet", "origin", "HEAD~1:refs/heads/later")
			clone(t, u, tc.option)
			_, err := sources.ReadRevision(t.Context(), []string{"clusters"}, tc.revision, sources.Limits{})
			if err == nil || !strings.Contains(err.Error(), "`"+tc.advice+"`") {
				t.Fatalf("got error %v, want %q", err, tc.advice)
			}
			u.git(".", strings.Fields(tc.advice)[1:]...)
			wantContent(t, readRevision(t, tc.revision, "clusters/a.yaml"), "one")
		})
	}
}

func TestReadRevisionNamesFilesAsReadPathsDoes(t *testing.T) {
	u := history(t)
	symlink(t, "a.yaml", "clusters/link.yaml")
	u.commit("link", nil)
	outside := t.TempDir()
	symlink(t, filepath.Join(u.work, "clusters"), filepath.Join(outside, "in"))
	symlink(t, filepath.Join(u.work, "clusters/a.yaml"), filepath.Join(outside, "in.yaml"))
	for name, tc := range map[string]struct {
		from  string
		paths []string
	}{
		"directory":           {u.work, []string{"clusters"}},
		"with a slash":        {u.work, []string{"./clusters/"}},
		"whole tree":          {u.work, []string{"."}},
		"whole tree, by name": {u.work, []string{u.work}},
		"absolute":            {filepath.Join(u.work, "other"), []string{filepath.Join(u.work, "clusters")}},
		"below":               {filepath.Join(u.work, "clusters"), []string{"."}},
		"above":               {filepath.Join(u.work, "clusters/x"), []string{"..", "../../other"}},
		"beside":              {filepath.Join(u.work, "other"), []string{"../clusters/x"}},
		"files":               {u.work, []string{"other/c.yaml", "clusters/a.yaml", "clusters/README.md"}},
		"overlapping":         {u.work, []string{"clusters/a.yaml", "clusters", "clusters//x"}},
		"a link from outside": {outside, []string{"in"}},
		"a link to a file":    {outside, []string{"in.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(tc.from)
			disk, got := readPaths(t, tc.paths...), readRevision(t, "HEAD", tc.paths...)
			wantPaths(t, got, paths(disk)...)
			wantSkipped(t, got, disk.Skipped...)
			if len(got.Files) == 0 {
				t.Error("read nothing")
			}
		})
	}
}

func TestReadRevisionReadsWhatIsNoLongerOnDisk(t *testing.T) {
	history(t)
	if err := os.RemoveAll("clusters"); err != nil {
		t.Fatal(err)
	}
	wantPaths(t, readRevision(t, "HEAD", "clusters"), "clusters/a.yaml", "clusters/x/b.yml")
	wantPaths(t, readRevision(t, "HEAD", "clusters/x/b.yml", "clusters/x"), "clusters/x/b.yml")
}

func TestReadRevisionOfWhatIsNotThereYetIsEmpty(t *testing.T) {
	u := history(t)
	write(t, "new/d.yaml", "d")
	u.commit("third", nil)
	for _, path := range []string{"new", "new/d.yaml", "none/at/all", "clusters/README.md/x"} {
		got := readRevision(t, "v1", path)
		if len(got.Files) != 0 || got.Tree != "" || got.Commit == "" || got.Subject != "start" {
			t.Errorf("%s: got %+v", path, got)
		}
	}
	got := readRevision(t, "v1", "new", "clusters")
	if wantPaths(t, got, "clusters/a.yaml", "clusters/x/b.yml"); got.Tree == "" {
		t.Error("one path that is not there makes the revision look empty")
	}
}

// Something is there, and a comparison that takes it for nothing would pass.
func TestReadRevisionRefusesLinksAndSubmodulesOnTheWay(t *testing.T) {
	u := history(t)
	symlink(t, "clusters", "link")
	u.git(u.work, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", u.bare, "module")
	u.commit("links", nil)
	wantContent(t, readRevision(t, "HEAD~1", "module/clusters/a.yaml"), "one") // in the module's own history
	clone(t, u)
	if err := os.Remove("link"); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		"link":            "link is a symbolic link there, which is never followed; give the path",
		"link/a.yaml":     "link is a symbolic link there",
		"module":          "module is a submodule there",
		"module/clusters": "module is a submodule there",
	} {
		t.Run(path, func(t *testing.T) {
			snapshot, err := sources.ReadRevision(t.Context(), []string{path}, "HEAD", sources.Limits{})
			wantRefusal(t, snapshot, err, sources.ErrPathGone, "read revision HEAD: "+says)
		})
	}
}

func TestReadRevisionReadsLinkedWorkingTrees(t *testing.T) {
	u := history(t)
	dir := filepath.Join(t.TempDir(), "linked")
	u.git(u.work, "worktree", "add", "--quiet", dir, "light")
	t.Chdir(dir)
	wantContent(t, readRevision(t, "HEAD", "clusters/a.yaml"), "one")
	wantContent(t, readRevision(t, "main", "clusters/a.yaml"), "two")
	wantContent(t, readRevision(t, "origin/main", "clusters/a.yaml"), "two")
}

func TestReadRevisionRefusesRepositoriesThatItCannotRead(t *testing.T) {
	for name, tc := range map[string]struct {
		make func(u *upstream, dir string)
		kind error
		says string
	}{
		"none": {func(*upstream, string) {}, sources.ErrRepositoryNotFound, "clusters is in no Git repository; give a path in a clone of one"},
		"bare": {
			func(u *upstream, dir string) { u.git(dir, "init", "--quiet", "--bare") },
			sources.ErrRepositoryNotFound, "clusters is in a bare repository, which has no work tree; give a path in a clone of it",
		},
		"SHA-256": {
			func(u *upstream, dir string) { u.git(dir, "init", "--quiet", "--object-format=sha256") },
			sources.ErrUnreachable, "names its objects by SHA-256, which quorate cannot read; use a clone with SHA-1",
		},
		"an unknown extension": {
			func(u *upstream, dir string) {
				u.git(dir, "init", "--quiet")
				u.git(dir, "config", "core.repositoryFormatVersion", "1")
				write(u.tb, filepath.Join(dir, ".git/config"), "[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\trefStorage = odd\n")
			},
			sources.ErrUnreachable, "cannot be opened (unknown extension: refstorage); see whether `git status` works there",
		},
		"a dangling .git": {
			func(u *upstream, dir string) { write(u.tb, filepath.Join(dir, ".git"), "gitdir: /nowhere\n") },
			sources.ErrRepositoryNotFound, "is not a Git repository; clone it again",
		},
		"no commits": {
			func(u *upstream, dir string) { u.git(dir, "init", "--quiet") },
			sources.ErrBranchGone, "the repository has no commits yet; commit something first",
		},
		"borrowed objects": {
			func(u *upstream, dir string) {
				u.git(dir, "clone", "--quiet", "--shared", u.bare, "shared")
				u.tb.(*testing.T).Chdir(filepath.Join(dir, "shared"))
			},
			sources.ErrBranchGone, "this clone borrows from another one, which quorate does not read: run `git repack -a`",
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := history(t)
			u.tb = t
			t.Chdir(t.TempDir())
			tc.make(u, ".")
			if err := os.MkdirAll("clusters", 0o755); err != nil {
				t.Fatal(err)
			}
			snapshot, err := sources.ReadRevision(t.Context(), []string{"clusters"}, "HEAD~1", sources.Limits{})
			wantRefusal(t, snapshot, err, tc.kind, "read revision HEAD~1: ", tc.says)
		})
	}
}

func TestReadRevisionTakesPathsOfOneRepository(t *testing.T) {
	u := history(t)
	clone(t, u)
	snapshot, err := sources.ReadRevision(t.Context(), []string{"clusters", u.work}, "HEAD", sources.Limits{})
	wantRefusal(t, snapshot, err, sources.ErrRepositoryNotFound, u.work+" lies in the repository", "give the paths of one repository")
}

func TestReadRevisionKeepsTheLimitsAcrossPaths(t *testing.T) {
	u := history(t)
	u.commit("long", map[string]string{"clusters/a.yaml": strings.Repeat("a", 600), "other/c.yaml": strings.Repeat("c", 600)})
	for name, tc := range map[string]struct {
		limits sources.Limits
		says   string
	}{
		"files":   {sources.Limits{Files: 2}, "more than 2 YAML files"},
		"bytes":   {sources.Limits{TotalBytes: 1000}, "more than 1000 bytes together"},
		"entries": {sources.Limits{Objects: 2}, "more than 2 files and directories"},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, err := sources.ReadRevision(t.Context(), []string{"clusters", "other"}, "HEAD", tc.limits)
			wantRefusal(t, snapshot, err, sources.ErrTooLarge, tc.says)
		})
	}
	got, err := sources.ReadRevision(t.Context(), []string{"clusters", "clusters/a.yaml"}, "HEAD", sources.Limits{FileBytes: 500})
	if err != nil {
		t.Fatal(err)
	}
	wantPaths(t, got, "clusters/a.yaml", "clusters/x/b.yml")
	wantUnread(t, got, "clusters/a.yaml", "more than 500 bytes")
}

func TestReadRevisionEndsWithItsContext(t *testing.T) {
	history(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	snapshot, err := sources.ReadRevision(ctx, []string{"clusters"}, "HEAD", sources.Limits{})
	wantRefusal(t, snapshot, err, context.Canceled)
}
