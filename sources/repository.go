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

// Config is what to watch.
type Config struct {
	// URL is an https, ssh or http URL, an address such as git@host:path, a file
	// URL, or a local path. It must not carry a password or token.
	URL string
	// Branch is the name of the branch, without refs/heads/. One of it and the
	// next three is given.
	Branch string
	// Tag is the name of a tag, without refs/tags/.
	Tag string
	// Semver is a range of versions; the tag with the highest one is followed.
	Semver string
	// Commit is the full hash of a commit.
	Commit string
	// Path is the watched directory, relative to the root of the repository.
	// Empty or "." is the root itself.
	Path string
	// Include are patterns, as in a .gitignore, of the files below Path that are
	// read; empty for all. Ignore are those of files that are not.
	Include, Ignore []string
	// Auth is for https and ssh.
	Auth Auth
	// Signers may sign commits, and a tag that is followed.
	Signers Signers
	// CAFile holds PEM certificates that are trusted besides the system's, for
	// https. It is read again for each fetch, and goes before Auth's.
	CAFile string
	// SSHJump is an SSH server to go through, user@host or user@host:port, as in
	// OpenSSH's ProxyJump; empty for none. It is for ssh.
	SSHJump string
	// Timeout bounds one fetch, besides its context. Default two minutes.
	Timeout time.Duration
	// Limits bound what is read.
	Limits Limits
}

// Repository is one watched path of one branch, tag or commit. Its methods may be
// called concurrently.
type Repository struct {
	origin  origin
	where   string
	source  string
	ref     reference
	path    string
	choice  patterns
	during  string
	timeout time.Duration
	limits  Limits
	signers Signers

	mu     sync.Mutex
	kept   Snapshot // the one fetched last; a cache, nothing depends on it
	known  known    // what it was read from; likewise
	judged verdict  // likewise
}

// origin is a place that repositories are read from, and written to.
type origin interface {
	// open begins a conversation.
	open(ctx context.Context) (session, error)
	// push moves one branch, if it still is where it was.
	push(ctx context.Context, u update) error
}

// session is one conversation with an origin.
type session interface {
	// refs are the references with a prefix by their full names.
	refs(ctx context.Context, prefix string) (map[string]target, error)
	// isEmpty reports whether there is no reference at all. Nothing can be asked
	// after it.
	isEmpty(ctx context.Context) bool
	// objects are those of one commit.
	objects(ctx context.Context, commit plumbing.Hash) (objects, error)
	// changes are those of one commit that another one has not, which is known whole. There may
	// be more of them, but none of what is only told by its absence.
	changes(ctx context.Context, from, to plumbing.Hash) (objects, error)
	// directories are a commit and what its directories hold, with or without the
	// files themselves.
	directories(ctx context.Context, commit plumbing.Hash) (objects, error)
	// history has at least the commits that one commit has in its history and
	// another one has not.
	history(ctx context.Context, from, to plumbing.Hash) (objects, error)
	close()
}

// target is what a reference names: an object, and the commit that it means. The two
// differ where a tag has a message of its own.
type target struct{ object, commit plumbing.Hash }

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
	ref, err := newReference(cfg)
	if err != nil {
		return nil, err
	}
	choice, err := newPatterns(cfg.Include, cfg.Ignore)
	if err != nil {
		return nil, err
	}
	from, err := newOrigin(where, cfg)
	if err != nil {
		return nil, err
	}
	return &Repository{
		origin:  from,
		where:   where.String(),
		source:  nameOf(where, ref, dir),
		ref:     ref,
		path:    dir,
		choice:  choice,
		during:  fmt.Sprintf("fetch %s of %s", ref, where),
		timeout: cmp.Or(cfg.Timeout, 2*time.Minute),
		limits:  cfg.Limits.withDefaults(),
		signers: cfg.Signers,
	}, nil
}

// Source names what is watched: REPOSITORY@BRANCH, or (tag), (versions) or (commit)
// in the place of the branch, and :PATH where it is not the whole repository. It holds no credentials, and is the same for every way to
// write one URL that differs in the case of its host or a slash at its end.
func (r *Repository) Source() string { return r.source }

// Reference returns which branch, tag or commit is followed, as in "branch main".
func (r *Repository) Reference() string { return r.ref.String() }

func nameOf(where location, ref reference, dir string) string {
	name := strings.TrimRight(where.String(), "/")
	if u := where.remote; u != nil {
		same := *u
		same.Host = strings.ToLower(u.Host)
		name = strings.TrimRight(same.String(), "/")
	}
	name += "@" + ref.source()
	if dir != "" && dir != "." {
		name += ":" + dir
	}
	return name
}

func newOrigin(where location, cfg Config) (origin, error) {
	jump, err := parseJump(cfg.SSHJump, where.remote)
	limits := cfg.Limits.withDefaults()
	switch {
	case err != nil:
		return nil, err
	case where.remote == nil:
		return diskOrigin{dir: where.dir}, nil
	case where.remote.Scheme == "ssh":
		return &sshOrigin{url: where.remote, path: where.sshPath, auth: cfg.Auth, caFile: cfg.CAFile, jump: jump, limits: limits}, nil
	}
	return &httpOrigin{url: where.remote, auth: cfg.Auth, caFile: cfg.CAFile, limits: limits}, nil
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
	return r.FetchAfter(ctx, Trust{})
}

// FetchAfter is Fetch of a head that may be trusted: it descends from the commit
// that was accepted last, and every commit in between is signed where there are
// Signers; before any was accepted, the head itself is. A tag that is followed is
// signed then as well. Other heads are an ErrRewritten or ErrUntrusted.
func (r *Repository) FetchAfter(ctx context.Context, trust Trust) (Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	head, snapshot, err := r.fetch(ctx, trust)
	if err != nil {
		f := explain(ctx, r.during, err)
		if !head.IsZero() && f.head.Commit == "" {
			f.head.Commit = head.String()
		}
		return Snapshot{}, f
	}
	return snapshot, nil
}

// fetch also returns the head, where it got that far.
func (r *Repository) fetch(ctx context.Context, trust Trust) (plumbing.Hash, Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return plumbing.ZeroHash, Snapshot{}, err
	}
	session, err := r.origin.open(ctx)
	if err != nil {
		return plumbing.ZeroHash, Snapshot{}, err
	}
	defer session.close()
	head, err := r.ref.head(ctx, session)
	if err != nil {
		return plumbing.ZeroHash, Snapshot{}, err
	}
	snapshot, err := r.read(ctx, session, head, trust)
	return head.commit, snapshot, err
}

// read reads one commit, if it may be followed. Only the one in force needs no verdict: another that was read
// before may have been let in by an approval, or after another commit than now.
func (r *Repository) read(ctx context.Context, session session, head named, trust Trust) (Snapshot, error) {
	kept, there := r.recall(head.commit)
	if there && kept.Commit == trust.Applied && trust.Tag.is(head) {
		kept.Tag = trust.Tag
		return kept, nil
	}
	by, err := r.judge(ctx, session, head, trust)
	if err != nil {
		return Snapshot{}, err
	}
	snapshot, next := kept, r.lastKnown()
	if !there {
		if snapshot, next, err = r.readObjects(ctx, session, head.commit); err != nil {
			return Snapshot{}, err
		}
	}
	snapshot.Signer, snapshot.Tag = by.commit, head.as(by.tag)
	r.keep(snapshot, next)
	return snapshot, nil
}

// readObjects reads a commit, by what has changed since the one that was read last if that is enough: a
// file that was moved to the watched path, say, is known to the server as had, and was not kept here.
func (r *Repository) readObjects(ctx context.Context, session session, commit plumbing.Hash) (Snapshot, known, error) {
	at, before := place{r.path, r.choice}, r.lastKnown()
	if !before.commit.IsZero() {
		changes, err := session.changes(ctx, before.commit, commit)
		if err == nil {
			if snapshot, next, err := readAfter(ctx, changes, commit, at, r.limits, before); err == nil {
				return snapshot, next, nil
			}
		}
	}
	objects, err := session.objects(ctx, commit)
	if err != nil {
		return Snapshot{}, known{}, err
	}
	return readAfter(ctx, objects, commit, at, r.limits, before)
}

func (r *Repository) lastKnown() known {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known
}

func (r *Repository) recall(head plumbing.Hash) (Snapshot, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept, r.kept.Commit == head.String()
}

func (r *Repository) keep(snapshot Snapshot, from known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept, r.known = snapshot, from
}
