package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// service is a program of Git's on the server.
type service string

const (
	uploadPack  service = "git-upload-pack"  // gives
	receivePack service = "git-receive-pack" // takes
)

// deed is what quorate needs a right for.
func (s service) deed() string {
	if s == receivePack {
		return "write to"
	}
	return "read"
}

// wire is a way to a service of a server.
type wire interface {
	// greet gives what the server says first.
	greet(ctx context.Context) (hello, error)
	// ask sends a request and gives the answer, which is closed when it has been
	// read.
	ask(ctx context.Context, request []byte) (io.ReadCloser, error)
	// explain turns an error of this conversation into a failure.
	explain(err error) error
	// clean makes the server's own words safe to show.
	clean(text string) string
	close()
}

// packSession is a conversation with a server that sends packs. It speaks to the
// server itself: go-git knows no protocol 2, by which a server names one
// reference without listing them all, asks for them twice, and unpacks before
// others could read what was sent.
type packSession struct {
	wire   wire
	limits Limits
	// tags are those with a message, by the commit that they mean.
	tags map[plumbing.Hash]plumbing.Hash
}

func (s *packSession) close() { s.wire.close() }

// refs are the references with a prefix, by their full names.
func (s *packSession) refs(ctx context.Context, prefix string) (map[string]target, error) {
	greeting, err := s.wire.greet(ctx)
	if err != nil {
		return nil, s.wire.explain(err)
	}
	if !greeting.v2 {
		return s.note(peeled(greeting.refs, prefix)), nil
	}
	answer, err := s.wire.ask(ctx, greeting.listRequest(prefix))
	if err != nil {
		return nil, s.wire.explain(err)
	}
	defer answer.Close()
	refs, err := readList(&bounded{r: answer, left: maxRefsBytes})
	if err != nil {
		return nil, s.wire.explain(err)
	}
	return s.note(peeled(refs, prefix)), nil
}

// note keeps what a commit is to be asked for by: some servers, as Git over SSH in protocol
// 0, give only what a reference names itself, and that is the tag.
func (s *packSession) note(refs map[string]target) map[string]target {
	s.tags = map[plumbing.Hash]plumbing.Hash{}
	for _, t := range refs {
		if t.object != t.commit {
			s.tags[t.commit] = t.object
		}
	}
	return refs
}

// peeledSuffix is behind the name of a tag with a message where a list has what it names.
const peeledSuffix = "^{}"

// peeled picks references out of a whole list, which has what a tag with a
// message names behind it.
func peeled(all map[string]plumbing.Hash, prefix string) map[string]target {
	refs := map[string]target{}
	for name, hash := range all {
		if strings.HasPrefix(name, prefix) && !strings.HasSuffix(name, peeledSuffix) {
			refs[name] = target{object: hash, commit: hash}
			if commit, has := all[name+peeledSuffix]; has {
				refs[name] = target{object: hash, commit: commit}
			}
		}
	}
	return refs
}

// isEmpty reports whether there is no reference at all. It reads no more than it
// needs, and ends the conversation: it is for when there are no more requests.
func (s *packSession) isEmpty(ctx context.Context) bool {
	defer s.close()
	greeting, err := s.wire.greet(ctx)
	if err != nil || !greeting.v2 {
		return err == nil && len(greeting.refs) == 0
	}
	answer, err := s.wire.ask(ctx, greeting.listRequest("refs/"))
	if err != nil {
		return false
	}
	defer answer.Close()
	kind, _, err := (&pktReader{r: answer}).next()
	return err == nil && kind == pktFlush
}

// objects asks for one commit without its history and, of a server that can,
// without the files that are too large to be read anyway: those of a repository
// that holds other things as well need not be carried.
func (s *packSession) objects(ctx context.Context, commit plumbing.Hash) (objects, error) {
	return s.fetch(ctx, want{commit: commit, shallow: true, filter: s.withoutLarge()})
}

// changes asks for what one commit has and another one, that was read before, has not. Commits between the two come
// with it: by a shallow fetch, Git would send all files again.
func (s *packSession) changes(ctx context.Context, from, to plumbing.Hash) (objects, error) {
	found, err := s.fetch(ctx, want{commit: to, have: from, filter: s.withoutLarge()})
	found.withoutLarge = false // what is not there may be what the other one has
	return found, err
}

// withoutLarge is the filter of files that are too large to be read.
func (s *packSession) withoutLarge() string {
	return fmt.Sprintf("blob:limit=%d", s.limits.FileBytes+1)
}

// directories leaves out the files, of a server that can.
func (s *packSession) directories(ctx context.Context, commit plumbing.Hash) (objects, error) {
	return s.fetch(ctx, want{commit: commit, shallow: true, filter: "blob:none"})
}

// history asks for the commits that lead to a commit from another one and, of a
// server that can, for those alone.
func (s *packSession) history(ctx context.Context, from, to plumbing.Hash) (objects, error) {
	return s.fetch(ctx, want{commit: to, have: from, filter: "tree:0"})
}

func (s *packSession) fetch(ctx context.Context, w want) (objects, error) {
	if tag, has := s.tags[w.commit]; has {
		w.commit = tag
	}
	greeting, err := s.wire.greet(ctx)
	if err != nil {
		return objects{}, s.wire.explain(err)
	}
	if !greeting.fetches("filter") {
		w.filter = ""
	}
	pack, err := s.begin(ctx, greeting, w)
	if w.filter != "" && !greeting.v2 && ctx.Err() == nil && isRefused(err) {
		// Azure DevOps offers filters and refuses the one by size.
		w.filter = ""
		pack, err = s.begin(ctx, greeting, w)
	}
	if err != nil {
		return objects{}, s.wire.explain(notOurs(err, w.commit))
	}
	raw, err := s.download(pack)
	if err != nil {
		return objects{}, err
	}
	if err := checkPack(ctx, raw, s.limits); err != nil {
		return objects{}, err
	}
	stored, err := unpack(ctx, raw)
	if err != nil {
		return objects{}, err
	}
	return objects{EncodedObjectStorer: stored, withoutLarge: w.filter != ""}, nil
}

// begin asks for a pack, up to its first byte.
func (s *packSession) begin(ctx context.Context, greeting hello, w want) (io.ReadCloser, error) {
	answer, err := s.wire.ask(ctx, greeting.fetchRequest(w))
	if err != nil {
		return nil, err
	}
	pack, err := greeting.packIn(answer, w)
	if err != nil {
		answer.Close()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{pack, answer}, nil
}

func (s *packSession) download(pack io.ReadCloser) ([]byte, error) {
	defer pack.Close()
	raw, err := io.ReadAll(io.LimitReader(pack, s.limits.PackBytes+1))
	if err != nil {
		return nil, s.wire.explain(err)
	}
	if int64(len(raw)) > s.limits.PackBytes {
		return nil, tooMuch("the server sends more than %d bytes for one commit", s.limits.PackBytes)
	}
	return raw, nil
}

// isRefused reports whether a server may have refused the request for what it asks for:
// by the status of an answer that has one, in its own words, or by ending.
func isRefused(err error) bool {
	var refused *refusedError
	var said *serverError
	switch {
	case errors.As(err, &refused):
		return refused.status == http.StatusBadRequest || refused.status == http.StatusInternalServerError || refused.status == http.StatusNotImplemented
	case errors.As(err, &said):
		return !isNotOurs(said)
	}
	return errors.Is(err, io.ErrUnexpectedEOF)
}

// notOurs is the answer to a want of a commit that is not there.
func notOurs(err error, commit plumbing.Hash) error {
	var said *serverError
	if errors.As(err, &said) && isNotOurs(said) {
		return &failure{
			why:   "the repository has no commit " + commit.String() + ", or does not give it",
			next:  "push it, or name another one",
			kinds: []error{ErrBranchGone},
		}
	}
	return err
}

func isNotOurs(said *serverError) bool { return strings.Contains(said.text, "not our ref") }
