package score

import "testing"

// A run that is held is not counted as one that ended the same, and is one with a way on only
// where nothing broke.
func TestAHeldRunIsNotTheSameEnd(t *testing.T) {
	want := Run{End: []string{"a"}, Restarts: map[string]int{"orders-0": 1}}
	for name, c := range map[string]struct {
		got      Run
		want     End
		problems int
	}{
		"same":            {Run{End: []string{"a"}, Hit: true, Restarts: want.Restarts}, Same, 0},
		"unmet":           {Run{End: []string{"a"}}, Unmet, 0},
		"other end":       {Run{End: []string{"b"}, Hit: true}, Failed, 1},
		"held":            {Run{End: []string{"b"}, Hit: true, Unrest: "waits", WayOn: true}, Held, 2},
		"held, same end":  {Run{End: []string{"a"}, Hit: true, Unrest: "waits", WayOn: true}, Held, 1},
		"no way on":       {Run{End: []string{"b"}, Hit: true, Unrest: "waits"}, Failed, 2},
		"broke":           {Run{End: []string{"a"}, Hit: true, Wrong: []string{"I1"}}, Failed, 1},
		"broke, held":     {Run{End: []string{"b"}, Hit: true, Unrest: "waits", WayOn: true, Wrong: []string{"I1"}}, Failed, 3},
		"restarted":       {Run{End: []string{"a"}, Hit: true, Restarts: map[string]int{"orders-0": 2}}, Failed, 1},
		"restarted, held": {Run{End: []string{"b"}, Unrest: "waits", WayOn: true, Restarts: map[string]int{"orders-0": 2}}, Failed, 3},
	} {
		if got := c.got.Beside(want); got != c.want {
			t.Errorf("%s: it counts as %d, want %d", name, got, c.want)
		}
		if got := c.got.Problems(want); len(got) != c.problems {
			t.Errorf("%s: its problems are %q, want %d", name, got, c.problems)
		}
	}
}
