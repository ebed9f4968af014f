package schedule

import (
	"time"

	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/schema"
)

// places says which keep rules name which backups.
type places struct {
	rules int
	// clusters are those that backups are of, by ID.
	clusters map[string]*ofCluster
	// named are the words of each rule for each backup, "" where it does not name it.
	named [][]string
	// filled is the youngest cluster, by its rank, that takes all places of a rule.
	filled []int
}

// ofCluster counts the backups of one cluster. The youngest one has rank 0.
type ofCluster struct {
	rank int
	// good counts the good ones, and all those and the damaged ones.
	good, all []keepRule
}

// takePlaces gives each rule's places to the backups, which come newest first.
func takePlaces(spec schema.RetentionSpec, zone *time.Location, newestFirst []Stored, now time.Time) places {
	p := places{rules: len(keepRules(spec)), clusters: map[string]*ofCluster{}, named: make([][]string, len(newestFirst))}
	for n, b := range newestFirst {
		if clock.Ahead(b.Time, now) {
			continue
		}
		c := p.clusters[b.ClusterID]
		if c == nil {
			c = &ofCluster{rank: len(p.clusters), good: keepRules(spec), all: keepRules(spec)}
			p.clusters[b.ClusterID] = c
		}
		words := make([]string, p.rules)
		for i := range words {
			words[i] = c.all[i].names(b.Time.In(zone))
			if b.Damaged == "" {
				words[i] = c.good[i].names(b.Time.In(zone))
			}
		}
		p.named[n] = words
	}
	p.filled = make([]int, p.rules)
	for i := range p.filled {
		p.filled[i] = len(p.clusters)
		for _, c := range p.clusters {
			if rule := c.good[i]; rule.count > 0 && rule.taken >= rule.count {
				p.filled[i] = min(p.filled[i], c.rank)
			}
		}
	}
	return p
}

// reasons are the words of the rules that keep the nth backup.
func (p places) reasons(n int, b Stored) []string {
	words := p.named[n]
	if words != nil && p.rules == 0 {
		return []string{"no rule removes it"}
	}
	var reasons []string
	for i, word := range words {
		switch c := p.clusters[b.ClusterID]; {
		case word == "" || c.rank > p.filled[i]:
		case c.rank > 0 && c.good[i].count > 0:
			reasons = append(reasons, word+" of its cluster")
		default:
			reasons = append(reasons, word)
		}
	}
	return reasons
}
