package main

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/sources"
)

func TestStatusFlagsAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		flags    statusFlags
		followed sources.Config
		says     string
	}{
		"none":               {statusFlags{mode: "none"}, sources.Config{}, ""},
		"a branch":           {statusFlags{mode: "branch", interval: time.Minute, config: sources.PublishConfig{Branch: "s"}}, sources.Config{}, ""},
		"the same as a tag":  {statusFlags{mode: "branch", interval: time.Minute, config: sources.PublishConfig{Branch: "main"}}, sources.Config{Tag: "v1"}, ""},
		"another mode":       {statusFlags{mode: "yes"}, sources.Config{}, "--status must be branch or none"},
		"the default branch": {statusFlags{mode: "branch", interval: time.Minute, config: sources.PublishConfig{Branch: "main"}}, sources.Config{}, "follow what it writes"},
		"the branch":         {statusFlags{mode: "branch", interval: time.Minute, config: sources.PublishConfig{Branch: "prod"}}, sources.Config{Branch: "prod"}, "follow what it writes"},
		"too fast":           {statusFlags{mode: "branch", interval: time.Millisecond, config: sources.PublishConfig{Branch: "s"}}, sources.Config{}, "give at least 1s"},
		"heartbeats":         {statusFlags{mode: "branch", interval: time.Minute, config: sources.PublishConfig{Branch: "s", Heartbeat: time.Minute}}, sources.Config{}, "--status-heartbeat is 1m0s; give 10m0s to 24h0m0s"},
		"a rare heartbeat":   {statusFlags{mode: "branch", interval: time.Minute, config: sources.PublishConfig{Branch: "s", Heartbeat: 25 * time.Hour}}, sources.Config{}, "or 0 for none"},
		"an hourly one":      {statusFlags{mode: "branch", interval: time.Minute, config: sources.PublishConfig{Branch: "s", Heartbeat: time.Hour}}, sources.Config{}, ""},
		"a Secret for none":  {statusFlags{mode: "none", secret: "s"}, sources.Config{}, "are for --status branch"},
		"two of them":        {statusFlags{mode: "branch", interval: time.Minute, secret: "s", config: sources.PublishConfig{Auth: sources.Auth{Dir: "d"}}}, sources.Config{}, "not both"},
	} {
		err := tc.flags.check(tc.followed)
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want %q", name, err, tc.says)
		}
	}
}

// The branch is written by the way that the repository is read.
func TestStatusBranchIsReachedAsTheRepositoryIs(t *testing.T) {
	read := repositoryFlags{config: sources.Config{URL: "ssh://git@example.com/r", SSHJump: "me@jump", CAFile: "/ca", Timeout: time.Second, Auth: sources.Auth{Dir: "/d"}}}
	status := statusFlags{mode: statusBranch, interval: time.Minute, config: sources.PublishConfig{Branch: "s"}}
	got, err := status.open(read, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p := got.Publish; p.URL != read.config.URL || p.SSHJump != "me@jump" || p.CAFile != "/ca" || p.Timeout != time.Second || p.Auth.Dir != "/d" {
		t.Errorf("got %+v", p)
	}
}
