package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/test/lab"
)

// judgeLimit bounds each of the checks.
const judgeLimit = time.Minute

// judge reports whether it went well: nothing else decides the exit code. Failed
// requests are shown and do not count, as long as no acknowledged write is lost.
func (d *demo) judge(ctx context.Context) error {
	d.Head("Did it go well?")
	seen := d.writer.Stop()
	var failed []error
	for _, check := range []struct {
		what string
		do   func(context.Context) (string, error)
	}{
		{"every member reports the new version", d.checkMembers},
		{"every acknowledged write is there", d.checkWrites},
		{"the backups are whole", d.checkBackups},
	} {
		limited, cancel := context.WithTimeout(ctx, judgeLimit)
		found, err := check.do(limited)
		cancel()
		if err != nil {
			d.Say("%s %s: %v", d.Bad("✗"), check.what, err)
			failed = append(failed, fmt.Errorf("not true that %s: %w", check.what, err))
			continue
		}
		d.Say("%s %s: %s", d.Good("✓"), check.what, found)
	}
	d.showTable(seen)
	return errors.Join(failed...)
}

func (d *demo) checkMembers(ctx context.Context) (string, error) {
	want := versions()[len(versions())-1]
	seen, err := d.cluster.Members(ctx, namespace, clusterName)
	if err != nil {
		return "", err
	}
	ok, words := lab.AtVersion(seen, members, want)
	if !ok {
		return "", fmt.Errorf("want %d at %s, they say: %s", members, want, words)
	}
	return words, nil
}

func (d *demo) checkWrites(ctx context.Context) (string, error) {
	n, err := d.writer.Verify(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("all %d", n), nil
}

// checkBackups reads every backup again: there must be one for each upgrade, and
// its bytes those that its manifest tells of.
func (d *demo) checkBackups(ctx context.Context) (string, error) {
	keys, err := d.store.Backups()
	if err != nil {
		return "", err
	}
	found := map[string]string{}
	for _, key := range keys {
		m, err := backup.Store{Drivers: clouds.Drivers()}.Verify(ctx, d.store.ObjectURL(key))
		if err != nil {
			return "", err
		}
		found[m.TargetVersion] = fmt.Sprintf("%s before %s (%d KiB, sha256 %s…)", m.EtcdVersion, m.TargetVersion, m.Size>>10, m.SHA256[:8])
	}
	var words []string
	for _, to := range versions()[1:] {
		if found[to] == "" {
			return "", fmt.Errorf("there is none from before the upgrade to %s among %d in the bucket", to, len(keys))
		}
		words = append(words, found[to])
	}
	return strings.Join(words, ", "), nil
}

// showTable prints what the client saw, an upgrade a line.
func (d *demo) showTable(all lab.Report) {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', tabwriter.AlignRight)
	row := func(cells ...any) { _, _ = fmt.Fprintf(table, strings.Repeat("%v\t", len(cells))+"\n", cells...) }
	row("", "took", "writes", "failed", "longest gap", "p50", "p99", "reads", "failed", "longest gap")
	figures := func(name string, took time.Duration, r lab.Report) {
		row(name, took.Round(100*time.Millisecond), r.Writes.OK, r.Writes.Failed, lab.Round(r.Writes.LongestGap),
			lab.Round(r.Writes.Latency(0.5)), lab.Round(r.Writes.Latency(0.99)), r.Reads.OK, r.Reads.Failed, lab.Round(r.Reads.LongestGap))
	}
	var total time.Duration
	for _, l := range d.laps {
		total += l.took
		figures(l.from+" → "+l.to, l.took, l.seen)
	}
	figures("all the time", total, all)
	_ = table.Flush()
	d.Head("What the client saw")
	for line := range strings.Lines(text.String()) {
		d.Say("%s", strings.TrimRight(line, "\n"))
	}
	for _, failure := range append(all.Writes.Failures, all.Reads.Failures...) {
		d.Say("%s", d.Faint(fmt.Sprintf("failed at %s, after %s: %s", d.At(failure.At), lab.Round(failure.Took), failure.Text)))
	}
}
