package plan

import (
	"testing"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// Certificates for too few members are reissued before anything joins; one
// that is missing comes first, and one that is bad holds.
func TestCertificatesThatAreNarrow(t *testing.T) {
	for name, test := range map[string]struct {
		certificates state.Certificates
		want         string
	}{
		"good":              {state.Certificates{}, ""},
		"narrow":            {state.Certificates{MissingSANs: []string{"orders-peer"}}, "widen certificates"},
		"narrow and gone":   {state.Certificates{MissingSANs: []string{"orders-peer"}, Missing: []string{"orders-server"}}, "issue certificates"},
		"narrow and broken": {state.Certificates{MissingSANs: []string{"orders-peer"}, Problems: []string{"orders-ca expired"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &situation.Situation{Observed: state.Observed{Record: &state.Record{}, Certificates: test.certificates}}
			v := certificates(s)
			got := ""
			if v.step != nil {
				got = v.step.Action.String()
			}
			if got != test.want || (v.hold != nil) != (len(test.certificates.Problems) > 0) {
				t.Errorf("step %q, hold %+v, want %q", got, v.hold, test.want)
			}
		})
	}
}
