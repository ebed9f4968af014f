package preview

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/schema"
)

// 258: a pull request that changes what is done about drift says so, though it makes no
// step of its own.
func TestAPlanSaysWhatBecomesOfDrift(t *testing.T) {
	ignore := func(paths ...string) (list []schema.IgnoredDrift) {
		for _, path := range paths {
			list = append(list, schema.IgnoredDrift{Kind: "Service", Path: path, Reason: "the load balancer's controller sets it"})
		}
		return list
	}
	const detect, correct = "drift is only reported from then on", "drift is corrected from then on"
	for name, tc := range map[string]struct {
		before, after schema.DriftSpec
		says          []string
	}{
		"nothing":              {schema.DriftSpec{}, schema.DriftSpec{}, nil},
		"the default":          {schema.DriftSpec{}, schema.DriftSpec{Mode: schema.DriftCorrect}, nil},
		"to Detect":            {schema.DriftSpec{}, schema.DriftSpec{Mode: schema.DriftDetect}, []string{detect}},
		"to Correct":           {schema.DriftSpec{Mode: schema.DriftDetect}, schema.DriftSpec{Mode: schema.DriftCorrect}, []string{correct}},
		"without a mode":       {schema.DriftSpec{Mode: schema.DriftDetect}, schema.DriftSpec{}, []string{correct}},
		"one more is ignored":  {schema.DriftSpec{Ignore: ignore("/spec/a")}, schema.DriftSpec{Ignore: ignore("/spec/b", "/spec/a")}, []string{"/spec/b of the Service for clients is no drift from then on"}},
		"one is no more":       {schema.DriftSpec{Ignore: ignore("/spec/a")}, schema.DriftSpec{}, []string{"/spec/a of the Service for clients is drift again from then on: what others have set there is put back"}},
		"and is only reported": {schema.DriftSpec{Ignore: ignore("/spec/a")}, schema.DriftSpec{Mode: schema.DriftDetect}, []string{detect, "what others have set there is reported"}},
		"one is reported":      {schema.DriftSpec{Ignore: ignore("/spec/a")}, schema.DriftSpec{Ignore: []schema.IgnoredDrift{{Kind: "Service", Path: "/spec/a", Reason: "x", Report: true}}}, []string{"/spec/a of the Service for clients is left as others set it from then on: it is reported as drift, and never put back"}},
		"another reason":       {schema.DriftSpec{Ignore: ignore("/spec/a")}, schema.DriftSpec{Ignore: []schema.IgnoredDrift{{Kind: "Service", Path: "/spec/a", Reason: "another"}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			set := func(d schema.DriftSpec) func(c *schema.EtcdCluster) {
				return func(c *schema.EtcdCluster) { c.Spec.Drift = d }
			}
			r, _, _, _ := planOffline(t, clustertest.InGit(set(tc.before)), clustertest.InGit(set(tc.after)))
			got := slices.DeleteFunc(slices.Clone(r.Warnings), func(text string) bool { return !strings.Contains(text, "from then on") })
			if !slices.EqualFunc(got, tc.says, strings.Contains) {
				t.Errorf("got %q, want %q", got, tc.says)
			}
		})
	}
}

// 258: so does the plan of a pull request that asks the live clusters.
func TestAProposalSaysWhatBecomesOfDrift(t *testing.T) {
	before := revision(map[string]string{"orders.yaml": desiredtest.ClusterFile("orders", "3.6.16")})
	after := revision(map[string]string{"orders.yaml": desiredtest.ClusterFile("orders", "3.6.16") + "  drift: {mode: Detect}\n"})
	inForce := map[string]*desired.Cluster{}
	for _, c := range desired.Clusters(before.Set, "0a1b2c3", nil) {
		inForce[c.Key()] = &c
	}
	r, err := Proposal(t.Context(), &fakePlanner{}, inForce, before, after, offlineOptions())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Clusters) != 1 || strings.Count(strings.Join(r.Clusters[0].Warnings, "\n"), "drift is only reported from then on") != 1 {
		t.Errorf("it says %+v", r.Clusters)
	}
}
