package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/quorate/quorate/test/bench/fleet"
)

// part is something that is measured without a cluster.
type part struct {
	name, what string
	measure    func(context.Context) error
	print      func(io.Writer)
}

// parts are all of them, in the order of the table.
func (b *bench) parts() []part {
	return []part{
		{"noop", "measuring a pass over 1,000 clusters at rest", into(&b.noop, measureNoop), b.printNoop},
		{"polls", "polling a branch that has not moved", into(&b.polls, readingsOf(unchangedBranch, unchangedTimes)), func(out io.Writer) {
			printReadings(out, fmt.Sprintf("a poll of a branch that has not moved, median of %d:", unchangedTimes), b.polls)
		}},
		{"fetches", "fetching a branch of 100 files at first", into(&b.fetches, readingsOf(firstFetch, firstFetchTimes)), func(out io.Writer) {
			printReadings(out, fmt.Sprintf("a first fetch of 100 files, median of %d:", firstFetchTimes), b.fetches)
		}},
		{"commits", "reading new commits of up to 10,000 files", into(&b.commits, readingsOf(newCommit, newCommitTimes)), func(out io.Writer) {
			printReadings(out, fmt.Sprintf("a new commit, mean of %d:", newCommitTimes), b.commits)
		}},
		{"page", "asking for the page of up to 10,000 clusters", into(&b.page, readingsOf(fleetPage, fleetPageTimes)), func(out io.Writer) {
			printReadings(out, fmt.Sprintf("the page of the fleet, when nobody has asked for a second and again, mean of %d:", fleetPageTimes), b.page)
		}},
		{"metrics", "answering scrapes of up to 10,000 clusters", into(&b.metrics, readingsOf(scrape, scrapeTimes)), func(out io.Writer) {
			printReadings(out, fmt.Sprintf("a scrape of the metrics of clusters of three, mean of %d:", scrapeTimes), b.metrics)
		}},
		{"year", "writing a year of statuses, twice", into(&b.year, measureYear), func(out io.Writer) { printYear(out, b.year) }},
		{"files", fmt.Sprintf("checking %d files", fileCount), into(&b.files, measureFiles), b.printFiles},
		{"start", "starting commands that need no client", into(&b.start, measureStart), func(out io.Writer) { printStart(out, b.start) }},
		{"fleet", "running quorate with many clusters", b.measureFleets, func(out io.Writer) { fleet.Print(out, b.measured) }},
		{"backups", "backing up and restoring a member", b.measureBackups, b.printBackups},
	}
}

// measureFleets measures each fleet, and one commit that creates as many clusters as a platform team
// moves in at once.
func (b *bench) measureFleets(ctx context.Context) error {
	for _, clusters := range b.fleets {
		f, err := fleet.Measure(ctx, b.Progress, fleet.Options{Clusters: clusters, Replicas: int32(b.members), Created: min(clusters, 500)})
		if err != nil {
			return err
		}
		b.measured = append(b.measured, f)
	}
	return nil
}

// into keeps what is measured.
func into[T any](to *T, measure func(context.Context) (T, error)) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		*to, err = measure(ctx)
		return err
	}
}

// onlyRolls measures the rolls, which need a cluster, and no part.
const onlyRolls = "rolls"

// chosen are the parts that are measured in this run.
func (b *bench) chosen() []part {
	if b.only == onlyRolls || b.only == onlyLarge {
		return nil
	}
	all := b.parts()
	for _, p := range all {
		if p.name == b.only {
			return []part{p}
		}
	}
	return all
}

// checkOnly wants the name of a part, or none.
func (b *bench) checkOnly() error {
	var names []string
	for _, p := range b.parts() {
		names = append(names, p.name)
		if p.name == b.only {
			return nil
		}
	}
	if b.only == "" || b.only == onlyRolls || b.only == onlyLarge {
		return nil
	}
	return fmt.Errorf("-only %s: it measures one of %s", b.only, strings.Join(append(names, onlyRolls, onlyLarge), ", "))
}
