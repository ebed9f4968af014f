package stores

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/schema"
)

// Trust is by which keys the manifest of a backup must be signed that a pod is to read. Who
// may write to a store can replace a backup and its manifest together, so that all hashes
// are right: only a signature tells.
type Trust struct {
	// Keys are the fingerprints that a file names. Without any, they are those of the
	// installation, and where that has none, nothing need be signed.
	Keys []string
	// AcceptUnsigned is the sha256 of the backup that is taken without a signature.
	AcceptUnsigned string
	// sign and trust are what a person can do about a manifest that is not signed, and
	// about one that is signed by another key. The first has a place for the sha256.
	sign, trust string
}

// TrustOf is what the source of a restore says.
func TrustOf(source schema.RestoreSource) Trust {
	return Trust{
		Keys: source.TrustedKeys, AcceptUnsigned: source.AcceptUnsigned,
		sign:  "name another backup, or, if you know where this one is from, commit spec.source.acceptUnsigned: %q",
		trust: "name another backup, or trust that key: commit it in spec.source.trustedKeys, or add its public key to --backup-trusted-keys-file",
	}
}

// TrustOfRecovery is what the recovery of a cluster says.
func TrustOfRecovery(r schema.RecoverySpec) Trust {
	return Trust{
		AcceptUnsigned: r.AcceptUnsigned,
		sign:           "name another backup, or, if you know where this one is from, commit spec.recovery.acceptUnsigned: %q",
		trust:          "name another backup, or trust that key: add its public key to --backup-trusted-keys-file",
	}
}

// TrustOfDrill is that of a restore on trial: a backup that could not be restored is none
// whose drill says anything.
func TrustOfDrill() Trust {
	return Trust{
		sign:  "the next backup that quorate takes is signed, and is restored on trial; this one has the sha256 %s",
		trust: "trust that key: add its public key to --backup-trusted-keys-file",
	}
}

// Trusted refuses a manifest that is not signed by a key that is trusted, and in any case
// one that was changed after it was signed.
func (s Stores) Trusted(m backup.Manifest, t Trust) error {
	keys := s.keys(t)
	switch only := "and only what is signed by " + strings.Join(keys, " or ") + " is restored"; {
	case m.Forged:
		return &Refusal{
			Problem: fmt.Sprintf("the manifest of the backup at %s does not match its signature: it was changed after it was signed", m.Object),
			Do:      "look at who else writes to the store, and name another backup",
		}
	case len(keys) == 0, m.Signature == nil && t.AcceptUnsigned == m.SHA256:
		return nil
	case m.Signature == nil:
		return &Refusal{
			Problem: fmt.Sprintf("the manifest of the backup at %s is not signed, %s", m.Object, only),
			Do:      fmt.Sprintf(t.sign, m.SHA256),
		}
	case !slices.Contains(keys, m.Signature.Key):
		return &Refusal{
			Problem: fmt.Sprintf("the manifest of the backup at %s is signed by %s, %s", m.Object, m.Signature.Key, only),
			Do:      t.trust,
		}
	}
	return nil
}

// keys are the fingerprints that are trusted; none where nothing need be signed.
func (s Stores) keys(t Trust) []string {
	if len(t.Keys) > 0 {
		return t.Keys
	}
	return s.Keys.Trusted()
}
