package certificates

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/issuers"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Copies keeps the Secrets of applications in other namespaces as they are in the cluster's. It
// stands where these are issued, above all that begins a roll, and above the steps of a change of
// the authorities: so no member refuses what a copy holds that could have been written. One that
// cannot be is tried again later, and nothing waits for it: a namespace of others keeps no cluster
// from anything.
func Copies(s *situation.Situation) verdict.Verdict {
	for _, c := range s.Observed.Certificates.Copies {
		switch {
		case !c.Due(s.Now), c.Unwanted && stays(s):
		case c.Unwanted:
			return verdict.Do(action.DeleteCopy{Secret: c.Secret, Namespace: c.Namespace}, "Secret "+c.Object()+" "+c.Why)
		default:
			return verdict.Do(action.CopyCertificate{Secret: c.Secret, Namespace: c.Namespace}, "applications find their certificate in Secret "+c.Object()+", which "+c.Why)
		}
	}
	return verdict.Pass()
}

// stays reports whether copies are kept that the file no longer asks for: of a cluster that is to be
// deleted until it is, and while members still show or trust certificates of quorate's that spec.tls.mode
// does not ask for.
func stays(s *situation.Situation) bool {
	if state.SameIssuer(s.Git.Spec.TLS.Mode, schema.TLSManaged) {
		return s.Desired.Spec.State == schema.StateDeleted
	}
	return s.Desired.Spec.State == schema.StateDeleted || state.SameIssuer(s.Observed.Transport.Secured(), schema.TLSManaged) || issuers.Of(s.Git.Spec.TLS, s.Observed, s.Now).Changing
}

// Withdraw deletes the copies of a cluster that is deleted. Kubernetes does not: an owner in another
// namespace is none. One that cannot be deleted is tried again later, and keeps nothing else.
func Withdraw(s *situation.Situation) verdict.Verdict {
	for _, c := range s.Observed.Certificates.Copies {
		if c.Due(s.Now) {
			return verdict.Do(action.DeleteCopy{Secret: c.Secret, Namespace: c.Namespace}, "the cluster is deleted")
		}
	}
	return verdict.Pass()
}

// Warnings tell of copies that could not be written or deleted.
func Warnings(s *situation.Situation) (told []situation.Remark) {
	for _, c := range s.Observed.Certificates.Copies {
		if c.Refused != nil {
			told = append(told, situation.Remark{Text: refusal(c)})
		}
	}
	return told
}

// refusal is why a copy is not as Git says, and what a person can do.
func refusal(c state.ClientCopy) string {
	if c.Unwanted {
		return fmt.Sprintf("Secret %s, a copy of a certificate that is no longer wanted, is not deleted: %s; let quorate delete it, or delete it by hand", c.Object(), c.Refused.Problem)
	}
	return fmt.Sprintf("Secret %s, the copy of an application's certificate, is not written: %s; nothing waits for it, not even a change of the authorities, after which members refuse what it holds; "+
		"create the namespace, let quorate write there, or delete or rename the Secret that is in the way; or take the namespace out of spec.tls.clients", c.Object(), c.Refused.Problem)
}
