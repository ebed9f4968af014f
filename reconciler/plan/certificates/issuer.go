package certificates

import (
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/issuers"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Issuer takes the next step of a change of spec.tls.mode between Managed and Secrets, or waits for
// what it rests on. What members show and trust meanwhile is in their pod template, which package
// issuers says: so the three rolls of a change are ordinary ones, behind all that keeps a roll.
func Issuer(s *situation.Situation) verdict.Verdict {
	i := s.Observed.Certificates.Issuers
	a := issuers.Of(s.Git.Spec.TLS, s.Observed, s.Now)
	switch a.Phase {
	case issuers.Check:
		return verdict.Unhealthy("spec.tls.mode asks for certificates of "+issuerOf(a.Wants)+": "+strings.Join(i.Problems, "; "),
			"replace the Secrets named here, or set the mode back; nothing is restarted meanwhile").Again(verdict.Later)
	case issuers.Issue:
		return prepare(i)
	case issuers.Publish:
		return verdict.Do(action.PublishTrust{Secret: i.Both, Bundle: state.BundleIssuers},
			"spec.tls.mode asks for certificates of "+issuerOf(a.Wants)+"; who reads what it trusts from now on trusts both issuers, and each member when it restarts")
	case issuers.Arrive:
		return verdict.WaitUntil("a Secret of spec.tls.secrets has changed; the kubelets have until "+a.Until.UTC().Format(time.RFC3339)+
			" to bring what the Secrets have into every pod; then members restart, one at a time", a.Since).Again(a.Until.Sub(s.Now))
	case issuers.Overlap:
		return awaitClients(s, a, "every member trusts both issuers", "trust both as well; then members show certificates of "+issuerOf(a.Wants))
	case issuers.Mark:
		return verdict.Do(mark(i, a), "members show certificates of "+issuerOf(a.Wants)+", which alone will be trusted")
	case issuers.Settle:
		return awaitClients(s, a, "every member shows a certificate of "+issuerOf(a.Wants), "show one of this issuer as well; then members trust it alone")
	case issuers.Retire:
		return verdict.Do(action.RetireAuthorities{Keep: state.ByOther, Trust: i.Mounted}, "members trust the other program's authorities alone, and show its certificates: what quorate has issued is of no use")
	case issuers.None, issuers.Later, issuers.TrustBoth, issuers.Switch, issuers.Drop:
	}
	return verdict.Pass()
}

// prepare issues what quorate lacks of certificates that no member shows yet.
func prepare(i *state.Issuers) verdict.Verdict {
	const why = "spec.tls.mode asks for certificates of quorate's; nothing shows or trusts them yet: "
	switch {
	case len(i.Missing) > 0:
		return verdict.Do(action.IssueCertificates{Secrets: i.Missing}, why+strings.Join(i.Missing, ", "))
	case len(i.MissingSANs) > 0:
		return verdict.Do(action.ReissueCertificates{Secrets: i.MissingSANs}, why+"they were issued for fewer members than Git wants")
	case len(i.Due) > 0:
		return verdict.Do(action.RenewCertificates{Secrets: i.Due}, why+"two thirds of their life are over")
	case len(i.Clients) > 0:
		var secrets []string
		for _, c := range i.Clients {
			secrets = append(secrets, c.Secret)
		}
		return verdict.Do(action.IssueClientCertificates{Secrets: secrets}, why+strings.Join(secrets, ", "))
	}
	return verdict.Pass()
}

// mark writes down what members will trust in the end.
func mark(i *state.Issuers, a issuers.Aim) action.Action {
	if a.Wants == schema.TLSSecrets {
		return action.KeepTrust{Secret: i.Alone}
	}
	return action.PublishTrust{Secret: i.Alone}
}

// awaitClients holds until clients had their time.
func awaitClients(s *situation.Situation, a issuers.Aim, so, then string) verdict.Verdict {
	v := verdict.WaitUntil(so+"; clients have until "+a.Until.UTC().Format(time.RFC3339)+" to "+then+laterWord(s), a.Since).
		Again(min(a.Until.Sub(s.Now), verdict.Later))
	v.Hold.Awaits = decision.AwaitsClients
	return v
}

// laterWord is that a word of spec.tls.rotate asks for new authorities, which waits for the change.
func laterWord(s *situation.Situation) string {
	r, word := s.Observed.Certificates.Rotation, s.Git.Spec.TLS.Rotate
	if r == nil || word == "" || word == r.Word {
		return ""
	}
	return "; spec.tls.rotate \"" + word + "\" asks for new authorities, which begins when that is over"
}

// issuerOf names the issuer of a mode.
func issuerOf(mode schema.TLSMode) string {
	if mode == schema.TLSSecrets {
		return "the other program"
	}
	return "quorate"
}

// WhyIssuer is what a roll does to whose certificates members show, and trust, as the beginning of a
// sentence; "" for one that changes nothing of that.
func WhyIssuer(s *situation.Situation) string {
	a := issuers.Of(s.Git.Spec.TLS, s.Observed, s.Now)
	switch {
	case a.Phase == issuers.TrustBoth && a.Trust != s.Observed.Certificates.Issuers.Mounted:
		return "members are to trust the certificates of both issuers; "
	case a.Phase == issuers.Switch && a.Leaves != s.Observed.Transport:
		return "members are to show certificates of " + issuerOf(a.Wants) + "; "
	case a.Phase == issuers.Drop:
		return "members are to trust the certificates of " + issuerOf(a.Wants) + " alone; "
	}
	return ""
}

// lost is the Secret with what trusts both issuers, where pods mount it and it is gone; "" for none.
func lost(i *state.Issuers) string {
	if i == nil || i.Both == "" || !slices.Contains(i.Gone, i.Both) {
		return ""
	}
	return i.Both
}
