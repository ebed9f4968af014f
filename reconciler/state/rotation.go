package state

import "time"

// Rotation is how the authorities of a cluster stand, and those that are to take their place.
// All of it is read from certificates, from what they are trusted by, and from what pods mount.
type Rotation struct {
	// Word is what spec.tls.rotate said when the present authorities were made, and NextWord
	// when the next ones were.
	Word, NextWord string
	// Made and Ends are when the present authority was made, and ends, that ends first. Zero
	// where none is known.
	Made, Ends time.Time
	// Lost tells of each present authority that cannot sign, why.
	Lost []string
	// Over is why nobody can trust what the present authorities have signed any more, whoever
	// signs: one of them has expired. "" where they have not.
	Over string
	// Next are the Secrets with the next authorities, and Absent the ones that are not there.
	Next, Absent []string
	// Old, Both and New are the Secrets with what members trust, by their content: the present
	// authorities, those and the next, and the next alone. They are not always there.
	Old, Both, New string
	// Trusts is when each Secret with what members trust was made, of those that there are.
	Trusts map[string]time.Time
	// Leaves are the certificates that the authorities sign.
	Leaves []IssuedLeaf
	// Set is the one of Trusts that the StatefulSet's template mounts, "" for one from before
	// the authorities changed first: such a member trusts what is in the Secret of its
	// certificate. Mounted are those of all pods and of the template.
	Set     string
	Mounted []string
	// Strangers are those of Mounted that do not trust what the Secrets of members and of quorate
	// hold, or that are gone and cannot be made again: these Secrets were put back from before, or
	// issued by another authority.
	Strangers []string
	// Shown is what the members did in handshakes; nil where none were tried.
	Shown []Handshake
}

// Signer is who has signed a certificate.
type Signer string

// The signers of a certificate.
const (
	ByPresent Signer = "present"
	ByNext    Signer = "next"
	// ByBoth is where the next authority has taken the place of the present one already, or
	// there is none.
	ByBoth  Signer = "both"
	ByOther Signer = "other"
)

// Is reports whether the signer is the one of two that is asked for.
func (s Signer) Is(by Signer) bool { return s == by || s == ByBoth }

// IssuedLeaf is a certificate of the cluster, in a Secret.
type IssuedLeaf struct {
	Secret string
	By     Signer
	// Bundle is what its holder trusts, as the Secret says.
	Bundle Bundle
}

// Bundle is which authorities a Secret says to trust.
type Bundle string

// What a Secret says to trust.
const (
	BundleOld   Bundle = "present"
	BundleBoth  Bundle = "both"
	BundleNew   Bundle = "next"
	BundleOther Bundle = "other"
	// BundleIssuers is both issuers', see Issuers.
	BundleIssuers Bundle = "both issuers"
)

// Handshake is what a member did on one of its ports.
type Handshake struct {
	Member string
	// Port is "client" or "peer".
	Port string
	// By is who has signed what it shows.
	By Signer
	// Refuses is which of the authorities it does not trust, and why.
	Refuses map[Signer]string
	// Problem is why it could not be asked, "" where it was.
	Problem string
}
