package main

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// The version is the tag, or Go's name of the commit, and says whether the checkout had changes.
func TestTheVersionIsWhatGoStamps(t *testing.T) {
	const hash, at = "3926e8c4d1f0b5a69788776655443322110fedcb", "2026-11-27T15:25:58Z"
	platform := runtime.GOOS + "/" + runtime.GOARCH
	stamped := func(version, modified string) *debug.BuildInfo {
		return &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: version}, Settings: []debug.BuildSetting{
			{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: hash}, {Key: "vcs.time", Value: at}, {Key: "vcs.modified", Value: modified},
		}}
	}
	for name, c := range map[string]struct {
		info  *debug.BuildInfo
		given string
		want  build
		text  string
	}{
		"a release":         {stamped("v0.1.0", "false"), "", build{"v0.1.0", hash, at, false, "go1.26.8", platform}, "quorate v0.1.0\ncommit:   " + hash + "\ndate:     " + at + "\n"},
		"a commit":          {stamped("v0.0.0-20261127152558-3926e8c4d1f0", "false"), "", build{"v0.0.0-20261127152558-3926e8c4d1f0", hash, at, false, "go1.26.8", platform}, "go:       go1.26.8\nplatform: " + platform + "\n"},
		"changes":           {stamped("v0.0.0-20261127152558-3926e8c4d1f0+dirty", "true"), "", build{"v0.0.0-20261127152558-3926e8c4d1f0+dirty", hash, at, true, "go1.26.8", platform}, "commit:   " + hash + ", with changes\n"},
		"no checkout":       {&debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "(devel)"}}, "", build{"development", "", "", false, "go1.26.8", platform}, "commit:   unknown\ndate:     unknown\n"},
		"a version by flag": {&debug.BuildInfo{GoVersion: "go1.26.8"}, "v0.1.0", build{"v0.1.0", "", "", false, "go1.26.8", platform}, "quorate v0.1.0\n"},
	} {
		got := buildOf(c.info, c.given)
		var out bytes.Buffer
		if err := got.print(&out); err != nil || got != c.want || !strings.Contains(out.String(), c.text) {
			t.Errorf("%s: %+v, %v\n%s", name, got, err, &out)
		}
	}
}
