package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/certificates"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestCertificates(t *testing.T) {
	found := func(change func(*state.Certificates)) mutation {
		return func(s *situation.Situation) { change(&s.Observed.Certificates) }
	}
	missing := found(func(c *state.Certificates) { c.Missing = []string{"orders-ca", "orders-peer"} })
	narrow := found(func(c *state.Certificates) { c.MissingSANs = []string{"orders-peer"} })
	old := found(func(c *state.Certificates) { c.Due = []string{"orders-server"} })
	secured := speaking(schema.TLSManaged, "")
	asleep := func(s *situation.Situation) {
		for i := range s.Observed.Pods {
			s.Observed.Pods[i].Ready, s.Observed.Pods[i].EtcdReady = false, false
		}
		s.Observed.Rounds = nil
	}
	leaf := found(func(c *state.Certificates) { c.Missing = []string{"orders-peer"} })
	clients := found(func(c *state.Certificates) { c.Missing = []string{"orders-ca", "orders-server", "orders-client"} })
	members := found(func(c *state.Certificates) { c.Missing = []string{"orders-peer-ca", "orders-peer"} })
	bad := found(func(c *state.Certificates) { c.Problems = []string{"orders-server expired on 2026-02-28"} })
	checkRule(t, certificates.Issue, []ruleCase{
		{name: "143: good ones pass"},
		{name: "143: missing ones are issued", change: with(missing, asleep), want: "issue certificates: members and clients identify themselves with certificates; missing: orders-ca, orders-peer"},
		{name: "565: not by another authority than members that serve trust", change: with(members, secured), want: "Unhealthy: certificates: orders-peer-ca, orders-peer are gone, and orders-2 serves, which trusts no other authority; put these Secrets back from a backup; where there is none, delete the pods of all members at once"},
		{name: "565: nor for clients", change: with(clients, secured), want: "Unhealthy: certificates: orders-ca, orders-server, orders-client are gone"},
		{name: "565: when none serves all is issued anew", change: with(members, secured, asleep), want: "issue certificates"},
		{name: "565: a certificate alone is issued by the authority that is there", change: with(leaf, secured), want: "issue certificates"},
		{name: "585: members without TLS trust none", change: with(members, speaking(schema.TLSDisabled, "")), want: "issue certificates"},
		{name: "143: nor do those of a cluster that has not formed", change: with(members, secured, unformed), want: "issue certificates"},
		{name: "the record comes first", change: with(missing, old, func(s *situation.Situation) { s.Observed.Record = nil })},
		{name: "148: an expired one holds, whatever is missing", change: with(missing, old, bad), want: "Unhealthy: certificates: orders-server expired on 2026-02-28; nothing is restarted meanwhile"},
		{name: "those for too few members are issued again", change: narrow, want: "widen certificates: they were issued for fewer members"},
		{name: "but not before those that are missing", change: with(narrow, missing, asleep), want: "issue certificates"},
		{name: "nor beside one that is bad", change: with(narrow, bad), want: "Unhealthy: certificates"},
		{name: "145: old ones are issued again", change: old, want: "renew certificates: two thirds of their life are over"},
		{name: "those for too few members first, which makes them young", change: with(narrow, old), want: "widen certificates"},
	})
}

func TestClients(t *testing.T) {
	wanting := func(s *situation.Situation) {
		s.Observed.Certificates.Clients = []state.ClientCertificate{{Secret: "orders-client-checkout", Why: "is missing"}, {Secret: "reports-etcd", Why: "is past two thirds of its life"}}
	}
	foreign := func(s *situation.Situation) {
		s.Observed.Certificates.ForeignClients = []string{"the Secret orders-client-checkout is not quorate's"}
	}
	checkRule(t, certificates.Clients, []ruleCase{
		{name: "495: good ones pass"},
		{name: "495: others are issued, and why is said", change: wanting, want: "issue certificates of clients: applications identify themselves with certificates: orders-client-checkout is missing; reports-etcd is past two thirds of its life"},
		{name: "495: somebody else's Secret is not this rule's", change: foreign},
	})
	checkRule(t, certificates.Expiry, []ruleCase{
		{name: "495: somebody else's Secret is reported last", change: foreign, want: "Unhealthy: the Secret orders-client-checkout is not quorate's; delete or rename the Secret, or name another one in spec.tls.clients"},
		{name: "495: what is wanting is not its to report", change: wanting},
	})
	checkRule(t, certificates.Issue, []ruleCase{
		{name: "495: neither keeps the members waiting", change: with(wanting, foreign)},
	})
}

func TestExpiry(t *testing.T) {
	ending := func(mode schema.TLSMode, in, notice time.Duration) mutation {
		return func(s *situation.Situation) {
			s.Desired.Spec.TLS.Mode = mode
			s.Observed.Certificates.Ending, s.Observed.Certificates.Ends, s.Observed.Certificates.Notice = "orders-ca", noon.Add(in), noon.Add(notice)
		}
	}
	checkRule(t, certificates.Expiry, []ruleCase{
		{name: "without certificates there is none to expire"},
		{name: "148: before its last sixth there is time enough", change: ending(schema.TLSSecrets, time.Hour, time.Second)},
		{name: "148: a person's is reported from then on", change: ending(schema.TLSSecrets, 24*time.Hour, 0), want: "Unhealthy: the certificate in the Secret orders-ca expires on 2026-03-02, and quorate cannot renew it; replace the content of that Secret"},
		{name: "148: and so is an authority of quorate's", change: ending(schema.TLSManaged, time.Hour, -time.Hour), want: "Unhealthy: the certificate in the Secret orders-ca expires on 2026-03-01, and quorate cannot renew it; check what keeps quorate from making new authorities"},
	})
}
