// Package series keeps the gauges and counters of many clusters for Prometheus in little memory: a series
// is its value and the labels that are its own, and what Prometheus is to be told of it is made when it asks.
package series

import (
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Store has the series of all clusters, in families that are made before it is registered. It is for
// several goroutines, and a prometheus.Collector.
type Store struct {
	// labels are the names of the labels that name a cluster.
	labels   [2]string
	families []*Family
	now      func() time.Time

	mu       sync.Mutex
	clusters map[clusterName]*row
}

// clusterName are the values of these labels.
type clusterName [2]string

// row are the series of one cluster.
type row struct {
	since   time.Time
	samples []sample
}

// sample is one series: values are those of the labels of its own, each behind a separator.
type sample struct {
	family *Family
	values string
	value  float64
}

// separator is in no label's value: it is no UTF-8.
const separator = "\xff"

// Family are series of one name.
type Family struct {
	store   *Store
	desc    *prometheus.Desc
	counter bool
	// names of all labels, and where each is among them by name.
	names []string
	place []int
}

// NewStore returns one for series of clusters, which labels of these two names name.
func NewStore(namespace, cluster string) *Store {
	return &Store{labels: [2]string{namespace, cluster}, now: time.Now, clusters: map[clusterName]*row{}}
}

// Gauge makes a family with the labels of a cluster, and more.
func (s *Store) Gauge(name, help string, more ...string) *Family { return s.family(name, help, more) }

// Counter is the same as Gauge for a counter.
func (s *Store) Counter(name, help string, more ...string) *Family {
	f := s.family(name, help, more)
	f.counter = true
	return f
}

func (s *Store) family(name, help string, more []string) *Family {
	f := &Family{store: s, names: slices.Concat(s.labels[:], more)}
	f.desc = prometheus.NewDesc(name, help, f.names, nil)
	sorted := slices.Sorted(slices.Values(f.names))
	for _, name := range f.names {
		f.place = append(f.place, slices.Index(sorted, name))
	}
	s.families = append(s.families, f)
	return f
}

// Set sets the series with these values of all labels, in their order, and makes it where there is none.
// The first two values name a cluster.
func (f *Family) Set(value float64, labels ...string) {
	f.change(labels, func(s *sample) { s.value = value })
}

// Add adds to a series, and makes it where there is none: by 0, if need be.
func (f *Family) Add(value float64, labels ...string) {
	f.change(labels, func(s *sample) { s.value += value })
}

func (f *Family) change(labels []string, change func(*sample)) {
	cluster, values := f.split(labels)
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	r := f.store.clusters[cluster]
	if r == nil {
		r = &row{since: f.store.now()}
		f.store.clusters[cluster] = r
	}
	i := slices.IndexFunc(r.samples, func(s sample) bool { return s.family == f && s.values == values })
	if i < 0 {
		i = len(r.samples)
		r.samples = append(r.samples, sample{family: f, values: values})
	}
	change(&r.samples[i])
}

// Delete drops every series whose labels begin with these, of which the first two name a cluster.
func (f *Family) Delete(labels ...string) {
	cluster, values := f.split(labels)
	all := len(labels) == len(cluster)
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if r := f.store.clusters[cluster]; r != nil {
		r.samples = slices.DeleteFunc(r.samples, func(s sample) bool {
			return s.family == f && (all || s.values == values || strings.HasPrefix(s.values, values+separator))
		})
	}
}

// split are the labels that name a cluster, and the others as a sample has them. One that is no UTF-8
// would fail every scrape as a whole.
func (f *Family) split(labels []string) (cluster clusterName, values string) {
	for i, value := range labels {
		labels[i] = strings.ToValidUTF8(value, string(utf8.RuneError))
	}
	return clusterName{labels[0], labels[1]}, strings.Join(labels[2:], separator)
}

// Forget drops all series of a cluster.
func (s *Store) Forget(namespace, cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clusters, clusterName{namespace, cluster})
}

// Describe implements prometheus.Collector.
func (s *Store) Describe(to chan<- *prometheus.Desc) {
	for _, f := range s.families {
		to <- f.desc
	}
}

// Collect implements prometheus.Collector. No cluster waits for a scrape.
func (s *Store) Collect(to chan<- prometheus.Metric) {
	said := pairs{}
	for _, cluster := range s.names() {
		since, samples := s.read(cluster)
		born := timestamppb.New(since)
		named := [2]*dto.LabelPair{pair(s.labels[0], cluster[0]), pair(s.labels[1], cluster[1])}
		for _, one := range samples {
			to <- &metric{sample: one, born: born, labels: one.labels(named, said)}
		}
	}
}

func (s *Store) names() (all []clusterName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for cluster := range s.clusters {
		all = append(all, cluster)
	}
	return all
}

// read is what there is of a cluster now.
func (s *Store) read(cluster clusterName) (since time.Time, samples []sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.clusters[cluster]
	if r == nil {
		return time.Time{}, nil
	}
	return r.since, slices.Clone(r.samples)
}

// labels are all labels of a series, by name.
func (s sample) labels(named [2]*dto.LabelPair, said pairs) []*dto.LabelPair {
	f, rest := s.family, s.values
	sorted := make([]*dto.LabelPair, len(f.names))
	sorted[f.place[0]], sorted[f.place[1]] = named[0], named[1]
	for i := 2; i < len(f.names); i++ {
		var value string
		value, rest, _ = strings.Cut(rest, separator)
		sorted[f.place[i]] = said.of(f.names[i], value)
	}
	return sorted
}

// pairs are the labels that were made in one scrape: many series have the same.
type pairs map[[2]string]*dto.LabelPair

func (p pairs) of(name, value string) *dto.LabelPair {
	key := [2]string{name, value}
	made := p[key]
	if made == nil {
		made = pair(name, value)
		p[key] = made
	}
	return made
}

func pair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

// metric is a series as it was when it was asked for.
type metric struct {
	sample
	born   *timestamppb.Timestamp
	labels []*dto.LabelPair
}

// Desc implements prometheus.Metric.
func (m *metric) Desc() *prometheus.Desc { return m.family.desc }

// Write implements prometheus.Metric.
func (m *metric) Write(to *dto.Metric) error {
	to.Label = m.labels
	if m.family.counter {
		to.Counter = &dto.Counter{Value: &m.value, CreatedTimestamp: m.born}
	} else {
		to.Gauge = &dto.Gauge{Value: &m.value}
	}
	return nil
}
