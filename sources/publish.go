package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// PublishConfig is where something is written, and by whom.
type PublishConfig struct {
	// URL is the repository, as in Config.
	URL string
	// Branch is the branch that is written, without refs/heads/. It has a history of
	// its own. Default "quorate/status".
	Branch string
	// Owner names the only writer of the branch. Each commit names it.
	Owner string
	// Author is "Name <mail>". Default "quorate <quorate@localhost>".
	Author string
	// SigningKeyFile holds an OpenPGP private key in armor or an SSH private key,
	// without a passphrase. Commits are signed with it. It is read for each commit.
	SigningKeyFile string
	// Compact is after how many commits the history is squashed into one. Default
	// 500, and never below 0.
	Compact int
	// Heartbeat is after how long the files are committed again though nothing in them has
	// changed, so that readers can tell a writer that is quiet from one that is gone. Each
	// commit names it. 0 for never.
	Heartbeat time.Duration
	// Auth, CAFile, SSHJump, Timeout and Limits are as in Config.
	Auth    Auth
	CAFile  string
	SSHJump string
	Timeout time.Duration
	Limits  Limits
}

// DefaultStatusBranch is the branch that is written where none is named.
const DefaultStatusBranch = "quorate/status"

// Publication is what the branch is to hold.
type Publication struct {
	// Files are all its files.
	Files []File
	// Subject says in one line what has changed.
	Subject string
	// Commit is the commit that the files are about; empty for none.
	Commit string
	// Time of the commit.
	Time time.Time
}

// Published is what came of a Publication.
type Published struct {
	// Commit at the head of the branch.
	Commit string
	// Pushed says that it is new.
	Pushed bool
}

// Publisher writes files to a branch as one commit each time, without a clone: it
// reads of the branch no more than its last commit and what its directories list,
// and sends only what is not there yet.
type Publisher struct {
	config PublishConfig
	origin origin
	ref    plumbing.ReferenceName
	during string
	author signature

	mu sync.Mutex
	// tip is the head of the branch as it was last seen; nil when it must be asked
	// for. seen is when that was.
	tip  *tip
	seen time.Time
	// refused is the head that the server did not let a new history take the place of,
	// or that another writer did meanwhile. Where it was the server, it is asked again
	// when the branch has so many commits as grows says.
	refused plumbing.Hash
	grows   int
}

// signature is the author of the commits.
type signature struct{ name, mail string }

// NewPublisher checks the configuration. It does not connect and reads no file.
func NewPublisher(c PublishConfig) (*Publisher, error) {
	where, err := parseLocation(c.URL)
	if err != nil {
		return nil, err
	}
	if err := c.Auth.check(); err != nil {
		return nil, err
	}
	c.Branch = cmp.Or(c.Branch, DefaultStatusBranch)
	ref := plumbing.NewBranchReferenceName(c.Branch)
	if err := ref.Validate(); err != nil {
		return nil, fmt.Errorf("status branch %q: it is no name of a branch; give one such as %s", c.Branch, DefaultStatusBranch)
	}
	author, err := parseAuthor(cmp.Or(c.Author, "quorate <quorate@localhost>"))
	if err != nil {
		return nil, err
	}
	if c.Heartbeat < 0 {
		return nil, fmt.Errorf("status branch: the heartbeat is %s; give a longer one, or 0 for none", c.Heartbeat)
	}
	if c.Compact < 0 || c.Owner == "" || strings.ContainsAny(c.Owner, "\r\n") {
		return nil, errors.New("status branch: it needs an owner on one line, and no negative number of commits")
	}
	c.Compact, c.Timeout, c.Limits = cmp.Or(c.Compact, 500), cmp.Or(c.Timeout, 2*time.Minute), c.Limits.withDefaults()
	to, err := newOrigin(where, Config{Auth: c.Auth, CAFile: c.CAFile, SSHJump: c.SSHJump, Limits: c.Limits})
	if err != nil {
		return nil, err
	}
	return &Publisher{
		config: c, origin: to, ref: ref, author: author, during: fmt.Sprintf("publish on branch %s of %s", c.Branch, where),
	}, nil
}

func parseAuthor(text string) (signature, error) {
	address, err := mail.ParseAddress(text)
	if err != nil || address.Name == "" || strings.ContainsAny(address.Name+address.Address, "<>\r\n") {
		return signature{}, fmt.Errorf("status author %q: give it in the form Name <mail@example.com>", text)
	}
	return signature{address.Name, address.Address}, nil
}

const (
	// publishTries is how often a race may be lost.
	publishTries = 5
	// publishJitter is the longest pause after the first one; it doubles.
	publishJitter = 200 * time.Millisecond
	// tipAge is how long it is believed that a branch is where it was left.
	tipAge = 10 * time.Minute
)

// Publish makes the branch hold the files and no others, by one commit, and by none
// where it does already, unless that commit is older than the heartbeat. Where another writer was faster it reads the head and tries again. It
// never writes to a branch that is not the owner's: ErrForeignBranch.
func (p *Publisher) Publish(ctx context.Context, what Publication) (Published, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for try := range publishTries {
		if try > 0 {
			pauseBefore(ctx, try)
		}
		var done Published
		if done, err = p.try(ctx, what); err == nil {
			return done, nil
		}
		p.tip = nil
		if !errors.Is(err, errMoved) || ctx.Err() != nil {
			break
		}
	}
	if errors.Is(err, errLocked) {
		err = unreachable(fmt.Sprintf("the lock file %s.lock is there", p.ref), "remove it if no Git runs in the repository; it is tried again")
	} else if errors.Is(err, errMoved) {
		err = unreachable(fmt.Sprintf("others wrote to it %d times in a row just before", publishTries), "find the other writer; it is tried again")
	}
	return Published{}, explain(ctx, p.during, err)
}

// pauseBefore keeps writers that met from meeting again.
func pauseBefore(ctx context.Context, try int) {
	timer := time.NewTimer(time.Duration(rand.Float64() * float64(publishJitter<<try)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// try makes one try.
func (p *Publisher) try(ctx context.Context, what Publication) (Published, error) {
	if err := p.findHead(ctx, what.Time); err != nil {
		return Published{}, err
	}
	built, err := buildTree(what.Files)
	if err != nil {
		return Published{}, err
	}
	if p.tip.tree == built.root && !p.isDue(what.Time) {
		return Published{Commit: p.tip.commit.String()}, nil
	}
	next := p.next()
	u := update{ref: p.ref, old: p.tip.commit, hashes: built.without(p.tip.has), stored: built.stored}
	if u.new, err = p.commit(built, next, what); err != nil {
		return Published{}, err
	}
	u.hashes = append(u.hashes, u.new)
	err = p.origin.push(ctx, u)
	if squashed := next.parent.IsZero(); squashed && !p.tip.commit.IsZero() && (errors.Is(err, errMoved) || errors.Is(err, ErrRejected)) {
		p.refused = p.tip.commit
		return Published{}, errMoved
	}
	if err != nil {
		return Published{}, err
	}
	p.tip = &tip{commit: u.new, tree: built.root, when: what.Time, count: next.count, has: built.has}
	return Published{Commit: u.new.String(), Pushed: true}, nil
}

// isDue reports whether a commit is made though nothing has changed. One that is dated later than
// now, by a clock that was wrong, says nothing either.
func (p *Publisher) isDue(now time.Time) bool {
	return p.config.Heartbeat > 0 && now.Sub(p.tip.when).Abs() >= p.config.Heartbeat
}

// findHead asks for the head of the branch, unless it is known.
func (p *Publisher) findHead(ctx context.Context, now time.Time) error {
	if p.tip != nil && now.Sub(p.seen).Abs() < tipAge {
		return nil
	}
	session, err := p.origin.open(ctx)
	if err != nil {
		return err
	}
	defer session.close()
	refs, err := session.refs(ctx, p.ref.String())
	if err != nil {
		return err
	}
	head := refs[p.ref.String()].commit
	if head.IsZero() {
		if err := p.checkName(ctx, session); err != nil {
			return err
		}
	}
	if p.tip == nil || p.tip.commit != head {
		p.tip = &tip{}
		if !head.IsZero() {
			if p.tip, err = p.readTip(ctx, session, head); err != nil {
				return err
			}
		}
	}
	p.seen = now
	return nil
}

// checkName refuses a branch that cannot be made for its name. A server says of that only that the branch could not be
// moved, as where another writer was faster.
func (p *Publisher) checkName(ctx context.Context, s session) error {
	first, _, _ := strings.Cut(p.config.Branch, "/")
	refs, err := s.refs(ctx, heads+first)
	if err != nil {
		return err
	}
	ours := p.ref.String() + "/"
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		if other := name + "/"; other != ours && (strings.HasPrefix(ours, other) || strings.HasPrefix(other, ours)) {
			return &failure{
				why:   fmt.Sprintf("there is %s, and Git keeps no branch below another one", oneLine(name)),
				next:  "name another branch, or delete that one if it is not needed",
				kinds: []error{ErrRejected},
			}
		}
	}
	return nil
}

// next is what the next commit comes after: nothing at first and where the history is
// long enough.
func (p *Publisher) next() position {
	if !p.refused.IsZero() && p.refused == p.tip.commit { // no other writer was faster
		p.grows = p.tip.count + p.config.Compact
	}
	p.refused = plumbing.ZeroHash
	if p.tip.commit.IsZero() || p.tip.count >= max(p.config.Compact, p.grows) {
		p.grows = 0
		return position{count: 1}
	}
	return position{parent: p.tip.commit, count: p.tip.count + 1}
}
