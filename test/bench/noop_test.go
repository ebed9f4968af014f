package main

import (
	"testing"
	"time"
)

func TestParseNoopReadsEachFigureByItsUnit(t *testing.T) {
	got, err := parseNoop("BenchmarkNoOpPass1000Clusters-2\t       3\t 106000000 ns/op\t         0 api-requests/op\t         0.106 ms/cluster\t15700000 B/op\t  190002 allocs/op\n")
	if want := (noop{took: 106 * time.Millisecond, allocs: 190002}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := parseNoop("BenchmarkNoOpPass1000Clusters-2\t       3\t 106000000 ns/op\n"); err == nil {
		t.Error("a line without the number of API requests is taken for none")
	}
}
