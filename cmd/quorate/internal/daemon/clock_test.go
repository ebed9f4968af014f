package daemon

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// 373: the clocks are compared by what a real client is answered. While the own one is ahead
// of the API server's by more than a minute, waits count from the server's time; and the
// difference is in a metric.
func TestTheClocksAreCompared(t *testing.T) {
	var behind time.Duration
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-behind).UTC().Format(http.TimeFormat))
		_, _ = w.Write([]byte(`{"major":"1"}`))
	}))
	defer server.Close()
	c, registry := &ServerClock{}, prometheus.NewRegistry()
	newMetrics(registry, "test", c)
	config := &rest.Config{Host: server.URL}
	config.Wrap(c.Listen)
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		behind  time.Duration
		counted bool
	}{{0, false}, {time.Hour, true}, {0, false}, {-time.Hour, false}} {
		behind = want.behind
		if err := Reachable(t.Context(), kube); err != nil {
			t.Fatal(err)
		}
		// How long the answer took on this machine is in neither.
		if ahead := c.Ahead(); (ahead - want.behind).Abs() > time.Minute {
			t.Errorf("%s behind: ahead by %s", want.behind, ahead)
		}
		if back := time.Until(c.Now()); (back < -50*time.Minute) != want.counted {
			t.Errorf("%s behind: waits count from %s", want.behind, back)
		}
		if off := time.Until(c.ServerNow()) + want.behind; off.Abs() > time.Minute {
			t.Errorf("%s behind: its time is off by %s", want.behind, off)
		}
		if told := gauge(t, registry, "quorate_clock_skew_seconds"); told != c.Ahead().Seconds() {
			t.Errorf("%s behind: the metric says %v", want.behind, told)
		}
	}
}

// gauge is the value of a metric without labels.
func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
