package report

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// looks collect when each cluster was last observed, as one series: with one a cluster, 10,000
// would be scraped to find the oldest.
type looks struct {
	desc *prometheus.Desc

	mu sync.Mutex
	// at is when, by the key of a cluster; when it was added where it was not observed yet.
	at map[string]time.Time
	// acting is how many actions of a cluster are under way: it is not observed before they end.
	acting map[string]int
}

func newLooks() *looks {
	return &looks{
		desc: prometheus.NewDesc("quorate_oldest_look_seconds", "How long ago the cluster was observed that was observed longest ago, of those that this daemon reconciles, be its first time still to come. A cluster counts from the end of an action, which quorate_cluster_action_started_timestamp_seconds has while it lasts. 0 without any.", nil, nil),
		at:   map[string]time.Time{}, acting: map[string]int{},
	}
}

// Looked notes that a cluster was observed just now.
func (m *Metrics) Looked(key string) { m.looks.change(key, 0) }

// change notes a cluster that was observed just now, or for which an action begins (1) or has ended (-1).
func (l *looks) change(key string, acting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.at[key]; known { // else it was forgotten meanwhile
		l.at[key] = time.Now()
	}
	if l.acting[key] += acting; l.acting[key] <= 0 {
		delete(l.acting, key)
	}
}

// add begins with a cluster, from now on.
func (l *looks) add(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[key] = time.Now()
}

// forget drops a cluster that is no longer reconciled.
func (l *looks) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.at, key) // an action that has begun ends by itself
}

// Describe implements prometheus.Collector.
func (l *looks) Describe(to chan<- *prometheus.Desc) { to <- l.desc }

// Collect implements prometheus.Collector.
func (l *looks) Collect(to chan<- prometheus.Metric) {
	l.mu.Lock()
	oldest, now := time.Duration(0), time.Now()
	for key, at := range l.at {
		if l.acting[key] == 0 {
			oldest = max(oldest, now.Sub(at))
		}
	}
	l.mu.Unlock()
	to <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, oldest.Seconds())
}
