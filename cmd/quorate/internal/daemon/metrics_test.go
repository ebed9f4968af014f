package daemon

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/cmd/quorate/internal/publish"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/sources"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md and deploy/monitoring")

// root is the repository.
const root = "../../../../"

// metric is one that quorate registers.
type metric struct {
	name, help, kind string
	labels           []string
}

// listing is a Registerer that keeps what is registered.
type listing struct {
	prometheus.Registerer
	all []metric
}

// MustRegister implements prometheus.Registerer.
func (l *listing) MustRegister(collectors ...prometheus.Collector) {
	l.Registerer.MustRegister(collectors...)
	described := regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: (".*"), constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)
	for _, c := range collectors {
		descs := make(chan *prometheus.Desc)
		go func() {
			defer close(descs)
			c.Describe(descs)
		}()
		for d := range descs {
			parts := described.FindStringSubmatch(d.String())
			if parts == nil {
				panic("not understood: " + d.String())
			}
			m := metric{name: parts[1], kind: kindOf(c, parts[1])}
			if _, err := fmt.Sscanf(parts[2], "%q", &m.help); err != nil {
				panic(err)
			}
			if parts[3] != "" {
				m.labels = strings.Split(parts[3], ",")
			}
			l.all = append(l.all, m)
		}
	}
}

// kindOf is the kind of a metric of a collector, in the words of Prometheus.
func kindOf(c prometheus.Collector, name string) string {
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	case *prometheus.GaugeVec, prometheus.Gauge:
		return "gauge"
	case prometheus.Counter:
		return "counter"
	}
	// A series.Store has both kinds, and a function of one looks like one of the other: the name tells.
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

// allMetrics are those of a daemon that follows and publishes, by name.
func allMetrics(t *testing.T) []metric {
	t.Helper()
	l := &listing{Registerer: prometheus.NewRegistry()}
	repository, err := sources.New(sources.Config{URL: t.TempDir(), Branch: "main", Path: "."})
	if err != nil {
		t.Fatal(err)
	}
	git := follow.New(follow.Config{Repository: repository, Kube: fake.NewClientset(), Namespace: "quorate-system"}, slog.New(slog.DiscardHandler), l)
	publish.NewBranch(publish.BranchConfig{}, git.State, slog.New(slog.DiscardHandler), l)
	newMetrics(l, "test", &ServerClock{})
	newDivision(Lease{}, fake.NewClientset(), l, slog.New(slog.DiscardHandler))
	(&certificate{}).register(l)
	report.NewMetrics(l)
	slices.SortFunc(l.all, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	return l.all
}

// reference is docs/metrics.md.
func reference(all []metric) string {
	var b strings.Builder
	b.WriteString(`# Metrics

What ` + "`quorate run`" + ` serves at ` + "`/metrics`" + ` of ` + "`--metrics-listen`" + `, or without it of ` + "`--listen`" + `, besides Go's own. This page is generated from the code. [deploy/monitoring](../deploy/monitoring) scrapes them,
and [alerts](alerts.md) are built on them.

- ` + "`etcd_namespace` and `etcd_cluster`" + ` name a cluster. They are not called ` + "`namespace` and `cluster`" + `: the first is the scrape target's own label, the second often that
  of the Kubernetes cluster.
- Only the daemon that acts has series of clusters; the one that waits for the lease has ` + "`quorate_leader`" + ` 0. With ` + "`--shards`" + ` each daemon has series of its own clusters, and the one that leads has ` + "`quorate_leader`" + ` 1.
- Counters, and gauges that an alert needs, are 0 from the moment Git names the object, and go with it. A timestamp of what lasts, such as a hold, is there only while it does.
- Labels are bounded: names from Git and words from fixed lists. Names of field managers, which anybody may invent, are cut off after 20.
- ` + "`max without (instance, pod)`" + ` makes one series of those before and after a restart of the daemon.

| metric | type | labels | meaning |
|---|---|---|---|
`)
	for _, m := range all {
		labels := ""
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, labels, m.help)
	}
	return b.String()
}

// The reference of the metrics has each of them, as it is.
func TestTheReferenceOfMetricsIsGenerated(t *testing.T) {
	all := allMetrics(t)
	if len(all) < 40 {
		t.Fatalf("%d metrics", len(all))
	}
	golden(t, root+"docs/metrics.md", reference(all))
}

// golden compares a file with what it should be, or writes it.
func golden(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is stale (%v): run go test ./cmd/quorate/internal/daemon -update, and read the difference", path, err)
	}
}
