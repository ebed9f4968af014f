package state

import "time"

// Certificates is the state of the Secrets with certificates.
type Certificates struct {
	// Missing are the names of Secrets that do not exist.
	Missing []string
	// Problems are sentences: expired, of another authority, a name not covered.
	Problems []string
	// MissingSANs are the names of Secrets whose certificate does not name all members
	// that are wanted, and is good otherwise.
	MissingSANs []string
	// Due are the names of Secrets whose certificate is past two thirds of its life, or
	// over, and can be issued again by its authority.
	Due []string
	// Ending is the Secret of the certificate that is to be replaced first of those that
	// quorate cannot issue again, "" for none; Ends is when it expires, and Notice
	// from when on it should have been replaced.
	Ending       string
	Ends, Notice time.Time
	// Clients are the certificates of applications that are to be issued, and ForeignClients
	// phrases on Secrets of these names that are not quorate's to write.
	Clients        []ClientCertificate
	ForeignClients []string
	// Copies are the copies of such Secrets in other namespaces that are not as Git says.
	Copies []ClientCopy
	// Rotation is how far a change of the authorities is; nil where quorate issues nothing.
	Rotation *Rotation
	// Trust is what members trust where another program issues their certificates.
	Trust Trust
	// Issuers is how the cluster stands between quorate and another program as its issuer; nil
	// where there is only one of them.
	Issuers *Issuers
}

// ClientCertificate is the Secret of an application whose certificate is to be issued, and
// why in words, such as "is missing".
type ClientCertificate struct{ Secret, Why string }

// Expiring reports whether a certificate that quorate cannot issue again should have been
// replaced by now.
func (c Certificates) Expiring(now time.Time) bool {
	return c.Ending != "" && !now.Before(c.Notice)
}
