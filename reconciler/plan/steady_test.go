package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/state"
)

// 139: two situations that differ in nothing but what was measured are told in the
// same words, apart from the details.
func TestWhatWasMeasuredStandsApart(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "scenarios", "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	differ := 0
	for _, path := range paths {
		a := readArchive(t, path)
		d, o, later := a.desired(t), state.Observed{Auth: &state.Auth{}}, state.Observed{Auth: &state.Auth{}}
		a.observe(t, d, &o)
		a.observe(t, d, &later)
		measureAnew(&later)
		was, is := Make(d, o, noon), Make(d, later, noon)
		if before, after := steadyText(was), steadyText(is); before != after {
			t.Errorf("%s\nbefore:\n%s\nafter:\n%s", a.title, before, after)
		}
		if was.Text() != is.Text() {
			differ++
		}
	}
	if differ < 25 {
		t.Errorf("only %d scenarios tell what was measured at all", differ)
	}
}

// steadyText is what a status shows of a plan.
func steadyText(p decision.Plan) string {
	var b strings.Builder
	for _, w := range p.Warnings {
		fmt.Fprintln(&b, w.Member, w.Text)
	}
	if p.Hold != nil {
		fmt.Fprintln(&b, p.Hold.Member, p.Hold.Steady())
	}
	for _, s := range p.Steps {
		fmt.Fprintln(&b, s.Steady())
	}
	return b.String()
}

// measureAnew changes every number that moves while nothing happens, and the words of
// every error.
func measureAnew(o *state.Observed) {
	for i := range o.Rounds {
		r := &o.Rounds[i]
		r.Problem = otherWords(r.Problem)
		r.Members = slices.Clone(r.Members)
		for j := range r.Members {
			m := &r.Members[j]
			m.Problem = otherWords(m.Problem)
			m.Term++
			if m.AppliedIndex < m.CommitIndex {
				m.AppliedIndex-- // it falls back further
			}
			m.AppliedIndex, m.CommitIndex = m.AppliedIndex+7000, m.CommitIndex+7000
			m.Revision, m.HashRevision, m.CompactRevision, m.Hash = m.Revision+13, m.HashRevision+13, m.CompactRevision+13, m.Hash+1
			m.DBSize, m.DBInUse = aLittleMore(m.DBSize), aLittleMore(m.DBInUse)
		}
	}
	for i := range o.Objects {
		o.Objects[i].ChangedAt = noon.Add(-time.Minute)
		if f := o.Objects[i].Fight; f != nil {
			o.Objects[i].Fight = &state.Fight{Manager: f.Manager, Fields: f.Fields, Times: f.Times + 1, Until: f.Until.Add(time.Minute)}
		}
	}
	if o.Set != nil {
		o.Set.ScaledAt = noon.Add(-time.Minute)
	}
	if o.Record != nil && o.Record.Backup != nil {
		b := *o.Record.Backup
		b.Time, o.Record.Backup = b.Time.Add(-time.Minute), &b
	}
	if o.Record != nil && o.Record.Compacted != nil {
		c := *o.Record.Compacted
		c.Revision, o.Record.Compacted = c.Revision+13, &c
	}
	if o.Record != nil && o.Record.Recovering != nil {
		r := *o.Record.Recovering
		r.Revision, o.Record.Recovering = r.Revision+13, &r
	}
}

// otherWords are those of the next try.
func otherWords(problem string) string {
	if problem == "" {
		return ""
	}
	return "another try: " + problem
}

// aLittleMore is a size that reads otherwise and crosses no limit.
func aLittleMore(size int64) int64 {
	if size == 0 {
		return 0
	}
	return size + size>>6
}
