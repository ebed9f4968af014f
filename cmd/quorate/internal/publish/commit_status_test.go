package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
	"github.com/quorate/quorate/sources/forge"
)

// marking is a forge that commits are marked at.
type marking struct {
	*testing.T
	c    *CommitStatuses
	log  *bytes.Buffer
	git  follow.State
	list []schema.Status
	// marks are the statuses of each commit; sent counts changes of them.
	marks map[string]string
	sent  int
	err   error
	// gone are commits that the forge does not know; asked counts all tries.
	gone  []string
	asked int
}

func (m *marking) Statuses() ([]schema.Status, bool) { return m.list, true }

func (m *marking) Status(_ context.Context, s forge.Status) error {
	m.asked++
	if m.err != nil {
		return m.err
	}
	if slices.Contains(m.gone, s.Commit) {
		return errors.New("set the status of commit " + s.Commit + ": 422")
	}
	if text := string(s.State) + ": " + s.Description; m.marks[s.Commit] != text {
		m.marks[s.Commit] = text
		m.sent++
	}
	if s.Context != "quorate" || s.Link != "https://git.example.com/status" {
		m.Errorf("marked as %+v", s)
	}
	return nil
}

func mark(t *testing.T) *marking {
	t.Helper()
	m := &marking{T: t, marks: map[string]string{}, log: &bytes.Buffer{}}
	m.c = NewCommitStatuses(CommitStatusesConfig{Host: m, Context: "quorate", Link: "https://git.example.com/status"},
		func() follow.State { return m.git }, slog.New(slog.NewTextHandler(m.log, nil)))
	return m
}

// round marks, and wants these marks, of which so many are new.
func (m *marking) round(sent int, want map[string]string) {
	m.Helper()
	m.sent = 0
	m.c.Once(m.Context(), m)
	for commit, text := range want {
		if m.marks[commit] != text {
			m.Errorf("%s is marked %q, want %q", commit, m.marks[commit], text)
		}
	}
	if m.sent != sent {
		m.Errorf("%d marks were sent, want %d: %q", m.sent, sent, m.marks)
	}
}

func TestCommitIsMarkedOnItsWay(t *testing.T) {
	m := mark(t)
	m.git.Commit = "aaa1111bbb"
	before := cmdtest.Changed("0000", "orders", schema.PhaseReady, 0)
	m.list = []schema.Status{before}
	m.round(1, map[string]string{"aaa1111bbb": "pending: 1 cluster not checked against it yet"})
	m.list = []schema.Status{cmdtest.Changed("aaa1111bbb", "orders", schema.PhaseReconciling, 2)}
	m.round(1, map[string]string{"aaa1111bbb": "pending: orders: 2 of 3 members at 3.6.16"})
	m.round(0, nil)
	m.list = []schema.Status{cmdtest.Changed("aaa1111bbb", "orders", schema.PhaseStalled, 2)}
	m.round(1, map[string]string{"aaa1111bbb": "failure: orders: it is so"})
	m.list = []schema.Status{cmdtest.Changed("aaa1111bbb", "orders", schema.PhaseReady, 3)}
	m.round(1, map[string]string{"aaa1111bbb": "success: orders: 3 of 3 members at 3.6.16"})
	m.round(0, nil)
}

// A commit is still updated when later ones came that change something else, and
// marked in the end when one came that changes the same.
func TestEarlierCommitIsMarkedToItsEnd(t *testing.T) {
	m := mark(t)
	m.git.Commit = "aaa1111bbb"
	m.list = []schema.Status{cmdtest.Changed("aaa1111bbb", "orders", schema.PhaseReconciling, 1), cmdtest.Changed("aaa1111bbb", "carts", schema.PhaseReconciling, 1)}
	m.round(1, map[string]string{"aaa1111bbb": "pending: 0 of 2 clusters done; orders: 1 of 3 members at 3.6.16"})
	m.git.Commit = "ccc2222ddd"
	for i := range m.list {
		m.list[i].Observed = m.git.Commit
	}
	m.list[1] = cmdtest.Changed("aaa1111bbb", "carts", schema.PhaseReady, 3)
	m.list[1].Observed = m.git.Commit
	m.round(2, map[string]string{
		"aaa1111bbb": "pending: 1 of 2 clusters done; orders: 1 of 3 members at 3.6.16",
		"ccc2222ddd": "success: no cluster changed",
	})
	m.git.Commit = "eee3333fff"
	m.list[0] = cmdtest.Changed("eee3333fff", "orders", schema.PhaseReconciling, 1)
	m.list[1] = cmdtest.Changed("eee3333fff", "carts", schema.PhaseReady, 1)
	m.round(2, map[string]string{"aaa1111bbb": "failure: superseded by eee3333 before it was applied"})
	m.round(0, nil)
	// A commit that was applied before this process began is left alone.
	m.list[1].Status.Commit = "9999"
	m.round(1, map[string]string{"9999": "", "eee3333fff": "pending: orders: 1 of 3 members at 3.6.16"})
}

func TestCommitThatIsHeldOrWrongIsMarked(t *testing.T) {
	m := mark(t)
	m.git = follow.State{Commit: "aaa1111bbb", Problems: []string{"a.yaml:3:1: no"}, Held: "commit not trusted: ccc is not signed", HeldCommit: "ccc"}
	m.round(2, map[string]string{
		"aaa1111bbb": "failure: 1 problem in its files: a.yaml:3:1: no",
		"ccc":        "failure: not applied: commit not trusted: ccc is not signed",
	})
	// It is approved.
	m.git = follow.State{Commit: "ccc"}
	m.round(1, map[string]string{"ccc": "success: no cluster changed"})
}

func TestMarksAreBoundedAndTheHeadComesFirst(t *testing.T) {
	m := mark(t)
	m.git.Commit = "zzz"
	for i := range 50 {
		name := strings.Repeat("a", i+1)
		s := cmdtest.Changed(name, name, schema.PhaseStalled, 0)
		s.Observed = "zzz"
		m.list = append(m.list, s)
	}
	m.round(maxCommits, map[string]string{"zzz": "success: no cluster changed"})
	m.round(0, nil)
}

func TestForgeThatRefusesAMarkIsLeftAlone(t *testing.T) {
	m := mark(t)
	m.git.Commit, m.err = "aaa", errors.New("set the status of commit aaa: 403")
	m.round(0, nil)
	m.round(0, nil)
	if n := strings.Count(m.log.String(), "level=WARN"); n != 1 || !m.c.next.After(time.Now().Add(minPause/2)) {
		t.Errorf("%d warnings, next in %s", n, time.Until(m.c.next))
	}
	m.err = nil
	m.round(1, map[string]string{"aaa": "success: no cluster changed"})
}

// A commit that the forge knows no more, as after a forced push, keeps no other from its mark.
func TestACommitThatCannotBeMarkedKeepsNoOtherFromItsMark(t *testing.T) {
	m := mark(t)
	m.git = follow.State{Commit: "ccc", Held: "commit not trusted: ddd is not signed", HeldCommit: "ddd"}
	m.gone = []string{"aaa", "ddd"}
	for _, commit := range []string{"aaa", "bbb"} {
		s := cmdtest.Changed(commit, "orders-"+commit, schema.PhaseReconciling, 1)
		s.Observed = "ccc"
		m.list = append(m.list, s)
	}
	want := map[string]string{"aaa": "", "bbb": "pending: orders-bbb: 1 of 3 members at 3.6.16", "ccc": "success: no cluster changed", "ddd": ""}
	m.round(2, want)
	m.round(0, want)
	if text := m.log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "commit aaa: 422") || !strings.Contains(text, "commit ddd: 422") {
		t.Errorf("the log says\n%s", text)
	}
	// While the forge is out of reach, or takes no token, it is asked once a round.
	for _, kind := range []error{sources.ErrUnreachable, sources.ErrAuthentication} {
		m.asked, m.err = 0, fmt.Errorf("set the status: %w", kind)
		m.round(0, nil)
		if m.asked != 1 {
			t.Errorf("%v: asked %d times", kind, m.asked)
		}
	}
}
