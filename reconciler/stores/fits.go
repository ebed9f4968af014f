package stores

import (
	"cmp"
	"fmt"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// DescribeSource adds what the member said of itself.
func DescribeSource(m *backup.Manifest, member state.Member) {
	m.EtcdVersion, m.StorageVersion = member.Version, member.StorageVersion
	m.Revision = max(m.Revision, member.Revision)
	if member.HashRevision > 0 {
		m.Hash, m.HashRevision, m.CompactRevision, m.Keys = member.Hash, member.HashRevision, member.CompactRevision, member.Keys
	}
}

// FitsRelease refuses a backup that the release cannot start on. From 3.6 on the
// storage version says what is in the database; before, the member's own does.
func FitsRelease(m backup.Manifest, version string) error {
	if !release.StartsOn(cmp.Or(m.StorageVersion, m.EtcdVersion), version) {
		return fmt.Errorf("the backup at %s was made by etcd %q with storage version %q, and etcd %s cannot start on that; name a release of the same minor, or of the one after it, in spec.clusterTemplate.version",
			m.Object, m.EtcdVersion, m.StorageVersion, version)
	}
	return nil
}
