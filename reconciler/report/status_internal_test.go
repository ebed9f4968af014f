package report

import (
	"testing"

	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/state"
)

// What the planner measures is left out of its sentences.
func TestSentencesAreSteady(t *testing.T) {
	v := &observe.View{Observed: state.Observed{Rounds: []state.Round{{Members: []state.Member{{Name: "orders-1", Problem: "connection refused"}}}}}}
	for text, want := range map[string]string{
		"orders-2 is 8120 entries behind the leader":                                                                             "orders-2 is behind the leader",
		"orders-2 has applied 7 of 4711 entries":                                                                                 "orders-2 has not applied all entries",
		"250Mi of its file of 300Mi are free":                                                                                    "much of its file is free",
		"its file has 1.95Gi of a quota of 2Gi, and 12.5Mi of that can be given back":                                            "its file comes near its quota of 2Gi, and some of that can be given back",
		"1 answer (orders-0 answers, at revision 1200, raft term 7 and index 5000)":                                              "1 answer (orders-0 answers)",
		"orders-0 is at revision 7 and should be at 9 or later, so that":                                                         "orders-0 is at an earlier revision than it should be, so that",
		"orders-0 and orders-1 hold different data at revision 12":                                                               "orders-0 and orders-1 hold different data",
		"orders-1 does not answer: connection refused; look at it":                                                               "orders-1 does not answer; look at it",
		"Service orders: it was put back 3 times and changed again by me each time; it is put back next at 2026-03-01T14:00:00Z": "Service orders: it was put back again and again, and changed again by me each time",
		"spec.ports (by kubectl-edit at 2026-03-01T14:00:00Z)":                                                                   "spec.ports (by kubectl-edit)",
		"3.5.35 → 3.6.16: 3.6 takes a snapshot every 10000 entries instead of 100000":                                            "3.5.35 → 3.6.16: 3.6 takes a snapshot every 10000 entries instead of 100000",
		"2 left to go": "2 left to go",
	} {
		if got := steady(v, text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
