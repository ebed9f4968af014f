package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"
)

// update moves one branch from one commit to another.
type update struct {
	ref plumbing.ReferenceName
	// old is where the branch has to be now; zero for a branch that must not exist.
	old, new plumbing.Hash
	// hashes are what the repository may not have yet, all of it in stored: files
	// first, then directories, then the commit.
	hashes []plumbing.Hash
	stored *memory.Storage
}

// errMoved is a branch that is not where it was.
var errMoved = errors.New("the branch has moved meanwhile")

// errLocked is a branch that is about to move, or one whose mover was killed.
var errLocked = fmt.Errorf("%w, or is about to", errMoved)

// pushOver sends an update to a server. That the branch is still where it was is
// what the server compares when it moves it: a commit that was not seen is never overwritten.
func pushOver(ctx context.Context, w wire, u update) error {
	defer w.close()
	greeting, err := w.greet(ctx)
	if err != nil {
		return w.explain(err)
	}
	if greeting.refs[u.ref.String()] != u.old {
		return errMoved
	}
	request, err := u.request(greeting)
	if err != nil {
		return w.explain(err)
	}
	answer, err := w.ask(ctx, request)
	if err != nil {
		return w.explain(err)
	}
	defer answer.Close()
	said := &remarks{}
	report, err := readReport(&bounded{r: answer, left: maxReportBytes}, greeting, said)
	if err != nil {
		return w.explain(err)
	}
	return report.judge(u, w.clean(said.text()))
}

// request is the update in Git's words.
func (u update) request(greeting hello) ([]byte, error) {
	caps := greeting.withAgent([]string{"report-status"})
	if _, has := greeting.caps["side-band-64k"]; has {
		caps = append(caps, "side-band-64k")
	}
	m := &message{}
	m.line("%s %s %s\x00%s", u.old, u.new, u.ref, strings.Join(caps, " "))
	m.flush()
	_, err := packfile.NewEncoder(m, u.stored, false).Encode(u.hashes, 0)
	return m.Bytes(), err
}

// pushReport is a server's report about an update.
type pushReport struct {
	unpacked string            // "ok", or what is wrong with the pack
	refs     map[string]string // "" for a branch that was moved, or why it was not
}

func readReport(r io.Reader, greeting hello, said io.Writer) (pushReport, error) {
	packets := &pktReader{r: r}
	if _, has := greeting.caps["side-band-64k"]; has {
		packets = &pktReader{r: &sideband{packets: packets, remarks: said}}
	}
	report := pushReport{refs: map[string]string{}}
	for {
		kind, text, err := packets.line()
		if err != nil {
			return pushReport{}, err
		}
		if kind != pktData {
			return report, nil
		}
		word, rest, _ := strings.Cut(text, " ")
		name, why, _ := strings.Cut(rest, " ")
		switch word {
		case "unpack":
			report.unpacked = rest
		case "ok":
			report.refs[name] = ""
		case "ng":
			report.refs[name] = why
		default:
			return pushReport{}, errors.New("its report of the push is not Git's")
		}
	}
}

// judge returns what a report means.
func (r pushReport) judge(u update, said string) error {
	why, reported := r.refs[u.ref.String()]
	switch {
	case reported && why == "" && r.unpacked == "ok":
		return nil
	case r.unpacked != "ok":
		why = "unpack: " + r.unpacked
	case !reported:
		why = "it does not mention the branch"
	case isLost(why):
		return errMoved
	}
	why = oneLine(why)
	if said != "" {
		why += ": " + said
	}
	return rejected(why)
}

// isLost reports whether a refusal may be that another writer was faster.
func isLost(why string) bool {
	for _, text := range []string{"fetch first", "non-fast-forward", "stale info", "failed to update ref", "already exists", "incorrect old value", "cannot lock ref", "failed to lock"} {
		if strings.Contains(why, text) {
			return true
		}
	}
	return false
}

func rejected(why string) *failure {
	return &failure{
		why:   "the server takes no push to this branch (" + why + ")",
		next:  "let quorate push to it, in the rules that protect branches, or name another branch",
		kinds: []error{ErrRejected},
	}
}
