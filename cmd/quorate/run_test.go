package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/daemon"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup"
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

// A typo in an approval ends the daemon at its start, and approves nothing.
func TestAnApprovalIsChecked(t *testing.T) {
	if a, err := (&runFlags{}).approval(); err != nil || a != (follow.Approval{}) {
		t.Errorf("without the flag: %+v, %v", a, err)
	}
	for _, text := range []string{"main", "fedcba9", "HEAD..fedcba9876543210fedcba9876543210fedcba98"} {
		if _, err := (&runFlags{approve: text}).approval(); err == nil || !strings.Contains(err.Error(), "--approve-commit: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTheNumberOfShardsIsChecked(t *testing.T) {
	for l, want := range map[daemon.Lease]string{
		{Elect: true, Shards: 1}: "", {Shards: 1}: "", {Elect: true, Shards: 12}: "", {Elect: true, Shards: maxShards}: "",
		{Elect: true}: "--shards is 0", {Elect: true, Shards: -1}: "--shards is -1", {Elect: true, Shards: maxShards + 1}: "give 1, or up to 128",
		{Shards: 2}: "--shards is 2 with --leader-elect=false",
	} {
		if err := checkShards(l); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", l, err, want)
		}
	}
}

// goodKubeFlags are flags that are not refused.
func goodKubeFlags() kubeFlags {
	f := kubeFlags{}
	f.options.Owner.Instance, f.options.MaxDisrupted, f.options.MaxBackups, f.options.MaxDrills, f.options.BackupStallTimeout = "default", 1, 1, 1, minStall
	return f
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
		f := goodKubeFlags()
		f.options.Owner.Instance, f.options.MaxDisrupted = c.instance, c.most
		err := f.check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %d: got %v, want %q", c.instance, c.most, err, c.want)
		}
	}
}

// 175: a time within which every network pauses now and then is refused.
func TestTheStallTimeoutOfBackupsIsChecked(t *testing.T) {
	for stall, want := range map[time.Duration]string{minStall: "", backup.DefaultStall: "", time.Second: "--backup-stall-timeout is 1s: give at least 10s", 0: "--backup-stall-timeout is 0s"} {
		f := goodKubeFlags()
		f.options.BackupStallTimeout = stall
		if err := f.check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", stall, err, want)
		}
	}
}

// A place that nothing can be in is refused, rather than to let no backup be taken there.
func TestThePlacesForBackupsAreChecked(t *testing.T) {
	for place, want := range map[string]string{"s3://archive/{{ .Namespace }}/": "", "s3://archive": "", "archive": "--backup-place: it must name a bucket", "s3://a/{{ .Team }}/": "--backup-place: only {{ .Namespace }}"} {
		f := goodKubeFlags()
		f.options.BackupPlaces = []string{place}
		if err := f.check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", place, err, want)
		}
	}
}

// 236: what is below the level is not logged, in either format.
func TestTheLogHasALevelAndAFormat(t *testing.T) {
	for _, tc := range []struct{ format, level, want string }{
		{"text", "info", "level=INFO msg=a source"},
		{"text", "warn", "level=WARN msg=b source"},
		{"json", "error", `{"level":"ERROR","msg":"c","source"`},
		{"json", "debug", `{"level":"DEBUG","msg":"d","source"`},
	} {
		var out bytes.Buffer
		f := runFlags{logFormat: tc.format, logLevel: tc.level}
		log := f.logger(&out).With("source", "x")
		log.Debug("d")
		log.Info("a")
		log.Warn("b")
		log.Error("c")
		first, _, _ := strings.Cut(regexp.MustCompile(`time=\S+ |"time":"[^"]*",`).ReplaceAllString(out.String(), ""), "\n")
		if !strings.HasPrefix(first, tc.want) {
			t.Errorf("%s from %s on begins with %s", tc.format, tc.level, first)
		}
	}
}

// The pace of looks at clusters has bounds, and its defaults are within them.
func TestPaceHasBounds(t *testing.T) {
	for want, edit := range map[string]func(o *reconciler.Options){
		"":                               func(*reconciler.Options) {},
		"--workers is 0: give at least":  func(o *reconciler.Options) { o.Workers = 0 },
		"--max-asks is 0: give at least": func(o *reconciler.Options) { o.MaxAsks = 0 },
		"--resync is 999ms: give 1s to":  func(o *reconciler.Options) { o.Resync = 999 * time.Millisecond },
		"--resync is 1h0m0s: give 1s to": func(o *reconciler.Options) { o.Resync = time.Hour },
	} {
		o := reconciler.Options{Workers: reconciler.DefaultWorkers, MaxAsks: reconciler.DefaultMaxAsks, Resync: reconciler.DefaultResync}
		edit(&o)
		err := checkPace(o)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
