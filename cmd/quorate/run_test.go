package main

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/cmd/quorate/internal/follow"
)

func TestMassLimitsAreChecked(t *testing.T) {
	for _, l := range []follow.Limits{{Clusters: -1}, {Percent: -1}, {Percent: 101}} {
		if checkLimits(l) == nil {
			t.Errorf("%+v is taken", l)
		}
	}
	if err := checkLimits(follow.Limits{Clusters: 1000, Percent: 100}); err != nil {
		t.Error(err)
	}
}

func TestFlagsOfTheFleetAreChecked(t *testing.T) {
	for _, c := range []struct {
		instance string
		most     int
		want     string
	}{
		{"default", 1, ""},
		{"eu-1", 20, ""},
		{"", 1, "--instance is \"\""},
		{"EU", 1, "--instance is \"EU\""},
		{"default", 0, "--max-disrupted is 0: give at least 1"},
		{"default", -1, "--max-disrupted is -1"},
	} {
		f := kubeFlags{}
		f.options.MaxBackups, f.options.MaxDrills = 1, 1
		f.options.Owner.Instance, f.options.MaxDisrupted = c.instance, c.most
		err := f.check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %d: got %v, want %q", c.instance, c.most, err, c.want)
		}
	}
}
