package inspect_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/inspect"
	"github.com/quorate/quorate/reconciler/modes"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

const day = 24 * time.Hour

// issued are the Secrets of a cluster whose certificates live so long, and the question about them.
func issued(t *testing.T, life time.Duration, now time.Time) (inspect.Question, map[string]*corev1.Secret) {
	t.Helper()
	c := clustertest.Orders(func(c *schema.EtcdCluster) {
		c.Spec.TLS.Mode, c.Spec.TLS.Lifetimes.Certificate = schema.TLSManaged, &metav1.Duration{Duration: life}
	})
	schema.Default(&c)
	m := modes.Modes{Git: c.Spec.TLS, Is: state.Transport{Own: schema.TLSManaged}, Certified: schema.TLSManaged}
	return inspect.Question{Cluster: desired.Cluster{EtcdCluster: c}.Identified(), Modes: m, ClusterDomain: "cluster.local", Now: now}, etcdtest.Certificates(t, c, now)
}

// A finding about unchanged Secrets is kept for a hundredth of what their first certificate has left,
// a minute at least and an hour at most.
func TestFindingsAreKeptByTheLifeThatIsLeft(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ life, kept time.Duration }{
		{365 * day, time.Hour},
		{30 * day, time.Hour},
		{3 * day, 14 * time.Minute},
		{time.Hour, time.Minute},
	} {
		q, secrets := issued(t, c.life, start)
		var checks inspect.Checks
		due := func(at time.Time) bool {
			q.Now = at
			return len(checks.Check(q, secrets, secrets).Status.Due) > 0
		}
		begin := start.Add(-5 * time.Minute) // of its life, for the clocks of others
		renewal := begin.Add((c.life + 5*time.Minute) * 2 / 3)
		last := renewal.Add(-time.Second)
		switch {
		case due(last):
			t.Errorf("one of %s is due before two thirds of its life", c.life)
		case due(last.Add(c.kept - 5*time.Second)):
			t.Errorf("one of %s is checked again within %s", c.life, c.kept)
		case !due(last.Add(c.kept + time.Minute)):
			t.Errorf("one of %s is not checked again after %s", c.life, c.kept)
		}
	}
}

// What is wrong is looked at again within a minute.
func TestDefectsAreNotKept(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	q, secrets := issued(t, 365*day, start)
	var checks inspect.Checks
	q.Now = start.Add(-10 * time.Minute)
	if len(checks.Check(q, secrets, secrets).Status.Problems) == 0 {
		t.Fatal("certificates of the future are good")
	}
	q.Now = q.Now.Add(6 * time.Minute)
	if p := checks.Check(q, secrets, secrets).Status.Problems; len(p) > 0 {
		t.Errorf("six minutes later, when they are valid: %q", p)
	}
}

// What was found while the clock was ahead is not kept once it is set back.
func TestWhatAClockThatWasAheadHasFoundIsNotKept(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	q, secrets := issued(t, 365*day, start)
	var checks inspect.Checks
	q.Now = start.Add(300 * day)
	if len(checks.Check(q, secrets, secrets).Status.Due) == 0 {
		t.Fatal("nothing is due after two thirds of a life")
	}
	q.Now = start
	if due := checks.Check(q, secrets, secrets).Status.Due; len(due) > 0 {
		t.Errorf("due are %q", due)
	}
}

// That the members have come to another issuer is seen at once, though the Secrets are as before.
func TestAnotherIssuerIsSeenAtOnce(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	q, secrets := issued(t, 365*day, start)
	var checks inspect.Checks
	if checks.Check(q, secrets, secrets).Issuers != nil {
		t.Error("a cluster of one issuer has two")
	}
	one := q.Modes
	q.Modes.Git.Mode = schema.TLSSecrets
	if checks.Check(q, secrets, secrets).Issuers == nil {
		t.Error("the other issuer is not seen")
	}
	if q.Modes = one; checks.Check(q, secrets, secrets).Issuers != nil {
		t.Error("the other issuer is still seen")
	}
}
