// Package certificates has the rules about certificates: what is missing is issued, what grows old is
// renewed, what applications show as well, authorities change while everybody works, and what only a
// person can mend is told.
package certificates

import (
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/bundles"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Issue issues what is missing, renews what grows old, and holds on what is wrong.
func Issue(s *situation.Situation) verdict.Verdict {
	c := s.Observed.Certificates
	missing := gone(s)
	switch {
	case len(c.Problems) > 0:
		return verdict.Unhealthy("certificates: "+strings.Join(c.Problems, "; "),
			"nothing is restarted meanwhile, since a member that restarts could not rejoin; replace the Secrets named here").Again(verdict.Later)
	case s.Observed.Record == nil:
		return verdict.Pass()
	case c.Rotation != nil && c.Rotation.Over != "":
		return revive(s)
	case lost(c.Issuers) != "":
		return verdict.Do(action.PublishTrust{Secret: lost(c.Issuers), Bundle: state.BundleIssuers}, "members mount it, and none of them starts without it")
	case len(c.Trust.Gone) > 0:
		return bundles.Gone(s)
	case bereft(s) != "":
		return verdict.Unhealthy("certificates: "+strings.Join(c.Missing, ", ")+" are gone, and "+bereft(s)+" serves, which trusts no other authority",
			"put these Secrets back from a backup; where there is none, delete the pods of all members at once: when none serves, all is issued anew").Again(verdict.Later)
	case len(c.Missing) > 0:
		return verdict.Do(action.IssueCertificates{Secrets: c.Missing}, "members and clients identify themselves with certificates; missing: "+strings.Join(c.Missing, ", "))
	case strangers(s) != "":
		return reunite(s)
	case missing != "":
		return verdict.Do(action.PublishTrust{Secret: missing}, "members mount it, and none of them starts without it")
	case len(c.MissingSANs) > 0:
		return verdict.Do(action.ReissueCertificates{Secrets: c.MissingSANs},
			"they were issued for fewer members than Git wants; the same authority signs, and members load a certificate when they need it")
	case len(c.Due) > 0:
		return verdict.Do(action.RenewCertificates{Secrets: c.Due},
			"two thirds of their life are over; the same authority signs, and members load a certificate when they need it")
	}
	return verdict.Pass()
}

// bereft names a member that serves with certificates of an authority that is gone with all that it has
// signed, "" for none. Members read whom they trust when they start: what another authority signs would
// be refused by all of them, and they would refuse each other.
func bereft(s *situation.Situation) string {
	gone := slices.ContainsFunc(s.Observed.Certificates.Missing, func(secret string) bool {
		return secret == s.Desired.Name+naming.AuthoritySuffix || secret == s.Desired.Name+naming.PeerAuthoritySuffix
	})
	if !gone || !state.SameIssuer(s.Observed.Transport.Secured(), schema.TLSManaged) {
		return ""
	}
	return serves(s)
}

// Clients issues what applications identify themselves with. It stands below what brings a
// cluster back, which does not need them, and above what may wait for long.
func Clients(s *situation.Situation) verdict.Verdict {
	var secrets, reasons []string
	for _, c := range s.Observed.Certificates.Clients {
		secrets = append(secrets, c.Secret)
		reasons = append(reasons, c.Secret+" "+c.Why)
	}
	if len(secrets) == 0 {
		return verdict.Pass()
	}
	return verdict.Do(action.IssueClientCertificates{Secrets: secrets}, "applications identify themselves with certificates: "+strings.Join(reasons, "; "))
}

// Expiry reports what only a person can mend: a certificate that is about to expire, and a
// Secret of somebody else where an application's is to be. It stands last: the cluster runs
// well until then, so nothing waits for it.
func Expiry(s *situation.Situation) verdict.Verdict {
	c := s.Observed.Certificates
	if len(c.ForeignClients) > 0 {
		return verdict.Unhealthy(strings.Join(c.ForeignClients, "; "), "delete or rename the Secret, or name another one in spec.tls.clients").Again(verdict.Later)
	}
	if !c.Expiring(s.Now) {
		return verdict.Pass()
	}
	do := "replace the content of that Secret; members load a new certificate when they need it, without a restart"
	if s.Desired.Spec.TLS.Mode == schema.TLSManaged {
		do = "check what keeps quorate from making new authorities, which it does from two thirds of their life on; spec.tls.rotate with a new word asks for it, too"
	}
	return verdict.Unhealthy("the certificate in the Secret "+c.Ending+" expires on "+c.Ends.UTC().Format(time.DateOnly)+", and quorate cannot renew it", do).Again(verdict.Rarely)
}
