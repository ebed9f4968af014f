package series_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/quorate/quorate/reconciler/report/series"
)

// both are the same metrics as a Store and as vectors of Prometheus.
type both struct {
	store            *series.Store
	families         [4]*series.Family
	gauges           [3]*prometheus.GaugeVec
	counter          *prometheus.CounterVec
	ours, prometheus *prometheus.Registry
}

func newBoth() *both {
	b := &both{store: series.NewStore("ns", "cluster"), ours: prometheus.NewRegistry(), prometheus: prometheus.NewRegistry()}
	for i, more := range [][]string{nil, {"kind"}, {"member", "alarm"}} {
		name := fmt.Sprint("gauge_", i)
		b.families[i] = b.store.Gauge(name, "Help.", more...)
		b.gauges[i] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: "Help."}, append([]string{"ns", "cluster"}, more...))
		b.prometheus.MustRegister(b.gauges[i])
	}
	b.families[3] = b.store.Counter("counter_total", "Help.", "action")
	b.counter = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "counter_total", Help: "Help."}, []string{"ns", "cluster", "action"})
	b.prometheus.MustRegister(b.counter)
	b.ours.MustRegister(b.store)
	return b
}

// step makes the same random change to both.
func (b *both) step() {
	word := func(n int) string { return fmt.Sprint("w", rand.IntN(n)) }
	ns, cluster, value := word(2), word(3), float64(rand.IntN(100))
	of := prometheus.Labels{"ns": ns, "cluster": cluster}
	labels := [][]string{{ns, cluster}, {ns, cluster, word(3)}, {ns, cluster, word(12), word(2)}}
	switch i := rand.IntN(3); rand.IntN(20) {
	case 0:
		b.store.Forget(ns, cluster)
		for _, g := range b.gauges {
			g.DeletePartialMatch(of)
		}
		b.counter.DeletePartialMatch(of)
	case 1:
		b.families[i].Delete(labels[i]...)
		b.gauges[i].DeleteLabelValues(labels[i]...)
	case 2:
		b.families[2].Delete(ns, cluster, labels[2][2])
		of["member"] = labels[2][2]
		b.gauges[2].DeletePartialMatch(of)
	case 3, 4, 5:
		b.families[3].Add(value, labels[1]...)
		b.counter.WithLabelValues(labels[1]...).Add(value)
	case 6:
		b.families[i].Add(0, labels[i]...)
		b.gauges[i].WithLabelValues(labels[i]...)
	case 7:
		b.families[i].Delete(ns, cluster)
		b.gauges[i].DeletePartialMatch(of)
	default:
		b.families[i].Set(value, labels[i]...)
		b.gauges[i].WithLabelValues(labels[i]...).Set(value)
	}
}

func gathered(t *testing.T, from prometheus.Gatherer) (text string) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if m.Counter != nil && time.Since(m.Counter.CreatedTimestamp.AsTime()).Abs() > time.Hour {
				t.Errorf("%s was made at %s", f.GetName(), m.Counter.CreatedTimestamp.AsTime())
			}
			if m.Counter != nil {
				m.Counter.CreatedTimestamp = nil
			}
		}
		text += prototext.MarshalOptions{Multiline: true}.Format(&dto.MetricFamily{Name: f.Name, Help: f.Help, Type: f.Type, Metric: f.Metric})
	}
	return text
}

// Whatever is set, added and dropped, Prometheus is told the same as by vectors of its own library.
func TestSeriesAreThoseOfVectors(t *testing.T) {
	for range 20 {
		b := newBoth()
		for range 300 {
			b.step()
		}
		if ours, theirs := gathered(t, b.ours), gathered(t, b.prometheus); ours != theirs {
			t.Fatalf("ours:\n%s\ntheirs:\n%s", ours, theirs)
		}
	}
}

// A label that is no UTF-8 fails no scrape, and is no two labels.
func TestALabelThatIsNoTextFailsNoScrape(t *testing.T) {
	b := newBoth()
	b.families[1].Set(1, "shop", "orders", "a\xffb")
	families, err := b.ours.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if labels := families[0].Metric[0].Label; len(labels) != 3 || labels[1].GetValue() != "a�b" {
		t.Errorf("labels %v", labels)
	}
}

// A cluster is not kept waiting by a scrape that does not read on.
func TestAScrapeKeepsNoClusterWaiting(_ *testing.T) {
	b := newBoth()
	b.families[0].Set(1, "shop", "orders")
	b.families[1].Set(1, "shop", "orders", "a")
	to := make(chan prometheus.Metric)
	go b.store.Collect(to)
	<-to
	b.families[0].Set(2, "shop", "orders") // a deadlock ends the test
	b.store.Forget("shop", "orders")
	<-to
}

// A series of a cluster takes few bytes: 50 of them less than 5 KiB, where they take 2 KiB, and vectors of
// Prometheus' library 17 KiB.
func TestSeriesTakeLittleMemory(t *testing.T) {
	const clusters, kinds, most = 2000, 50, 5 << 10
	store := series.NewStore("ns", "cluster")
	f := store.Counter("counter_total", "Help.", "kind")
	words := make([]string, kinds)
	for i := range words {
		words[i] = fmt.Sprint("kind-", i)
	}
	before := live()
	for i := range clusters {
		name := fmt.Sprintf("cluster-%06d", i)
		for _, word := range words {
			f.Add(1, "shop", name, word)
		}
	}
	if each := (live() - before) / clusters; each > most {
		t.Errorf("%d series take %d bytes", kinds, each)
	} else {
		t.Logf("%d series take %d bytes", kinds, each)
	}
	runtime.KeepAlive(store)
}

// live is what is on the heap and reachable, in bytes.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
