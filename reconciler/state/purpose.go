package state

import "strings"

// Purpose is what a backup is taken for: what rests on a backup wants one that was
// taken for it. Its text is in the record, and this file alone knows its form.
type Purpose string

// The purposes that name nothing else.
const (
	ForHibernation Purpose = "hibernation"
	ForDeletion    Purpose = "deletion"
	ForCompaction  Purpose = "compaction"
)

// The prefixes of those that do. An upgrade has none: its purpose is the version.
const (
	purposeDowngrade = "downgrade to "
	purposeRepair    = "repair "
)

// ForUpgrade is the purpose of a backup before an upgrade to a version.
func ForUpgrade(version string) Purpose { return Purpose(version) }

// ForDowngrade is the purpose of a backup before a downgrade to a version.
func ForDowngrade(version string) Purpose { return purposeDowngrade + Purpose(version) }

// ForRepair is the purpose of a backup before a member is replaced.
func ForRepair(member string) Purpose { return purposeRepair + Purpose(member) }

// IsRepair reports whether the backup was taken before a member was replaced.
func (p Purpose) IsRepair() bool { return strings.HasPrefix(string(p), purposeRepair) }

// IsRoll reports whether the backup was taken before an upgrade or a downgrade.
func (p Purpose) IsRoll() bool {
	return p != "" && p != ForHibernation && p != ForDeletion && p != ForCompaction && !p.IsRepair()
}

// Target is the version of the upgrade or downgrade that the backup was taken for;
// the text of any other purpose is no version.
func (p Purpose) Target() string { return strings.TrimPrefix(string(p), purposeDowngrade) }
