package schema

// ID names a sort of problem, whatever its sentence. IDs stay: SARIF, ignore files and
// docs/problems.md share them.
type ID string

// The errors, by what finds them.
const (
	IDFile            ID = "unreadable-file"
	IDYAML            ID = "not-yaml"
	IDHeader          ID = "wrong-kind"
	IDUnknownField    ID = "unknown-field"
	IDType            ID = "wrong-type"
	IDValue           ID = "invalid-value"
	IDCrossFile       ID = "conflicting-documents"
	IDPolicy          ID = "against-policy"
	IDNamespace       ID = "other-namespace"
	IDNeedsPolicy     ID = "needs-policy"
	IDCheckHost       ID = "check-host"
	IDMore            ID = "more-problems"
	IDForbiddenChange ID = "forbidden-change"
	IDVanished        ID = "removed-from-git"
)

// The warnings of files.
const (
	IDReleaseFaults        ID = "release-faults"
	IDReleaseUnknown       ID = "release-unknown"
	IDReleaseEnded         ID = "release-ended"
	IDEvenReplicas         ID = "even-replicas"
	IDSurgeUnused          ID = "surge-unused"
	IDQuota                ID = "storage-below-quota"
	IDQuotaUntested        ID = "quota-untested"
	IDCompactionOff        ID = "compaction-off"
	IDOptionDeprecated     ID = "option-deprecated"
	IDMemory               ID = "memory-below-quota"
	IDOldName              ID = "old-name"
	IDRoot                 ID = "runs-as-root"
	IDAuthInClear          ID = "passwords-in-clear"
	IDSpread               ID = "constraint-matches-nothing"
	IDWindow               ID = "window-never-closes"
	IDDefragmentationOften ID = "defragmentation-too-often"
	IDBackupOften          ID = "backup-too-often"
	IDKeepLast             ID = "retention-keeps-all"
	IDFileWithoutClaim     ID = "backup-without-claim"
	IDUnencryptedStore     ID = "store-without-tls"
	IDClientsUnsigned      ID = "clients-without-authority"
	IDDeletedSource        ID = "backup-of-deleted"
	IDGoneSource           ID = "restore-of-gone"
	IDPlaces               ID = "shared-place"
	IDPredecessor          ID = "other-operator"
)

// The warnings of changes, which --base shows.
const (
	IDVersionChange        ID = "version-change"
	IDModeChange           ID = "tls-mode-change"
	IDOtherBackup          ID = "backup-changed"
	IDOtherRestore         ID = "restore-changed"
	IDAcceptHashMismatch   ID = "accepts-other-data"
	IDAcceptUnsigned       ID = "accepts-unsigned"
	IDDeletesVolumes       ID = "deletes-volumes"
	IDDeletesWithoutBackup ID = "deletes-without-backup"
	IDRecovers             ID = "recovers"
	IDTakesOver            ID = "takes-over"
	IDReplacesMembers      ID = "replaces-members"
	IDQuotaShrinks         ID = "quota-shrinks"
)

// ProblemKind is a sort of problem, for the pages that list them.
type ProblemKind struct {
	ID ID
	// Class is what becomes of it.
	Class ProblemClass
	// Meaning is one sentence.
	Meaning string
}

// ProblemClass is what becomes of a problem.
type ProblemClass string

// The classes.
const (
	// KindOfError holds the object until it is fixed.
	KindOfError ProblemClass = "error"
	// KindOfWarning is unwise and applied all the same. It may be ignored, with a reason.
	KindOfWarning ProblemClass = "warning"
	// KindOfChange tells what one change does, to who reviews it. It is never ignored.
	KindOfChange ProblemClass = "change"
)

// ProblemKinds lists all sorts of problems, errors first.
func ProblemKinds() []ProblemKind {
	return []ProblemKind{
		{IDFile, KindOfError, "The file is too large, not UTF-8 text, or declares too much."},
		{IDYAML, KindOfError, "The document is no YAML, or uses what quorate does not take of it."},
		{IDHeader, KindOfError, "`apiVersion` or `kind` is missing or not one of quorate's."},
		{IDUnknownField, KindOfError, "The field does not exist there."},
		{IDType, KindOfError, "The value has another type than the field."},
		{IDValue, KindOfError, "The value is missing, or not one that the field may have."},
		{IDCrossFile, KindOfError, "The document contradicts another one, or names one that is not there."},
		{IDPolicy, KindOfError, "The policy of the platform, `--policy`, does not allow it to this file."},
		{IDNamespace, KindOfError, "The object is in a namespace that `--namespaces` does not name, or copies of its certificates are to be."},
		{IDNeedsPolicy, KindOfError, "It weakens what keeps pods and nodes apart, or is among Kubernetes' own, and only a policy, `--policy`, can allow that."},
		{IDCheckHost, KindOfError, "A check of `spec.upgrade.checks` asks a host that `--check-hosts` does not name."},
		{IDMore, KindOfError, "The document has more problems than are listed."},
		{IDForbiddenChange, KindOfError, "The change cannot be applied to a live cluster, or etcd does not support it."},
		{IDVanished, KindOfError, "The change removes a cluster's document, which deletes nothing."},
		{IDReleaseFaults, KindOfWarning, "The release has faults that a later patch fixes."},
		{IDReleaseUnknown, KindOfWarning, "The patch is newer than the newest that this version of quorate knows."},
		{IDReleaseEnded, KindOfWarning, "The etcd project no longer maintains the minor."},
		{IDEvenReplicas, KindOfWarning, "An even number of members tolerates no more failures than one member less."},
		{IDSurgeUnused, KindOfWarning, "Only a cluster with one member is restarted by way of a second one."},
		{IDQuota, KindOfWarning, "The volume is too small for the database at its quota, also at etcd's default of 2Gi."},
		{IDQuotaUntested, KindOfWarning, "The quota is above the size that etcd is tested with."},
		{IDCompactionOff, KindOfWarning, "A mode of compaction without a retention does nothing."},
		{IDOptionDeprecated, KindOfWarning, "The option is removed in a later etcd."},
		{IDMemory, KindOfWarning, "The memory limit is below the quota."},
		{IDOldName, KindOfWarning, "The field has another name by now, and still works."},
		{IDRoot, KindOfWarning, "The pods run as root."},
		{IDAuthInClear, KindOfWarning, "Users authenticate, and without TLS their passwords pass the network in clear."},
		{IDSpread, KindOfWarning, "A topology spread constraint has no label selector."},
		{IDWindow, KindOfWarning, "A maintenance window opens again before it closes."},
		{IDDefragmentationOften, KindOfWarning, "Defragmentation is scheduled more often than daily."},
		{IDBackupOften, KindOfWarning, "Backups are scheduled more often than every five minutes."},
		{IDKeepLast, KindOfWarning, "`keepLast: 0` keeps all backups."},
		{IDFileWithoutClaim, KindOfWarning, "No restore can read a backup at a `file` URL without a volume claim."},
		{IDUnencryptedStore, KindOfWarning, "The object store is reached over `http`, which the daemon refuses without `--insecure-stores`."},
		{IDClientsUnsigned, KindOfWarning, "Applications are listed, and quorate has no authority to sign their certificates."},
		{IDDeletedSource, KindOfWarning, "A schedule backs up a cluster that is deleted."},
		{IDGoneSource, KindOfWarning, "A restore names a cluster that no file declares."},
		{IDPlaces, KindOfWarning, "Several objects may store backups at the same place."},
		{IDPredecessor, KindOfWarning, "There are documents of an earlier operator, which `quorate convert` takes."},
		{IDModeChange, KindOfChange, "What another spec.tls.mode asks of clients."},
		{IDVersionChange, KindOfChange, "What the way to the new version asks for or costs."},
		{IDOtherBackup, KindOfChange, "A changed EtcdBackup is another backup."},
		{IDOtherRestore, KindOfChange, "A changed EtcdRestore is another restore."},
		{IDAcceptHashMismatch, KindOfChange, "A backup is accepted whose keys are not those that etcd hashed."},
		{IDAcceptUnsigned, KindOfChange, "A backup is accepted that no key of the daemon has signed."},
		{IDDeletesVolumes, KindOfChange, "Volumes and their data are deleted permanently."},
		{IDDeletesWithoutBackup, KindOfChange, "A cluster is deleted without a last backup."},
		{IDRecovers, KindOfChange, "A cluster is recovered, which loses what only the lost members had."},
		{IDTakesOver, KindOfChange, "A cluster gets another owner."},
		{IDReplacesMembers, KindOfChange, "Every member is replaced, and the old volumes are deleted."},
		{IDQuotaShrinks, KindOfChange, "The size at which etcd refuses writes gets smaller."},
	}
}
