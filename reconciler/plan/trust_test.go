package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/bundles"
	"github.com/quorate/quorate/reconciler/plan/certificates"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// trusting is a cluster whose certificates another program issues, and whose members trust what the
// Secrets have said for an hour, but for the changes.
func trusting(changes ...func(*state.Trust)) mutation {
	return func(s *situation.Situation) {
		t := state.Trust{Wanted: "new", ChangedAt: noon.Add(-time.Hour), Kept: []string{"new"}, Running: []string{"new"}}
		for _, change := range changes {
			change(&t)
		}
		s.Observed.Certificates.Trust = t
	}
}

// 592, 593: what members trust is kept, and another bundle is taken up by a roll, when every
// certificate is trusted before and after, and all have reached the pods.
func TestTrustOfAnotherIssuer(t *testing.T) {
	old := func(t *state.Trust) { t.Kept, t.Running = []string{"old"}, []string{"old"} }
	mounts := func(name string) func(*state.Trust) { return func(t *state.Trust) { t.Mounted = name } }
	young := func(age time.Duration) func(*state.Trust) {
		return func(t *state.Trust) { t.ChangedAt = noon.Add(-age) }
	}
	refused := trusting(old, func(t *state.Trust) { t.Refused = []string{"the certificate in their-peer is signed by a stranger"} })
	gone := func(name string) mutation {
		return trusting(mounts(name), func(t *state.Trust) { t.Kept, t.Gone = nil, []string{name} })
	}
	checkRule(t, bundles.TakeUp, []ruleCase{
		{name: "quorate's own certificates are not its business"},
		{name: "what the Secrets have is kept, and nothing is to be done"},
		{name: "not so yet: it is kept", change: trusting(func(t *state.Trust) { t.Kept = nil }), want: "keep what members trust in new: members read the ca.crt of their Secrets only when they start"},
		{name: "before the cluster has formed nothing is kept", change: with(unformed, trusting(func(t *state.Trust) { t.Kept = nil }))},
		{name: "another one waits for the kubelets", change: trusting(old, young(time.Minute)), want: "Waiting: the ca.crt of a Secret has changed, which members read only when they start; the kubelets have until 2026-03-01T12:02:00Z"},
		{name: "then it is kept", change: trusting(old, young(3*time.Minute)), want: "keep what members trust in new: the ca.crt of a Secret has changed, and every certificate is trusted by it and by the one from before"},
		{name: "one that is kept is rolled out by other rules", change: trusting(old, func(t *state.Trust) { t.Kept = []string{"new", "old"} })},
		{name: "without a StatefulSet there is nothing to roll", change: with(trusting(old), func(s *situation.Situation) { s.Observed.Set = nil })},
		{name: "also where one is mounted", change: trusting(old, mounts("old")), want: "keep what members trust in new"},
		{name: "not while a roll is under way", change: with(rolling, trusting(old))},
		{name: "one that is kept, but is younger than the certificates, waits too", change: trusting(old, young(time.Minute), func(t *state.Trust) { t.Kept = []string{"new", "old"} }), want: "Waiting: "},
		{name: "after the roll the one before is deleted", change: trusting(mounts("new"), func(t *state.Trust) { t.Kept = []string{"old", "new"} }), want: "keep what members trust in new: every member that runs trusts what the Secrets say now"},
		{name: "members that all started since trust what the Secrets have now", change: trusting(func(t *state.Trust) { t.Kept = []string{"old"} }), want: "keep what members trust in new: every member that runs trusts what the Secrets say now"},
		{name: "Secrets that say nothing change nothing", change: trusting(old, func(t *state.Trust) { t.Wanted = "" })},
	})
	checkRule(t, bundles.Trusted, []ruleCase{
		{name: "every certificate is trusted", change: trusting(old)},
		{name: "593: one is not", change: refused, want: "Unhealthy: the certificate in their-peer is signed by a stranger; put back the certificate from before"},
	})
	checkRule(t, certificates.Issue, []ruleCase{
		{name: "593: a member that does not trust another does not keep a lost quorum from being recovered", change: refused},
		{name: "what is mounted and gone is made again", change: gone("new"), want: "keep what members trust in new: members mount it, and none of them starts without it"},
		{name: "593: unless the Secrets say another thing", change: gone("old"), want: "Unhealthy: the Secret old is gone, which members mount, and none of them starts without it; put the ca.crt that it had back"},
	})
}

// The template mounts another bundle only when that is safe, and goes back to none never.
func TestTheTargetOfTrust(t *testing.T) {
	for name, c := range map[string]struct {
		trust state.Trust
		want  string
	}{
		"no certificates of another issuer": {},
		"never changed":                     {state.Trust{Wanted: "a", Kept: []string{"a"}, Running: []string{"a"}}, ""},
		"changed, and not kept":             {state.Trust{Wanted: "b", Kept: []string{"a"}, Running: []string{"a"}}, ""},
		"changed, and kept":                 {state.Trust{Wanted: "b", Kept: []string{"a", "b"}, Running: []string{"a"}}, "b"},
		"kept, and the pods lag behind":     {state.Trust{Wanted: "b", Kept: []string{"a", "b"}, Running: []string{"a"}, ChangedAt: noon.Add(-time.Minute)}, ""},
		"kept, and a certificate refused":   {state.Trust{Wanted: "b", Kept: []string{"a", "b"}, Running: []string{"a"}, Refused: []string{"x"}}, ""},
		"in the midst of the roll":          {state.Trust{Wanted: "b", Kept: []string{"a", "b"}, Running: []string{"a", "b"}, Mounted: "b", ChangedAt: noon}, "b"},
		"changed again in the midst of it":  {state.Trust{Wanted: "c", Kept: []string{"a", "b"}, Running: []string{"a", "b"}, Mounted: "b"}, "b"},
		"taken back":                        {state.Trust{Wanted: "a", Kept: []string{"a", "b"}, Running: []string{"a", "b"}, Mounted: "b"}, "a"},
		"Secrets that say nothing":          {state.Trust{Kept: []string{"a", "b"}, Running: []string{"b"}, Mounted: "b"}, "b"},
	} {
		if got := c.trust.Target(noon); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
