package state

// RestoreFrom is what Git declares of a cluster that begins with a backup: an
// EtcdRestore.
type RestoreFrom struct {
	// Name of the EtcdRestore, and SpecHash of its whole spec: together they are
	// applied once. SourceHash is the hash of what names the backup.
	Name, SpecHash, SourceHash string
	// Source describes the backup, without anything secret.
	Source string
	// InPlace says that Git declares a cluster of the same name as deleted, so that
	// its kept volumes may stay beside those of the new one.
	InPlace bool
}

// Restored is the restore that a cluster has begun with.
type Restored struct {
	// Name, SpecHash and SourceHash are those of the EtcdRestore.
	Name, SpecHash, SourceHash string
	// Done says that every member has joined and clients may come.
	Done bool
}
