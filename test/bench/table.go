package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/quorate/quorate/test/lab"
)

// print prints the table.
func (b *bench) print(out io.Writer) {
	if b.rolls > 0 {
		b.printRolls(out)
	}
	b.printLarge(out)
	b.printOffline(out)
}

// printRolls prints what a roll takes and what a client notices of it.
func (b *bench) printRolls(out io.Writer) {
	q, f, p := summarise(b.small.quorate), summarise(b.small.floor), summarise(b.small.plain)
	fmt.Fprintf(out, "three members, etcd %s ↔ %s, soak 0s, a verified backup in every quorate roll; %d rolls each, alternating;\n"+
		"the script deletes the pods of the same StatefulSet, and the plain one has neither hook nor guard nor TLS\n\n", firstVersion, otherVersion, b.rolls)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "\tquorate\tscript\tratio\tplain\tratio")
	for _, row := range []struct {
		name string
		of   func(summary) time.Duration
	}{
		{"wall time of a roll, median", func(s summary) time.Duration { return s.wall }},
		{"longest write gap in a roll, median", func(s summary) time.Duration { return s.gap }},
		{"longest write gap in all rolls", func(s summary) time.Duration { return s.worst }},
	} {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%s\t%.2f\n", row.name, lab.Round(row.of(q)), lab.Round(row.of(f)), row.of(q).Seconds()/row.of(f).Seconds(),
			lab.Round(row.of(p)), row.of(q).Seconds()/row.of(p).Seconds())
	}
	fmt.Fprintf(w, "rolls with a failed write\t%d of %d\t%d of %d\t\t%d of %d\t\n", q.failedRolls, b.rolls, f.failedRolls, b.rolls, p.failedRolls, b.rolls)
	fmt.Fprintf(w, "failed writes\t%d of %d\t%d of %d\t\t%d of %d\t\n", q.failed, q.all, f.failed, f.all, p.failed, p.all)
	fmt.Fprintf(w, "failed reads\t%d\t%d\t\t%d\t\n", q.failedReads, f.failedReads, p.failedReads)
	fmt.Fprintf(w, "commit to first action, median (Git is polled every %s)\t%s\t\t\t\t\n", interval, lab.Round(q.react))
	_ = w.Flush()
	b.printStretches(out)
}

// printOffline prints what needs no cluster.
func (b *bench) printOffline(out io.Writer) {
	for _, p := range b.chosen() {
		p.print(out)
	}
}

func (b *bench) printNoop(out io.Writer) {
	fmt.Fprintf(out, "a pass over 1,000 clusters at rest, mean of 5: %s, %.0f allocations, %.0f API requests\n", lab.Round(b.noop.took), b.noop.allocs, b.noop.requests)
}

func (b *bench) printFiles(out io.Writer) {
	fmt.Fprintf(out, "validate %d files of 50 lines, median of 5: %s, %d MiB\n", fileCount, lab.Round(b.files.took), b.files.memory>>20)
}

// summary is what several rolls have in common.
type summary struct {
	wall, gap, react, worst  time.Duration
	failedRolls              int
	failed, all, failedReads int
}

func summarise(rolls []roll) summary {
	var s summary
	s.wall = median(rolls, func(r roll) time.Duration { return r.wall })
	s.react = median(rolls, func(r roll) time.Duration { return r.react })
	s.gap = median(rolls, func(r roll) time.Duration { return r.seen.Writes.LongestGap })
	for _, r := range rolls {
		s.worst = max(s.worst, r.seen.Writes.LongestGap)
		s.failed += r.seen.Writes.Failed
		s.all += r.seen.Writes.OK + r.seen.Writes.Failed
		s.failedReads += r.seen.Reads.Failed
		if r.seen.Writes.Failed > 0 {
			s.failedRolls++
		}
	}
	return s
}

// median of a figure; zero without any.
func median[E any, T cmp.Ordered](list []E, of func(E) T) T {
	var zero T
	if len(list) == 0 {
		return zero
	}
	values := make([]T, len(list))
	for i, e := range list {
		values[i] = of(e)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
