package state

// RestoreFrom is what Git declares of a cluster that begins with a backup: an
// EtcdRestore.
type RestoreFrom struct {
	// Name of the EtcdRestore, and SpecHash of its whole spec: together they are
	// applied once. SourceHash is the hash of what names the backup.
	Name, SpecHash, SourceHash string
	// Source describes the backup, without anything secret.
	Source string
	// Newest says that Source is no URL but the newest backup of something, and Chosen
	// which one that is now; the zero value where none was looked up.
	Newest bool
	Chosen Chosen
	// InPlace says that Git declares a cluster of the same name as deleted, so that
	// its kept volumes may stay beside those of the new one.
	InPlace bool
}

// Chosen is the backup that a restore begins with, or why none can be chosen.
type Chosen struct {
	// Object is its URL without the query, and Text describes it, and how many newer
	// ones there are and whose.
	Object, Text string
	// Problem says why none is chosen, with the candidates side by side, and Do what a
	// person can do; empty for one that is.
	Problem, Do string
	// None says that the problem ends with the next backup that the cluster itself takes,
	// since there is none to choose from so far.
	None bool
}

// Begins says what the restore begins with.
func (w RestoreFrom) Begins() string {
	switch {
	case w.Chosen.Text != "":
		return "it begins with the backup " + w.Chosen.Text + "; it is read and checked first"
	case w.Newest:
		return "which backup that is, is decided when this begins; it is read and checked first"
	}
	return "the backup is read and checked first"
}

// Restored is the restore that a cluster has begun with.
type Restored struct {
	// Name, SpecHash and SourceHash are those of the EtcdRestore.
	Name, SpecHash, SourceHash string
	// Chosen describes the backup; empty in a record that does not say.
	Chosen string
	// Done says that every member has joined and clients may come.
	Done bool
}

// RestoreRoom is how many bytes a restore needs on a volume for a database of a size: the
// database once, a tenth of it to grow, the two files of 64 MiB that etcd's log begins
// with, and one step in which bolt lets a file grow.
func RestoreRoom(size int64) int64 { return size + size/10 + (2*64+16)<<20 }
