// Package cmdtest is what the tests of the packages below cmd/quorate share: Git
// repositories, statuses, and a way to wait.
package cmdtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repository is a real Git repository, with the branch main, that ends with the test.
type Repository struct {
	*testing.T
	Dir string
}

// NewRepository makes an empty one.
func NewRepository(t *testing.T) *Repository {
	t.Helper()
	r := &Repository{T: t, Dir: t.TempDir()}
	r.Git("init", "--quiet", "--initial-branch=main")
	return r
}

// Git runs git in the repository, and returns what it prints.
func (r *Repository) Git(args ...string) string {
	r.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.Dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Commit commits one file.
func (r *Repository) Commit(path, content string) {
	r.Helper()
	path = filepath.Join(r.Dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		r.Fatal(err)
	}
	r.Git("add", "--all")
	r.Git("commit", "--quiet", "-m", "Change "+filepath.Base(path))
}

// Head is the hash of the newest commit.
func (r *Repository) Head() string {
	r.Helper()
	return r.Git("rev-parse", "HEAD")
}

// Away takes the repository away until back is called.
func (r *Repository) Away() (back func()) {
	r.Helper()
	move := func(from, to string) {
		r.Helper()
		if err := os.Rename(from, to); err != nil {
			r.Fatal(err)
		}
	}
	move(r.Dir, r.Dir+".away")
	return func() { move(r.Dir+".away", r.Dir) }
}
