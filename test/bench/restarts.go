package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/quorate/quorate/test/lab"
)

// stretch is a part of a roll's time. Those of a restart are sums over all members.
type stretch struct {
	name string
	took time.Duration
}

// stretchesOf divides the time of a roll from begin to end by the restarts in it, which follow each
// other. No moment is counted twice, and none left out.
func stretchesOf(restarts []lab.Restart, begin, end time.Time) []stretch {
	stretches := []stretch{
		{name: "before the first member stops"},
		{name: "the hook, and etcd ends"},
		{name: "the next pod is created"},
		{name: "volume, network, guard"},
		{name: "etcd starts"},
		{name: "the probes see it ready"},
		{name: "deciding about the next member"},
		{name: "after the last member is ready"},
	}
	at := begin
	until := func(i int, t time.Time) {
		if t.After(at) {
			stretches[i].took += t.Sub(at)
			at = t
		}
	}
	const between, after = 6, 7
	for i, r := range restarts {
		begins := between
		if i == 0 {
			begins = 0
		}
		until(begins, r.Deleted)
		for j, t := range []time.Time{r.Gone, r.Created, r.Prepared, r.Started, r.Ready} {
			until(j+1, t)
		}
	}
	until(after, end)
	return stretches
}

// printStretches prints where the time of rolls is, medians of each part.
func (b *bench) printStretches(out io.Writer) {
	fmt.Fprintf(out, "\nwhere the time of a roll is, medians; of a restart, the sum of all members\n\n")
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "\tquorate\tscript\tplain")
	for i, p := range stretchesOf(nil, time.Time{}, time.Time{}) {
		of := func(rolls []roll) time.Duration {
			return lab.Round(median(rolls, func(r roll) time.Duration { return r.stretches[i].took }))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.name, of(b.small.quorate), of(b.small.floor), of(b.small.plain))
	}
	_ = w.Flush()
}
