package plan

import (
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/schema"
)

// certificates issues what is missing, renews what grows old, and holds on what is wrong.
func certificates(s *situation.Situation) verdict.Verdict {
	c := s.Observed.Certificates
	switch {
	case len(c.Problems) > 0:
		return verdict.Unhealthy("certificates: "+strings.Join(c.Problems, "; "),
			"nothing is restarted meanwhile, since a member that restarts could not rejoin; replace the Secrets named here").Again(verdict.Later)
	case s.Observed.Record == nil:
		return verdict.Pass()
	case len(c.Missing) > 0:
		return verdict.Do(action.IssueCertificates{Secrets: c.Missing}, "members and clients identify themselves with certificates; missing: "+strings.Join(c.Missing, ", "))
	case len(c.MissingSANs) > 0:
		return verdict.Do(action.ReissueCertificates{Secrets: c.MissingSANs},
			"they were issued for fewer members than Git wants; the same authority signs, and members load a certificate when they need it")
	case len(c.Due) > 0:
		return verdict.Do(action.RenewCertificates{Secrets: c.Due},
			"two thirds of their life are over; the same authority signs, and members load a certificate when they need it")
	}
	return verdict.Pass()
}

// expiry reports a certificate that is about to expire and that only a person can
// replace. It stands last: the cluster runs well until then, so nothing waits for it.
func expiry(s *situation.Situation) verdict.Verdict {
	c := s.Observed.Certificates
	if !c.Expiring(s.Now) {
		return verdict.Pass()
	}
	do := "replace the content of that Secret; members load a new certificate when they need it, without a restart"
	if s.Desired.Spec.TLS.Mode == schema.TLSManaged {
		do = "restore a backup into a cluster of another name before then: it gets a new authority"
	}
	return verdict.Unhealthy("the certificate in the Secret "+c.Ending+" expires on "+c.Ends.UTC().Format(time.DateOnly)+", and quorate cannot renew it", do).Again(verdict.Rarely)
}
