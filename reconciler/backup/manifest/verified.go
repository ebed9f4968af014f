package manifest

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/quorate/quorate/schema"
)

// Verified is what the restore step must know of a backup. Without a backup it
// is the zero value but for Revision.
type Verified struct {
	// SHA256 and Size are those of the stored object.
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size,omitempty"`
	// SnapshotSize is that of the snapshot in it, where it is another, and Compression
	// how it is compressed, as Manifest has them.
	SnapshotSize int64  `json:"snapshotSize,omitempty"`
	Compression  string `json:"compression,omitempty"`
	// Revision that is recovered, at least.
	Revision int64 `json:"revision"`
	// Hash is etcd's HashKV at HashRevision, computed from CompactRevision on.
	// HashRevision 0: unknown.
	Hash            uint32 `json:"hash,omitempty"`
	HashRevision    int64  `json:"hashRevision,omitempty"`
	CompactRevision int64  `json:"compactRevision,omitempty"`
	// Keys is how many keys there were at HashRevision; 0: unknown.
	Keys int64 `json:"keys,omitempty"`
	// Decryption is the Secret with the private key of an encrypted one, else empty.
	Decryption string `json:"decryption,omitempty"`
}

// DatabaseSize is the size in bytes of the snapshot in it, 0 where it is unknown.
func (v Verified) DatabaseSize() int64 { return cmp.Or(v.SnapshotSize, v.Size) }

// Verified is what the manifest says to the step that restores. An encrypted backup
// needs a Secret with a private key, which only that step reads; where says which
// field of a file names it.
func (m Manifest) Verified(d schema.DecryptionSpec, where string) (Verified, error) {
	v := Verified{
		SHA256: m.SHA256, Size: m.Size, SnapshotSize: m.SnapshotSize, Compression: m.Compression, Revision: m.Revision,
		Hash: m.Hash, HashRevision: m.HashRevision, CompactRevision: m.CompactRevision, Keys: m.Keys,
	}
	if !m.Encrypted {
		return v, nil
	}
	v.Decryption = d.SecretName
	if v.Decryption == "" {
		return v, fmt.Errorf("the backup at %s is encrypted: name the Secret with the private key of one of %s in %s",
			m.Object, strings.Join(m.Recipients, ", "), where)
	}
	return v, nil
}
