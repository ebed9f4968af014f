package checks_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/freeport"
	"github.com/quorate/quorate/test/needs"
)

// queryOf is a check by a query.
func queryOf(u, query string) schema.UpgradeCheck {
	return schema.UpgradeCheck{Name: "errors", Prometheus: &schema.PrometheusCheck{URL: u, Query: query}}
}

// startPrometheus starts one that scrapes itself, in vain where it is not, and returns its address.
func startPrometheus(t *testing.T) string {
	t.Helper()
	prometheus := needs.Program(t, "prometheus")
	address, err := freeport.At("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: good, metrics_path: /prefix/metrics, static_configs: [{targets: [%[1]q]}]}, {job_name: bad, static_configs: [{targets: [%[1]q]}]}]\n", address)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), prometheus, "--config.file=prometheus.yml", "--storage.tsdb.path=data",
		"--web.listen-address="+address, "--web.route-prefix=/prefix")
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return address
}

// A real Prometheus: what a query must return, and what people write who expect another thing. While it
// is not there, has nothing yet, or cannot answer, no check holds.
func TestAQueryOfPromQLHoldsWhenItIsOne(t *testing.T) {
	address := startPrometheus(t)
	base := "http://" + address + "/prefix"
	scraped := queryOf(base, `count(up) == bool 2 and on() up{job="good"} == 1`)
	tries := 0
	for got := ask(t, scraped, address); got.Problem != ""; got = ask(t, scraped, address) {
		if tries++; tries > 1200 {
			t.Fatalf("never scraped: %s, %s", got.Problem, got.Detail)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if tries == 0 {
		t.Error("a check holds before there is anything")
	}
	for query, want := range map[string]string{
		`1`:                       "",
		`vector(1)`:               "",
		`min(up) >= bool 0`:       "",
		`vector(0.05) < bool 0.1`: "",
		`vector(0.5) < bool 0.1`:  "the query of URL is not 1 (one of 1 values is 0)",
		`vector(0.05) < 0.1`:      "the query of URL is not 1 (one of 1 values is 0.05)",
		`vector(0.5) < 0.1`:       "the query of URL has no result ()",
		`up == 1`:                 "", // which leaves out what is not: a trap of PromQL, and told in the reference
		`nothing_of_this_name`:    "the query of URL has no result ()",
		`0 / 0`:                   "the query of URL is not 1 (one of 1 values is NaN)",
		`up[5m]`:                  "the query of URL must return a scalar or an instant vector ()",
		`"1"`:                     "the query of URL must return a scalar or an instant vector ()",
		`sum(`:                    "HTTP 400 from URL (bad_data) ()",
		`vector(1) + on() group_left() (up or vector(2))`: "HTTP 422 from URL (execution) ()",
	} {
		got := ask(t, queryOf(base+"/", query), address)
		told := got.Problem
		if told != "" {
			told += " (" + got.Detail + ")"
		}
		if want = strings.ReplaceAll(want, "URL", base+"/"); told != want {
			t.Errorf("%s: %q, want %q", query, told, want)
		}
	}
}

// What answers in another way than a Prometheus that knows everything does not hold.
func TestAnAnswerThatIsNoResultDoesNotHold(t *testing.T) {
	const good = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}`
	var asked *http.Request
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r
		if status := r.URL.Query().Get("query"); strings.HasPrefix(status, "4") {
			w.WriteHeader(http.StatusForbidden)
		}
		fmt.Fprint(w, strings.TrimPrefix(r.URL.Query().Get("query"), "4"))
	})
	for answer, want := range map[string]string{
		good:       "",
		"4" + good: "HTTP 403 from URL",
		`4{"status":"error","errorType":"<script>","error":"s3cret"}`:    "HTTP 403 from URL",
		`4{"status":"error","errorType":"unavailable","error":"s3cret"}`: "HTTP 403 from URL (unavailable)",
		``:          "the answer of URL is not that of a Prometheus",
		`<html>`:    "the answer of URL is not that of a Prometheus",
		good + good: "the answer of URL is not that of a Prometheus",
		`{"status":"error","data":{"resultType":"scalar","result":[1,"1"]}}`:                                         "the answer of URL is not that of a Prometheus",
		`{"status":"success","warnings":["s3cret"],"data":{"resultType":"scalar","result":[1,"1"]}}`:                 "the answer of URL has warnings, and may be incomplete",
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{"count":"1"}]}]}}`: "the query of URL must return a scalar or an instant vector",
		`{"status":"success","data":{"resultType":"vector","result":[{"value":[1,"1"]},{"value":[1,"2"]}]}}`:         "the query of URL is not 1",
		`{"status":"success","data":{"resultType":"vector","result":null}}`:                                          "the query of URL has no result",
		`{"status":"success","data":{"resultType":"vector","result":{}}}`:                                            "the query of URL must return a scalar or an instant vector",
		`{"status":"success","data":{"resultType":"scalar","result":{}}}`:                                            "the query of URL must return a scalar or an instant vector",
		`{"status":"success","data":{"resultType":"scalar","result":[1,1]}}`:                                         "the query of URL must return a scalar or an instant vector",
		`{"status":"success","data":{"resultType":"scalar","result":[1]}}`:                                           "the query of URL must return a scalar or an instant vector",
		`{"status":"success","data":{"resultType":"scalar","result":[1,"s3cret"]}}`:                                  "the query of URL must return a scalar or an instant vector",
		`{"status":"success","data":{"resultType":"vector"}}`:                                                        "the query of URL must return a scalar or an instant vector",
		`{}`: "the answer of URL is not that of a Prometheus",
	} {
		got := ask(t, queryOf(s.URL, answer), s.host(t))
		if got.Problem != strings.ReplaceAll(want, "URL", s.URL) || strings.Contains(got.Detail, "s3cret") {
			t.Errorf("%s: %q (%s), want %q", answer, got.Problem, got.Detail, want)
		}
	}
	if asked.Method != http.MethodGet || asked.URL.Path != "/api/v1/query" || asked.URL.Query().Get("timeout") != "5s" {
		t.Errorf("%s %s", asked.Method, asked.URL)
	}
}

// An answer without an end costs no memory, and no more time than a check has.
func TestAnAnswerWithoutAnEndDoesNotHold(t *testing.T) {
	var sent atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow/api/v1/query" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		for r.Context().Err() == nil {
			n, _ := fmt.Fprint(w, strings.Repeat("a", 1<<16))
			sent.Add(int64(n))
		}
	})
	much := queryOf(s.URL+"/much", "up")
	much.Timeout = httpCheck("").Timeout
	for want, check := range map[string]schema.UpgradeCheck{" has more than 1 MiB: aggregate in the query": much, " within 500ms": hasty(queryOf(s.URL+"/slow", "up"))} {
		if got := ask(t, check, s.host(t)); !strings.HasSuffix(got.Problem, want) {
			t.Errorf("%q, want %q", got.Problem, want)
		}
	}
	if n := sent.Load(); n > 32<<20 { // what the kernel buffers included
		t.Errorf("%d bytes were taken", n)
	}
}
