// Package bundles has the rules about what members trust of certificates that another program
// issues. What they are to trust is in their pod template, which state.Trust says: so a change of it
// is an ordinary roll, behind all that keeps a roll.
package bundles

import (
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/issuers"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
)

// Trusted holds while members that run do not trust a certificate that is in use: one that lost its
// connection, or restarted, could not come back. Members read whom they trust when they start, so
// the Secrets of a changed issuer look right, and are not.
func Trusted(s *situation.Situation) verdict.Verdict {
	t := s.Observed.Certificates.Trust
	if len(t.Refused) == 0 {
		return verdict.Pass()
	}
	if r := s.Observed.Certificates.Rotation; r != nil && len(r.Strangers) > 0 {
		return verdict.Unhealthy(strings.Join(t.Refused, "; "),
			"put the Secrets of its certificates and authorities back as they were when the members started; nothing is restarted meanwhile, since a member that restarts could not rejoin").Again(verdict.Later)
	}
	return verdict.Unhealthy(strings.Join(t.Refused, "; "),
		"put back the certificate from before; then let ca.crt have the authorities from before and the new ones, and issue certificates by the new ones only when quorate has restarted the members with both").Again(verdict.Later)
}

// Gone makes a bundle again that pods mount and that is gone, as long as the Secrets say the same.
// It is asked where there is one.
func Gone(s *situation.Situation) verdict.Verdict {
	t := s.Observed.Certificates.Trust
	if slices.Contains(t.Gone, t.Wanted) {
		return verdict.Do(action.KeepTrust{Secret: t.Wanted}, "members mount it, and none of them starts without it")
	}
	return verdict.Unhealthy("the Secret "+t.Gone[0]+" is gone, which members mount, and none of them starts without it",
		"put the ca.crt that it had back into the Secrets of spec.tls.secrets: quorate makes it again from these").Again(verdict.Later)
}

// TakeUp keeps what members trust, and has the template mount another bundle once the issuer's
// Secrets have one, and what they have has reached every pod. It is nearly last: the roll before it
// is over.
//
//	members that run trust         then
//	nothing that is kept           what the Secrets say is kept; nothing mounts it
//	what the Secrets say           what else is kept is deleted
//	another bundle                 a wait for the kubelets, and what the Secrets say is kept; a roll
func TakeUp(s *situation.Situation) verdict.Verdict {
	t := s.Observed.Certificates.Trust
	if t.Wanted == "" || !s.Formed() || s.Observed.Set == nil || s.Rolling() {
		return verdict.Pass()
	}
	switch {
	case len(t.Kept) == 0:
		return verdict.Do(action.KeepTrust{Secret: t.Wanted}, "members read the ca.crt of their Secrets only when they start: what they have read is kept, so that a change of it is seen; nothing mounts it")
	case issuers.Of(s.Git.Spec.TLS, s.Observed, s.Now).Changing, !t.Changed() && len(t.Spare()) == 0:
		return verdict.Pass()
	case !t.Changed():
		return verdict.Do(action.KeepTrust{Secret: t.Wanted, Drop: t.Spare()}, "every member that runs trusts what the Secrets say now, and no other bundle")
	case s.Now.Before(t.SettlesAt()):
		return verdict.WaitUntil("the ca.crt of a Secret has changed, which members read only when they start; the kubelets have until "+
			t.SettlesAt().UTC().Format(time.RFC3339)+" to bring what the Secrets have into every pod; then members restart, one at a time", t.ChangedAt).
			Again(t.SettlesAt().Sub(s.Now))
	case !slices.Contains(t.Kept, t.Wanted):
		return verdict.Do(action.KeepTrust{Secret: t.Wanted, Drop: t.Spare()},
			"the ca.crt of a Secret has changed, and every certificate is trusted by it and by the one from before; members read it only when they start, so they restart next, one at a time")
	}
	return verdict.Pass()
}

// TakesUp adds to the reason of a roll that members take up another trust by it, "" where they do not.
func TakesUp(s *situation.Situation) string {
	if c := s.Observed.Certificates; c.Rotation != nil || s.Desired.Trust == c.Trust.Mounted || issuers.Of(s.Git.Spec.TLS, s.Observed, s.Now).Changing {
		return ""
	}
	return "; members that restart trust the ca.crt that their Secrets have now"
}
