package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// The repository that a GitServer serves, and its branch.
const (
	repositoryName = "etcd.git"
	// Branch is the branch that Commit commits to.
	Branch = "main"
)

// GitServer serves one repository with git http-backend, as a forge does. It is
// reached without authentication, for reading and writing.
type GitServer struct {
	dir, address string
	mu           sync.Mutex
	server       *http.Server
}

// StartGitServer makes an empty bare repository and serves it at host, on a port
// that is free.
func StartGitServer(ctx context.Context, host string) (*GitServer, error) {
	dir, err := os.MkdirTemp("", "quorate-git-")
	if err != nil {
		return nil, fmt.Errorf("directory of the Git server: %w", err)
	}
	s := &GitServer{dir: dir, address: net.JoinHostPort(host, "0")}
	if err := s.initialise(ctx); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	if err := s.Start(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

func (s *GitServer) initialise(ctx context.Context) error {
	if _, err := s.git(ctx, "", "init", "--quiet", "--bare", "--initial-branch="+Branch, s.bare()); err != nil {
		return err
	}
	if _, err := s.Git(ctx, "config", "http.receivepack", "true"); err != nil {
		return err
	}
	_, err := s.git(ctx, "", "clone", "--quiet", s.bare(), s.work())
	return err
}

func (s *GitServer) bare() string { return filepath.Join(s.dir, "served", s.path()) }
func (s *GitServer) work() string { return filepath.Join(s.dir, "work") }

// path is another one for each server: a port may be that of an earlier one, whose commits
// quorate remembers.
func (s *GitServer) path() string { return filepath.Base(s.dir) + "/" + repositoryName }

// URL is the repository's address.
func (s *GitServer) URL() string { return "http://" + s.address + "/" + s.path() }

// Start serves again after Stop, at the same address.
func (s *GitServer) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return nil
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return fmt.Errorf("serve Git: %w", err)
	}
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return fmt.Errorf("serve Git: %w", err)
	}
	s.address = listener.Addr().String()
	s.server = &http.Server{Handler: &cgi.Handler{
		Path: git,
		Args: []string{"http-backend"},
		Env:  append(gitEnvironment(), "GIT_PROJECT_ROOT="+filepath.Join(s.dir, "served"), "GIT_HTTP_EXPORT_ALL=1"),
	}}
	go func(server *http.Server) { _ = server.Serve(listener) }(s.server)
	return nil
}

// Stop makes the server unreachable; the repository stays.
func (s *GitServer) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		_ = s.server.Close()
		s.server = nil
	}
}

// Close stops the server and removes the repository.
func (s *GitServer) Close() {
	s.Stop()
	_ = os.RemoveAll(s.dir)
}

// Commit writes files, by their paths in the repository, and commits them to
// Branch. An empty text deletes the file. It returns the commit's hash.
func (s *GitServer) Commit(ctx context.Context, message string, files map[string]string) (string, error) {
	for path, text := range files {
		if err := s.write(filepath.Join(s.work(), filepath.FromSlash(path)), text); err != nil {
			return "", fmt.Errorf("commit %q: %w", message, err)
		}
	}
	for _, args := range [][]string{
		{"add", "--all"},
		{"commit", "--quiet", "--allow-empty", "--message=" + message},
		{"push", "--quiet", "origin", "HEAD:" + Branch},
	} {
		if _, err := s.git(ctx, s.work(), args...); err != nil {
			return "", fmt.Errorf("commit %q: %w", message, err)
		}
	}
	return s.git(ctx, s.work(), "rev-parse", "HEAD")
}

func (s *GitServer) write(path, text string) error {
	if text == "" {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// Clone makes a clone of the repository in dir, as a person has one: its origin
// takes what is pushed.
func (s *GitServer) Clone(ctx context.Context, dir string) error {
	_, err := s.git(ctx, "", "clone", "--quiet", "--branch="+Branch, s.bare(), dir)
	return err
}

// GitEnvironment is what git needs in its environment to commit in a clone.
func GitEnvironment() []string { return gitEnvironment() }

// ReadFile returns a file of the newest commit.
func (s *GitServer) ReadFile(path string) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.work(), filepath.FromSlash(path)))
	if err != nil {
		return "", fmt.Errorf("read from the repository: %w", err)
	}
	return string(text), nil
}

// Replace commits a file with one text in place of another, which must occur
// once.
func (s *GitServer) Replace(ctx context.Context, message, path, from, to string) (string, error) {
	text, err := s.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(text, from); n != 1 {
		return "", fmt.Errorf("commit %q: %s has %q %d times, want once", message, path, from, n)
	}
	return s.Commit(ctx, message, map[string]string{path: strings.Replace(text, from, to, 1)})
}

// DeleteBranch removes the branch from the served repository; the next Commit
// brings it back.
func (s *GitServer) DeleteBranch(ctx context.Context) error {
	_, err := s.Git(ctx, "update-ref", "-d", "refs/heads/"+Branch)
	return err
}

// Git runs git on the served repository, and returns what it prints.
func (s *GitServer) Git(ctx context.Context, args ...string) (string, error) {
	return s.git(ctx, s.bare(), args...)
}

// ReadTree reads a directory of this machine as files for Commit.
func ReadTree(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		files[path] = string(text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	return files, nil
}

func (s *GitServer) git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), gitEnvironment()...)
	text, err := output(cmd)
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return text, nil
}

// gitEnvironment makes git independent of the user that runs it and how it is configured.
func gitEnvironment() []string {
	return []string{
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Alex", "GIT_AUTHOR_EMAIL=alex@example.com",
		"GIT_COMMITTER_NAME=Alex", "GIT_COMMITTER_EMAIL=alex@example.com",
	}
}
