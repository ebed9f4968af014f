package sources

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// The trailers of each commit. The first one is the mark by which a branch is known
// as quorate's, and its owner's.
const (
	trailerOwner  = "Quorate-Status-Of"
	trailerCommit = "Quorate-Commit"
	// trailerCount is how many commits the branch has by then.
	trailerCount = "Quorate-Count"
	// trailerHeartbeat is after how long the next commit is there at the latest.
	trailerHeartbeat = "Quorate-Heartbeat"
	// skipCI keeps code hosts from running anything for a status.
	skipCI = "[skip ci]"
	// maxSubject keeps a subject readable where commits are listed.
	maxSubject = 100
)

// tip is the head of the branch.
type tip struct {
	commit, tree plumbing.Hash
	// when it was made, by the clock of its writer.
	when time.Time
	// count is how many commits the branch has.
	count int
	// has is what the repository has of files and directories.
	has map[plumbing.Hash]bool
}

// position is the place of a commit in the branch.
type position struct {
	parent plumbing.Hash
	count  int
}

// readTip reads the head of a branch, which has to be the owner's.
func (p *Publisher) readTip(ctx context.Context, s session, head plumbing.Hash) (*tip, error) {
	objs, err := s.directories(ctx, head)
	if err != nil {
		return nil, err
	}
	r := newTreeReader(objs, p.config.Limits)
	commit, err := r.commit(head)
	if err != nil {
		return nil, err
	}
	trailers := readTrailers(commit.Message)
	if err := p.checkOwner(head, trailers); err != nil {
		return nil, err
	}
	count, err := strconv.Atoi(trailers[trailerCount])
	if err != nil {
		count = 1 // it is not read elsewhere
	}
	t := &tip{commit: head, tree: commit.TreeHash, when: commit.Committer.When, count: count, has: map[plumbing.Hash]bool{}}
	return t, t.list(r, commit.TreeHash, 0)
}

// checkOwner refuses a branch without the mark, and one of another owner.
func (p *Publisher) checkOwner(head plumbing.Hash, trailers map[string]string) error {
	owner, marked := trailers[trailerOwner]
	why := fmt.Sprintf("its commit %s was not made by quorate", head)
	switch {
	case owner == p.config.Owner:
		return nil
	case marked:
		why = "it belongs to another quorate, " + oneLine(owner)
	}
	return &failure{
		why: why, next: "name another branch, or delete this one if it is not needed",
		kinds: []error{ErrForeignBranch},
	}
}

// list notes what the repository has below a directory.
func (t *tip) list(r *treeReader, hash plumbing.Hash, depth int) error {
	if t.has[hash] || depth > maxDepth || len(t.has) > r.limits.Objects {
		return nil // what is not noted is only sent once more
	}
	tree, err := r.tree(hash)
	if err != nil {
		return err
	}
	t.has[hash] = true
	for _, entry := range tree.Entries {
		if entry.Mode != filemode.Dir {
			t.has[entry.Hash] = true
		} else if err := t.list(r, entry.Hash, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// readTrailers reads the "Key: value" lines of a message's last paragraph.
func readTrailers(message string) map[string]string {
	found := map[string]string{}
	message = strings.TrimRight(message, "\n")
	for line := range strings.Lines(message[strings.LastIndex(message, "\n\n")+1:]) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			found[key] = value
		}
	}
	return found
}

// commit makes the commit, and returns its hash.
func (p *Publisher) commit(b *built, at position, what Publication) (plumbing.Hash, error) {
	author := object.Signature{Name: p.author.name, Email: p.author.mail, When: what.Time.UTC()}
	c := &object.Commit{Author: author, Committer: author, TreeHash: b.root, Message: p.message(at, what)}
	if !at.parent.IsZero() {
		c.ParentHashes = []plumbing.Hash{at.parent}
	}
	if err := p.sign(c); err != nil {
		return plumbing.ZeroHash, err
	}
	return b.store(c)
}

func (p *Publisher) message(at position, what Publication) string {
	subject := strings.Join(strings.Fields(strings.ToValidUTF8(what.Subject, "?")), " ")
	if runes := []rune(subject); len(runes) > maxSubject {
		subject = string(runes[:maxSubject-1]) + "…"
	}
	text := fmt.Sprintf("%s\n\n%s\n\n", subject, skipCI)
	if what.Commit != "" {
		text += fmt.Sprintf("%s: %s\n", trailerCommit, oneLine(what.Commit))
	}
	if p.config.Heartbeat > 0 {
		text += fmt.Sprintf("%s: %s\n", trailerHeartbeat, p.config.Heartbeat)
	}
	return text + fmt.Sprintf("%s: %d\n%s: %s\n", trailerCount, at.count, trailerOwner, p.config.Owner)
}
