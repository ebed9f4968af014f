package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/certificates"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// copied has copies in other namespaces not be as Git says.
func copied(all ...state.ClientCopy) mutation {
	return func(s *situation.Situation) { s.Observed.Certificates.Copies = all }
}

// copyTo is a copy that is missing, and leftIn one that is not wanted.
func copyTo(namespace string) state.ClientCopy {
	return state.ClientCopy{Secret: "orders-client-checkout", Namespace: namespace, Why: "is missing"}
}

func leftIn(namespace string) state.ClientCopy {
	return state.ClientCopy{Secret: "orders-client-checkout", Namespace: namespace, Why: "is no longer in spec.tls.clients", Unwanted: true}
}

// refusedCopy is one that was refused, and is tried again after some time.
func refusedCopy(c state.ClientCopy, in time.Duration) state.ClientCopy {
	c.Refused = &state.Refusal{Problem: `namespaces "` + c.Namespace + `" not found`, Since: noon, Until: noon.Add(in)}
	return c
}

func TestCopies(t *testing.T) {
	const write = "copy orders-client-checkout to namespace web: applications find their certificate in Secret web/orders-client-checkout, which is missing"
	const remove = "delete the copy of orders-client-checkout in namespace web: Secret web/orders-client-checkout is no longer in spec.tls.clients"
	checkRule(t, certificates.Copies, []ruleCase{
		{name: "498: good ones pass"},
		{name: "498: others are written, one at a time", change: copied(copyTo("web"), leftIn("lab")), want: write},
		{name: "498: what is no longer asked for is deleted", change: copied(leftIn("web")), want: remove},
		{name: "498: one that is refused waits, and the others do not", change: copied(refusedCopy(copyTo("lab"), time.Second), refusedCopy(leftIn("old"), time.Second), copyTo("web")), want: write},
		{name: "498: alone it keeps nothing waiting", change: copied(refusedCopy(copyTo("web"), time.Second))},
		{name: "498: it is tried again", change: copied(refusedCopy(copyTo("web"), 0)), want: write},
		{name: "498: before a deletion has begun nothing goes", change: with(asksState(schema.StateDeleted), copied(leftIn("web")))},
		{name: "499: while members still have certificates that the mode does not ask for, they stay", change: with(speaking(schema.TLSManaged, ""), wantsMode(schema.TLSDisabled), copied(leftIn("web")))},
		{name: "499: also while members speak both", change: with(speaking(schema.TLSDisabled, schema.TLSManaged), wantsMode(schema.TLSDisabled), copied(leftIn("web")))},
		{name: "499: and go when that is over", change: with(speaking(schema.TLSDisabled, ""), wantsMode(schema.TLSDisabled), copied(leftIn("web"))), want: remove},
		{name: "499: what is asked for is written meanwhile", change: with(speaking(schema.TLSDisabled, ""), wantsMode(schema.TLSManaged), copied(copyTo("web"), leftIn("old"))), want: write},
		{name: "499: so they do before another program's certificates are shown", change: with(speaking(schema.TLSManaged, ""), wantsMode(schema.TLSSecrets), copied(leftIn("web")))},
		{name: "499: and while quorate's are trusted", change: with(handsOver(namedLeaves, schema.TLSSecrets, bothTrusted), copied(leftIn("web")))},
		{name: "499: and go when they are not", change: with(handsOver(namedLeaves, schema.TLSSecrets), copied(leftIn("web"))), want: remove},
		{name: "498: in mode Secrets nothing goes before a deletion has begun", change: with(handsOver(namedLeaves, schema.TLSSecrets), asksState(schema.StateDeleted), copied(leftIn("web")))},
		{name: "499: with TLS they go at once", change: with(speaking(schema.TLSManaged, ""), wantsMode(schema.TLSManaged), copied(leftIn("web"))), want: remove},
	})
	checkRule(t, certificates.Withdraw, []ruleCase{
		{name: "498: a cluster without copies leaves none"},
		{name: "498: copies go with the cluster", change: copied(leftIn("web")), want: "delete the copy of orders-client-checkout in namespace web: the cluster is deleted"},
		{name: "498: one that cannot be deleted keeps nothing", change: copied(refusedCopy(leftIn("lab"), time.Second), leftIn("web")), want: "delete the copy of orders-client-checkout in namespace web"},
		{name: "498: alone as well", change: copied(refusedCopy(leftIn("web"), time.Second))},
	})
}

// 498: a copy waits for no roll, and for nothing that a roll waits for: an upgrade that is asked for, one
// that has begun, and a member that is down.
func TestACopyComesBeforeARoll(t *testing.T) {
	for name, change := range map[string]mutation{
		"an upgrade":       commit(newVersion),
		"in the midst":     with(commit(newVersion), begun, rolled(newVersion, 2)),
		"a member is down": with(commit(newVersion), down(0)),
	} {
		s := healthy(3)
		with(change, copied(copyTo("web")))(s)
		p := Make(s.Desired, s.Observed, s.Now)
		if p.Hold != nil || len(p.Steps) == 0 || p.Steps[0].Action != (action.CopyCertificate{Secret: "orders-client-checkout", Namespace: "web"}) {
			t.Errorf("%s: %s", name, p.Text())
		}
	}
}

// 498: a copy that cannot be written or deleted is reported, with what to do, and nothing waits for it.
func TestCopiesThatCannotBeWrittenAreTold(t *testing.T) {
	s := healthy(3)
	copied(refusedCopy(copyTo("web"), time.Minute), refusedCopy(leftIn("old"), 0), refusedCopy(leftIn("older"), time.Second))(s)
	told := certificates.Warnings(s)
	want := []string{
		`Secret web/orders-client-checkout, the copy of an application's certificate, is not written: namespaces "web" not found; nothing waits for it, not even a change of the authorities`,
		`Secret old/orders-client-checkout, a copy of a certificate that is no longer wanted, is not deleted: namespaces "old" not found; let quorate delete it, or delete it by hand`,
		"Secret older/orders-client-checkout",
	}
	if len(told) != len(want) {
		t.Fatalf("told is %q", told)
	}
	for i := range want {
		if !strings.HasPrefix(told[i].Text, want[i]) {
			t.Errorf("told is %q, want %q", told[i].Text, want[i])
		}
	}
	p := Make(s.Desired, s.Observed, s.Now)
	if _, deletes := p.Steps[0].Action.(action.DeleteCopy); !deletes || len(p.Warnings) < 3 {
		t.Errorf("what may be tried again is: %s", p.Text())
	}
	s = healthy(3)
	with(commit(newVersion), copied(refusedCopy(copyTo("web"), time.Minute)))(s)
	p = Make(s.Desired, s.Observed, s.Now)
	if p.Hold != nil && p.Hold.Kind != decision.Confirm || len(p.Steps) < 4 {
		t.Errorf("an upgrade waits: %s", p.Text())
	}
	s = healthy(3)
	copied(leftIn("web"))(s)
	if told := certificates.Warnings(s); len(told) > 0 {
		t.Errorf("of what is about to be done it warns: %v", told)
	}
}
