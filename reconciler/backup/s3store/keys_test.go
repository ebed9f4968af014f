package s3store

import "testing"

// Comments in a profile are not values of it.
func TestParseProfileSkipsComments(t *testing.T) {
	got := parseProfile("[default]\na = 1\n# a = 2\n; a = 3\nnothing\n[other]\na = 4\n", "default")
	if len(got) != 1 || got["a"] != "1" {
		t.Errorf("%q", got)
	}
}
