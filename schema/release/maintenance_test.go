package release

import "testing"

func TestMaintenanceThatIsSafe(t *testing.T) {
	for _, c := range []struct {
		version      string
		defrag, hash bool
	}{
		{"3.2.32", false, false},
		{"3.3.27", false, false},
		{"3.4.3", false, false},
		{"3.4.33", false, false},
		{"3.4.34", false, true},
		{"3.4.37", false, true},
		{"3.4.38", true, true},
		{"3.5.0", false, false},
		{"3.5.15", false, false},
		{"3.5.16", false, true},
		{"3.5.22", false, true},
		{"3.5.23", true, true},
		{"3.6.0", false, true},
		{"3.6.4", false, true},
		{"3.6.5", true, true},
		{"3.7.0", true, true},
		{"3.8.0", true, true},
	} {
		v, err := Parse(c.version)
		if err != nil {
			t.Fatal(err)
		}
		if why := UnsafeDefragmentation(v); (why == "") != c.defrag {
			t.Errorf("defragmentation of %s: %q", v, why)
		}
		if got := HashTrusted(v); got != c.hash {
			t.Errorf("hashes of %s are trusted: %t", v, got)
		}
	}
	want := "a defragmentation of 3.5.10 may corrupt its data: that is fixed in 3.5.23"
	if got := UnsafeDefragmentation(Version{3, 5, 10}); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestMayDiverge(t *testing.T) {
	for version, want := range map[string]bool{"3.4.45": true, "3.5.35": true, "3.6.16": true, "3.7.0": false, "3.7.3": false} {
		v, err := Parse(version)
		if got := MayDiverge(v); err != nil || (got != "") != want {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
}
