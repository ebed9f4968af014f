package sources_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quorate/quorate/sources"
	"github.com/quorate/quorate/test/needs"
)

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		write(t, filepath.Join(dir, name), content)
	}
	return dir
}

func readPaths(t *testing.T, paths ...string) sources.Snapshot {
	t.Helper()
	snapshot, err := sources.ReadPaths(t.Context(), paths, sources.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func symlink(t *testing.T, target, link string) {
	t.Helper()
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
}

func TestReadPathsReadsDirectoriesAndFiles(t *testing.T) {
	t.Chdir(tree(t, map[string]string{
		"clusters/b.yml": "b", "clusters/x/a.yaml": "a", "clusters/README.md": "words",
		"single.yaml": "single", "unasked.yaml": "no",
	}))
	got := readPaths(t, "clusters/", "./single.yaml")
	wantPaths(t, got, "clusters/b.yml", "clusters/x/a.yaml", "single.yaml")
	if string(got.Files[1].Data) != "a" || got.Commit != "" || got.Tree != "" {
		t.Errorf("got %+v", got)
	}
}

func TestReadPathsOfTheCurrentDirectoryGivesPlainNames(t *testing.T) {
	t.Chdir(tree(t, map[string]string{"a.yaml": "a", "x/b.yaml": "b"}))
	wantPaths(t, readPaths(t, "."), "a.yaml", "x/b.yaml")
}

func TestReadPathsTakesOverlappingPathsOnce(t *testing.T) {
	t.Chdir(tree(t, map[string]string{"clusters/a.yaml": "a"}))
	got := readPaths(t, "clusters/a.yaml", "clusters", ".", "./clusters//a.yaml")
	wantPaths(t, got, "clusters/a.yaml")
}

func TestReadPathsNamesTheFilesItDoesNotRead(t *testing.T) {
	dir := tree(t, map[string]string{"a.yaml": "a", "notes.md": "words"})
	t.Chdir(dir)
	wantSkipped(t, readPaths(t, "a.yaml", "notes.md"), "notes.md: neither .yaml nor .yml")
}

// 141: nor are links followed among local files.
func TestReadPathsFollowsNoLinkInsideADirectory(t *testing.T) {
	outside := tree(t, map[string]string{"secret.yaml": "secret"})
	t.Chdir(tree(t, map[string]string{"in/a.yaml": "a"}))
	symlink(t, filepath.Join(outside, "secret.yaml"), "in/file.yaml")
	symlink(t, outside, "in/dir")
	symlink(t, "a.yaml", "in/inside.yaml")
	got := readPaths(t, "in")
	wantPaths(t, got, "in/a.yaml")
	wantSkipped(t, got,
		"in/dir: symbolic link, which is never followed",
		"in/file.yaml: symbolic link, which is never followed",
		"in/inside.yaml: symbolic link, which is never followed")
}

func TestReadPathsFollowsALinkThatIsItselfAskedFor(t *testing.T) {
	outside := tree(t, map[string]string{"real.yaml": "real", "dir/b.yaml": "b"})
	t.Chdir(t.TempDir())
	symlink(t, filepath.Join(outside, "real.yaml"), "link.yaml")
	symlink(t, filepath.Join(outside, "dir"), "dir")
	wantPaths(t, readPaths(t, "link.yaml", "dir"), "dir/b.yaml", "link.yaml")
}

func TestReadPathsLeavesOutGitAndNestedRepositories(t *testing.T) {
	t.Chdir(tree(t, map[string]string{
		"a.yaml": "a", ".git/config.yaml": "no", "module/.git": "gitdir: elsewhere", "module/b.yaml": "no",
	}))
	got := readPaths(t, ".")
	wantPaths(t, got, "a.yaml")
	wantSkipped(t, got, "module: another Git repository, which is never followed")
}

func TestReadPathsDoesNotWaitAtANamedPipe(t *testing.T) {
	t.Chdir(tree(t, map[string]string{"a.yaml": "a"}))
	if err := syscall.Mkfifo("pipe.yaml", 0o644); err != nil {
		needs.Skip(t, "this file system has no named pipes: %v", err)
	}
	got := readPaths(t, ".", "pipe.yaml")
	wantPaths(t, got, "a.yaml")
	wantSkipped(t, got, "pipe.yaml: not a regular file", "pipe.yaml: not a regular file")
}

func TestReadPathsRefusals(t *testing.T) {
	dir := tree(t, map[string]string{"a.yaml": "12345", "b/c.yaml": "12345", "d.md": "words"})
	for name, tc := range map[string]struct {
		path   string
		limits sources.Limits
		kind   error
		says   string
	}{
		"missing path":     {filepath.Join(dir, "none"), sources.Limits{}, sources.ErrPathGone, "none: it does not exist"},
		"too many files":   {dir, sources.Limits{Files: 1}, sources.ErrTooLarge, "more than 1 YAML files"},
		"too many bytes":   {dir, sources.Limits{TotalBytes: 9}, sources.ErrTooLarge, "more than 9 bytes together"},
		"too many entries": {dir, sources.Limits{Objects: 3}, sources.ErrTooLarge, "more than 3 files and directories"},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, err := sources.ReadPaths(t.Context(), []string{tc.path}, tc.limits)
			wantRefusal(t, snapshot, err, tc.kind, "read "+tc.path, tc.says)
		})
	}
}

func TestReadPathsNamesAFileThatIsTooLarge(t *testing.T) {
	t.Chdir(tree(t, map[string]string{"a.yaml": "12345", "b/c.yaml": "1234"}))
	got, err := sources.ReadPaths(t.Context(), []string{".", "a.yaml"}, sources.Limits{FileBytes: 4})
	if err != nil {
		t.Fatal(err)
	}
	wantPaths(t, got, "a.yaml", "b/c.yaml")
	wantUnread(t, got, "a.yaml", "more than 4 bytes")
}

func TestReadPathsEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	snapshot, err := sources.ReadPaths(ctx, []string{t.TempDir()}, sources.Limits{})
	wantRefusal(t, snapshot, err, context.Canceled)
}

func TestReadPathsAndFetchAgree(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a", "b/c.yml": "c", "b/d.txt": "d", "b-e.yaml": "e", ".github/f.yaml": "f"})
	symlink(t, "a.yaml", filepath.Join(u.work, "link.yaml"))
	u.commit("link", nil)
	t.Chdir(u.work)
	fromGit, fromDisk := fetch(t, open(t, sources.Config{URL: u.bare})), readPaths(t, ".")
	wantPaths(t, fromDisk, paths(fromGit)...)
	wantSkipped(t, fromDisk, fromGit.Skipped...)
	if !strings.HasPrefix(fromGit.Files[0].Path, ".github/") {
		t.Errorf("got %q first", fromGit.Files[0].Path)
	}
}
