package schema

import "fmt"

// File is one file of the repository.
type File struct {
	// Path is slash-separated and relative to the root of the repository.
	Path string
	// Data is the content in Git.
	Data []byte
	// Unread is why the content is not known, for people; "" where it is. Whatever the
	// file declared before is held.
	Unread string
}

// Origin is the place that declares an object.
type Origin struct {
	// File is the path of the file.
	File string
	// Line is where the document begins, from 1.
	Line int
	// text is the document itself; empty where it cannot be read. It is parsed
	// again where a line is asked for, which is rare: what a parser makes of
	// it takes twenty times the memory.
	text chunk
}

// String is "clusters/orders.yaml:7".
func (o Origin) String() string { return fmt.Sprintf("%s:%d", o.File, o.Line) }

// Problem is a problem of a field of the object that is declared here.
func (o Origin) Problem(id ID, field, format string, args ...any) Problem {
	p := Problem{ID: id, File: o.File, Line: o.Line, Field: field, Message: fmt.Sprintf(format, args...)}
	if len(o.text.data) == 0 {
		return p
	}
	if root, problem := readYAML(o.text); problem == nil {
		root.values() // finds where the fields stand
		p.Line, p.Column = root.place(field)
	}
	return p
}

// Cluster is an EtcdCluster, defaulted and valid, and where it was declared. The EtcdCluster is
// that of each Set in which its file is the same, and never changed.
type Cluster struct {
	*EtcdCluster
	// Origin is the place of the declaration.
	Origin Origin
	// Digest is that of the EtcdCluster.
	Digest string
}

// Backup is an EtcdBackup, defaulted and valid, and where it was declared.
type Backup struct {
	EtcdBackup
	// Origin is the place of the declaration.
	Origin Origin
}

// Schedule is an EtcdBackupSchedule, defaulted and valid, and where it was
// declared.
type Schedule struct {
	EtcdBackupSchedule
	// Origin is the place of the declaration.
	Origin Origin
}

// Restore is an EtcdRestore, defaulted and valid, and where it was declared.
type Restore struct {
	EtcdRestore
	// Origin is the place of the declaration.
	Origin Origin
}

// Held is an object that a file names but that must not be acted upon: its
// document is bad, or another one declares the same object. The last good state
// of the object stays in force.
type Held struct {
	// Kind, Namespace and Name are what could be read of them. Without a name,
	// any object that the file declared before may be meant.
	Kind, Namespace, Name string
	// Origin is the first place that names the object.
	Origin Origin
	// Problems say why, in the order of the files. Warnings are left out.
	Problems []Problem
}

// Means reports whether this may be an object that an earlier commit declared in a file.
func (h Held) Means(kind, namespace, name, file string) bool {
	named := h.Namespace == namespace && h.Name == name
	return (h.Kind == "" || h.Kind == kind) && (named || h.Name == "" && h.Origin.File == file)
}

// Set is everything that a set of files declares.
type Set struct {
	// Clusters are defaulted and valid, sorted by namespace and name.
	Clusters []Cluster
	// Backups, Schedules and Restores are defaulted and valid, sorted like the
	// clusters.
	Backups   []Backup
	Schedules []Schedule
	Restores  []Restore
	// Held are the objects that must be left unchanged, sorted by kind,
	// namespace and name.
	Held []Held
	// Problems are all errors and warnings, sorted by file and line.
	Problems []Problem
	// Ignored counts the documents of other groups, which are left alone.
	Ignored int
	// Unreadable lists what is not YAML and does not mention quorate, once
	// for each file. It counts as ignored; but a caller that knows of a cluster in that file
	// should hold it, since it may be what is left of it.
	Unreadable []Problem
}
