package release

import (
	"regexp"
	"slices"
	"testing"
)

// The rows must make sense on their own. What they claim of real binaries is
// checked by test/release.

func TestLineRows(t *testing.T) {
	month := regexp.MustCompile(`^20\d\d-(0[1-9]|1[0-2])$`)
	rows := lineRows()
	for i, row := range rows {
		if i > 0 && row.latest.Minor != rows[i-1].latest.Minor+1 {
			t.Errorf("%s does not follow %s", row.latest, rows[i-1].latest)
		}
		if row.source == "" || !month.MatchString(row.released) || row.ended != "" && (!month.MatchString(row.ended) || row.ended < row.released) {
			t.Errorf("line: %+v", row)
		}
		if _, ok := hopTo(row.latest); ok != (i > 0) {
			t.Errorf("no step to %s", row.latest.Line())
		}
	}
}

func TestBadRows(t *testing.T) {
	for _, row := range badRows() {
		if row.source == "" || row.fault == "" || !row.from.sameLine(row.fixed) || !row.from.before(row.fixed) || Known(row.from) != nil {
			t.Errorf("bad release: %+v", row)
		}
	}
}

// Path stops at the last release of a line, so that must be good for leaving
// and for coming to.
func TestHopRows(t *testing.T) {
	for _, row := range hopRows() {
		if row.source == "" || !row.floor.sameLine(row.advised) || row.advised.before(row.floor) || row.target.Minor != row.floor.Minor+1 {
			t.Errorf("hop: %+v", row)
		}
		if row.back != (Version{}) && !row.back.sameLine(row.target) {
			t.Errorf("hop: the way back starts elsewhere: %+v", row)
		}
		if last, _ := Latest(row.advised.Line()); last.before(row.advised) {
			t.Errorf("hop advises %s, which is newer than the catalogue", row.advised)
		}
		if last, _ := Latest(row.target.Line()); last.before(row.target) || last.before(row.back) || mustBeGood(last) != nil {
			t.Errorf("hop: %s is no good stop: %+v", last, row)
		}
	}
}

func TestFlagGroups(t *testing.T) {
	seen := map[string]bool{}
	for _, group := range flagGroups() {
		if group.source == "" || !slices.IsSortedFunc(group.first, Compare) {
			t.Errorf("flags: %+v", group)
		}
		for _, name := range group.names {
			if seen[name] {
				t.Errorf("flag %s is listed twice", name)
			}
			seen[name] = true
		}
	}
}

// A flag that the catalogue knows to be gone, or that is announced to go, has a
// row in the other table, at the same minor.
func TestDeprecatedRows(t *testing.T) {
	newest := lineRows()[len(lineRows())-1].latest
	seen := map[string]bool{}
	for _, row := range deprecatedRows() {
		if row.source == "" || row.removed.before(row.deprecated) {
			t.Errorf("deprecated: %+v", row)
		}
		for _, name := range row.names {
			if seen[name] {
				t.Errorf("deprecated flag %s is listed twice", name)
			}
			seen[name] = true
		}
	}
	for _, group := range flagGroups() {
		last := group.first[len(group.first)-1]
		for _, name := range group.names {
			row, ok := deprecationOf(name)
			gone, removed := next(last)
			if removed && (!ok || !row.removed.sameLine(gone)) || !removed && ok && !newest.before(row.removed) {
				t.Errorf("flag %s was last in %s: %+v", name, last.Line(), row)
			}
			delete(seen, name)
		}
	}
	for name := range seen {
		t.Errorf("deprecated flag %s was never a flag", name)
	}
}

func TestGateRows(t *testing.T) {
	for _, row := range gateRows() {
		if _, known := groupOf(row.flag); row.source == "" || row.flag != "" && !known || Known(row.since) != nil {
			t.Errorf("gate: %+v", row)
		}
	}
}

func TestOtherRows(t *testing.T) {
	for _, row := range valueRows() {
		if row.source == "" || row.instead == "" || !KnownFlag(row.goneIn, row.name) {
			t.Errorf("value: %+v", row)
		}
	}
	for _, row := range clashRows() {
		if _, deprecated := deprecationOf(row.old); row.source == "" || !deprecated || row.old == row.kept {
			t.Errorf("clash: %+v", row)
		}
	}
	for _, row := range defaultRows() {
		if row.source == "" || row.flag != "" && (newestName(row.flag) != row.flag || !takesAnyName(row.since, row.flag) || row.was == row.is) {
			t.Errorf("default: %+v", row)
		}
	}
}
