package follow

import (
	"sync"
	"time"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// State is what a Poller knows of the repository.
type State struct {
	// Commit in force; "" before the first.
	Commit string
	// Problems of its files.
	Problems []string
	// Held is why no newer commit is accepted, and HeldCommit the commit that is held
	// for it; "" if nothing is held, or if no commit is the cause.
	Held, HeldCommit string
}

// Details is what a Poller knows of the repository, for people who look now. Unlike a
// State it changes with each poll.
type Details struct {
	State
	// Source is what is followed, without credentials, and Reference which branch, tag or
	// commit of it.
	Source, Reference string
	// Author, Subject and When are those of the commit in force.
	Author, Subject string
	When            time.Time
	// Signer is the key that the commit in force was verified with, and whose that is; "" for
	// none. Tag is the tag that named it, with the same of its own. Approval is what it was accepted by, where it would have been held.
	Signer   string
	Tag      sources.Tag
	Approval Approval
	// HeldAuthor, HeldSubject and HeldWhen are those of the commit that is held, where it
	// was read. One that is not trusted may say of itself what it likes.
	HeldAuthor, HeldSubject string
	HeldWhen                time.Time
	// Reason is history, signature or mass-change while a commit waits for a person's
	// approval, and Approve the command that approves it; both are "" otherwise.
	Reason, Approve string
	// LastSuccess is when the repository was last read, zero for never, and Failures how
	// often reading it has failed since.
	LastSuccess time.Time
	Failures    int
}

// accept notes the commit in force.
func (d *Details) accept(next accepted) {
	s := next.snapshot
	d.Commit, d.Author, d.Subject, d.When = s.Commit, s.Author, s.Subject, s.When
	d.Signer, d.Tag, d.Approval = s.Signer, s.Tag, next.approval
}

// acceptance returns why the commit was let in, for the status of what it declares.
func (a accepted) acceptance() schema.Acceptance {
	s := a.snapshot
	return schema.Acceptance{Signer: s.Signer, Tag: s.Tag.Name, TagSigner: s.Tag.Signer, Approval: a.approval.String(), ApprovedBy: a.approval.By}
}

// hold notes why no newer commit is accepted, and which is held; "" and none for nothing.
func (d *Details) hold(why, reason string, head sources.Head) {
	d.Held, d.Reason = why, reason
	d.HeldCommit, d.HeldAuthor, d.HeldSubject, d.HeldWhen = head.Commit, head.Author, head.Subject, head.When
}

// sharedState is a State, with its Details, that goroutines share.
type sharedState struct {
	mu      sync.Mutex
	current Details
	// polling is when the poll under way began; zero for none.
	polling time.Time
}

func (s *sharedState) get() State { return s.details().State }

func (s *sharedState) details() Details {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// begin notes that a poll begins, until end is called.
func (s *sharedState) begin() (end func()) {
	set := func(at time.Time) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.polling = at
	}
	set(time.Now())
	return func() { set(time.Time{}) }
}

// since returns when the poll under way began; zero for none.
func (s *sharedState) since() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polling
}

func (s *sharedState) update(edit func(d *Details)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit(&s.current)
}

// texts formats problems.
func texts(problems []schema.Problem) []string {
	list := make([]string, len(problems))
	for i, p := range problems {
		list[i] = p.String()
	}
	return list
}
