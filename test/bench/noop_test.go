package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Each benchmark of the table is where it is run.
func TestEachBenchmarkExists(t *testing.T) {
	for benchmark, pkg := range benchmarks() {
		list := exec.CommandContext(t.Context(), "go", "test", pkg, "-list", "^Benchmark"+benchmark+"$")
		list.Dir = "../.."
		if out, err := list.CombinedOutput(); err != nil || !strings.Contains(string(out), "Benchmark"+benchmark+"\n") {
			t.Errorf("%s has no benchmark %s: %v, %s", pkg, benchmark, err, out)
		}
	}
}

func TestEachFigureIsReadByItsUnit(t *testing.T) {
	read := func(line string) (noop, bool, error) {
		r, is, err := parseResult("NoOpPass1000Clusters", line)
		if !is || err != nil {
			return noop{}, is, err
		}
		n, err := noopOf(r)
		return n, is, err
	}
	got, is, err := read("BenchmarkNoOpPass1000Clusters-2\t       3\t 106000000 ns/op\t         0 api-requests/op\t         0.106 ms/cluster\t15700000 B/op\t  190002 allocs/op\n")
	if want := (noop{took: 106 * time.Millisecond, allocs: 190002}); err != nil || !is || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, _, err := read("BenchmarkNoOpPass1000Clusters-2\t       3\t 106000000 ns/op\n"); err == nil {
		t.Error("a line without the number of API requests is taken for none")
	}
	if _, _, err := read("BenchmarkNoOpPass1000Clusters-2\t       3\t 0 api-requests/op\n"); err == nil {
		t.Error("a line without a time is taken for none")
	}
	for _, line := range []string{"PASS\n", "BenchmarkNoOpPass1000ClustersOfOthers-2 1 5 ns/op\n", "goos: linux\n"} {
		if _, is, err := read(line); is || err != nil {
			t.Errorf("%q is taken for a result: %v", line, err)
		}
	}
}
