package release

import (
	"slices"
	"testing"
)

// The rows must make sense by themselves, since nothing else checks them.
func TestTables(t *testing.T) {
	for _, row := range badRows() {
		if row.source == "" || row.fault == "" || !row.from.sameLine(row.fixed) || !row.from.before(row.fixed) || Known(row.from) != nil {
			t.Errorf("bad release: %+v", row)
		}
	}
	for _, row := range hopRows() {
		if !row.floor.sameLine(row.advised) || row.advised.before(row.floor) || row.target.Minor != row.floor.Minor+1 {
			t.Errorf("hop: %+v", row)
		}
		if newest, _ := Latest(row.advised.Line()); newest.before(row.advised) {
			t.Errorf("hop advises %s, which is newer than the catalogue", row.advised)
		}
	}
	seen := map[string]bool{}
	for _, group := range flagGroups() {
		if !slices.IsSortedFunc(group.first, Compare) {
			t.Errorf("flags: lines out of order: %v", group.first)
		}
		for _, name := range group.names {
			if seen[name] {
				t.Errorf("flag %s stands twice", name)
			}
			seen[name] = true
		}
	}
	for _, row := range gateRows() {
		if row.flag != "" && !seen[row.flag] {
			t.Errorf("gate %s: no flag %s", row.gate, row.flag)
		}
	}
	for _, row := range goneRows() {
		for _, name := range row.names {
			if !seen[name] {
				t.Errorf("replaced flag %s was never a flag", name)
			}
		}
	}
}
