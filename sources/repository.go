package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// Config says what to watch.
type Config struct {
	// URL is an http or https URL, a file URL, or a local path. It must not
	// carry credentials.
	URL string
	// Branch is the name of the branch, without refs/heads/.
	Branch string
	// Path is the watched directory, relative to the root of the repository.
	// Empty or "." is the root itself.
	Path string
	// Auth is for http and https.
	Auth Auth
	// CAFile holds PEM certificates that are trusted besides the system's, for
	// https. It is read again for each fetch.
	CAFile string
	// Timeout bounds one fetch, besides its context. Default two minutes.
	Timeout time.Duration
	// Limits bound what is read.
	Limits Limits
}

// Repository is one watched path on one branch. Its methods may be called
// concurrently.
type Repository struct {
	origin  origin
	source  string
	branch  string
	path    string
	during  string
	timeout time.Duration
	limits  Limits

	mu   sync.Mutex
	kept Snapshot // the one fetched last; a cache, nothing depends on it
}

// origin is a place that repositories are read from.
type origin interface {
	// open connects and learns what branches there are.
	open(ctx context.Context) (session, error)
}

// session is one conversation with an origin.
type session interface {
	// head is the commit that a branch points to; ErrBranchGone when there is no
	// such branch.
	head(branch string) (plumbing.Hash, error)
	// objects are those of one commit.
	objects(ctx context.Context, commit plumbing.Hash) (objects, error)
}

// objects are Git's commits, trees and blobs.
type objects struct {
	storer.EncodedObjectStorer
	// withoutLarge says that blobs above Limits.FileBytes have been left out.
	withoutLarge bool
}

// New checks the configuration. It does not connect and reads no file.
func New(cfg Config) (*Repository, error) {
	where, err := parseLocation(cfg.URL)
	if err != nil {
		return nil, err
	}
	if err := cfg.Auth.check(); err != nil {
		return nil, err
	}
	dir, err := cleanPath(cfg.Path)
	if err != nil {
		return nil, err
	}
	if err := plumbing.NewBranchReferenceName(cfg.Branch).Validate(); err != nil {
		return nil, fmt.Errorf("branch %q: it is not a valid name; give a name such as main", cfg.Branch)
	}
	return &Repository{
		origin:  newOrigin(where, cfg),
		source:  nameOf(where, cfg.Branch, dir),
		branch:  cfg.Branch,
		path:    dir,
		during:  fmt.Sprintf("fetch branch %s of %s", cfg.Branch, where),
		timeout: cmp.Or(cfg.Timeout, 2*time.Minute),
		limits:  cfg.Limits.withDefaults(),
	}, nil
}

// Source names what is watched: REPOSITORY@BRANCH, and :PATH where it is not the
// whole repository. It holds no credentials, and is the same for every way to
// write one URL that differs in the case of its host or a slash at its end.
func (r *Repository) Source() string { return r.source }

func nameOf(where location, branch, dir string) string {
	name := strings.TrimRight(where.String(), "/")
	if u := where.remote; u != nil {
		same := *u
		same.Host = strings.ToLower(u.Host)
		name = strings.TrimRight(same.String(), "/")
	}
	name += "@" + branch
	if dir != "" && dir != "." {
		name += ":" + dir
	}
	return name
}

func newOrigin(where location, cfg Config) origin {
	if where.remote == nil {
		return diskOrigin{dir: where.dir}
	}
	return &httpOrigin{
		url:    where.remote,
		auth:   cfg.Auth,
		caFile: cfg.CAFile,
		limits: cfg.Limits.withDefaults(),
	}
}

// cleanPath gives the watched path the form of Git's own, "" for the root.
func cleanPath(dir string) (string, error) {
	for part := range strings.SplitSeq(dir, "/") {
		if part == ".." {
			return "", errors.New("path: it contains \"..\"; give it relative to the root of the repository")
		}
	}
	return strings.TrimPrefix(path.Clean("/"+dir), "/"), nil
}

// Fetch reads the watched path at the head of the branch. When the head is still
// the one of the last fetch, it costs one listing of the branches and returns
// the same Snapshot.
//
// Every failure is an error, one of this package's kinds where it has a kind, or
// the context's.
func (r *Repository) Fetch(ctx context.Context) (Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	snapshot, err := r.fetch(ctx)
	if err != nil {
		return Snapshot{}, explain(ctx, r.during, err)
	}
	return snapshot, nil
}

func (r *Repository) fetch(ctx context.Context) (Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return Snapshot{}, err
	}
	session, err := r.origin.open(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	head, err := session.head(r.branch)
	if err != nil {
		return Snapshot{}, err
	}
	if kept, ok := r.recall(head); ok {
		return kept, nil
	}
	objects, err := session.objects(ctx, head)
	if err != nil {
		return Snapshot{}, err
	}
	snapshot, err := readCommit(ctx, objects, head, r.path, r.limits)
	if err != nil {
		return Snapshot{}, err
	}
	r.keep(snapshot)
	return snapshot, nil
}

func (r *Repository) recall(head plumbing.Hash) (Snapshot, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept, r.kept.Commit == head.String()
}

func (r *Repository) keep(snapshot Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = snapshot
}
