package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/quorate/quorate/test/lab"
)

// memoryBound is what docs/guarantees.md promises of a backup: 40 MiB at any size.
const memoryBound = 40 << 20

// printBackups prints what backups and restores take.
func (b *bench) printBackups(out io.Writer) {
	fmt.Fprintf(out, "backups and restores of one member of etcd %s; medians, ways by turns; memory is the most anonymous memory of a process; the bound of quorate's is %d MiB\n", benchEtcd, memoryBound>>20)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, c := range b.backups.list {
		fmt.Fprintf(w, "%s, median of %d\twall\tCPU\tmemory\tquorate's wall to it\n", c.title, len(c.ways[0].runs))
		own := summariseUsage(c.ways[0].runs)
		for _, one := range c.ways {
			s := summariseUsage(one.runs)
			fmt.Fprintf(w, "  %s\t%s\t%s\t%d MiB\t%.2f\n", one.name, lab.Round(s.wall), lab.Round(s.cpu), s.memory>>20, own.wall.Seconds()/s.wall.Seconds())
		}
	}
	for _, c := range b.backups.writers {
		fmt.Fprintf(w, "%s\tp50\tp99\tlongest\tquorate's p99 to it\n", c.title)
		own := percentile(c.list[0].took, 0.99)
		for _, one := range c.list {
			p99 := percentile(one.took, 0.99)
			fmt.Fprintf(w, "  %s, %d writes\t%s\t%s\t%s\t%.2f\n", one.name, len(one.took), lab.Round(percentile(one.took, 0.5)), lab.Round(p99), lab.Round(percentile(one.took, 1)), own.Seconds()/p99.Seconds())
		}
	}
	_ = w.Flush()
}

// summariseUsage is the medians of the times, and the most memory of all.
func summariseUsage(runs []usage) usage {
	s := usage{
		wall: median(runs, func(u usage) time.Duration { return u.wall }),
		cpu:  median(runs, func(u usage) time.Duration { return u.cpu }),
	}
	for _, u := range runs {
		s.memory = max(s.memory, u.memory)
	}
	return s
}

// percentile of sorted times, q from 0 to 1; 0 without any.
func percentile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// withinBound wants every backup and restore of quorate's to be within its memory.
func (b *bench) withinBound() error {
	for _, c := range b.backups.list {
		switch most := summariseUsage(c.ways[0].runs).memory; {
		case most == 0:
			return fmt.Errorf("%s: the memory of quorate was not seen; measure on Linux", c.title)
		case most > memoryBound:
			return fmt.Errorf("%s: quorate had %d MiB of anonymous memory, and %d MiB are its bound; find what grows with the size", c.title, most>>20, memoryBound>>20)
		}
	}
	return nil
}
