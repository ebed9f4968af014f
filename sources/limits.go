package sources

import "cmp"

// Limits bound what is read, so that no repository, however large or hostile,
// takes the process down. Zero in a field means its default.
type Limits struct {
	// FileBytes is the size of the largest file that is read. A larger one is named in
	// the Snapshot, without its content; whatever passes another limit is an ErrTooLarge.
	// Default 1 MiB.
	FileBytes int64
	// Files is the number of YAML files. Default 50,000.
	Files int
	// TotalBytes is the size of all YAML files together. Default 64 MiB.
	TotalBytes int64
	// PackBytes is what the server may send for one commit, compressed.
	// Default 64 MiB.
	PackBytes int64
	// UnpackedBytes is what all objects of the commit may become in memory, the
	// files outside the watched path included. Default 128 MiB.
	UnpackedBytes int64
	// Objects is the number of Git objects the server may send, and the number
	// of directory entries that are read. Default 200,000.
	Objects int
}

const (
	kib = 1 << 10
	mib = 1 << 20

	// maxDepth keeps a chain of nested directories, which costs its author a few
	// bytes a level, from costing us the sum of all its paths.
	maxDepth = 256
	// maxRefsBytes bounds the list of branches and tags: some 120,000 of them.
	maxRefsBytes = 8 * mib
	// maxReportBytes bounds the report of a push, with the remarks of the server's hooks.
	maxReportBytes = mib
	// maxRefusalBytes is how much is read of an answer that is not a success.
	maxRefusalBytes = 4 * kib
	// maxSecretBytes bounds a password, a token, or a user name.
	maxSecretBytes = 64 * kib
	// maxCABytes bounds the file of certificate authorities.
	maxCABytes = mib
)

func (l Limits) withDefaults() Limits {
	return Limits{
		FileBytes:     cmp.Or(l.FileBytes, mib),
		Files:         cmp.Or(l.Files, 50_000),
		TotalBytes:    cmp.Or(l.TotalBytes, 64*mib),
		PackBytes:     cmp.Or(l.PackBytes, 64*mib),
		UnpackedBytes: cmp.Or(l.UnpackedBytes, 128*mib),
		Objects:       cmp.Or(l.Objects, 200_000),
	}
}
