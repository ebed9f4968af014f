package schema

import (
	"fmt"
	"unicode/utf8"
)

// Limits of one file, and of all together. They are far above what people write,
// and keep a mistaken or hostile file from taking the daemon's memory.
const (
	maxFileBytes = 1 << 20
	maxDocuments = 1000

	maxTotalBytes     = 64 << 20
	maxTotalDocuments = 50000
)

// Limits of one document after its aliases are expanded. A few lines of nested
// aliases can otherwise stand for billions of values.
const (
	maxValues = 20000
	maxDepth  = 64
)

// maxProblems are reported of one document. A hostile one has a mistake every few bytes.
const maxProblems = 100

// Limits of what is kept of one file, and of all together, in bytes of memory, roughly:
// two bytes of YAML can stand for a container, which takes hundreds.
const (
	maxFileWeight  = 16 << 20
	maxTotalWeight = 64 << 20

	// problemWeight is that of a problem: its texts, and the lists that it is in.
	problemWeight = 600
)

// refuseFile checks a file before it is given to the YAML parser.
func refuseFile(data []byte) string {
	if len(data) > maxFileBytes {
		return fmt.Sprintf("the file has %d bytes: at most %d (1 MiB) are accepted, split it", len(data), maxFileBytes)
	}
	if !utf8.Valid(data) {
		return "the file is not UTF-8 text: save it as UTF-8"
	}
	if n := countDocuments(data); n > maxDocuments {
		return fmt.Sprintf("the file has %d documents: at most %d are accepted, split it", n, maxDocuments)
	}
	return ""
}

// refuseHeavy refuses the files with which all together take too much. Reading stops
// there, so what was not read follows it. Files that never mention quorate are
// read all the same, for they are another tool's, unless it shows that they are not.
func refuseHeavy(readings []reading) {
	total := int64(0)
	for i := range readings {
		r := &readings[i]
		total += r.weight
		if total <= maxTotalWeight {
			continue
		}
		ours := mentionsGroup(r.file.Data)
		if !ours {
			r.read()
		}
		if ours || r.weight > 0 {
			r.refuse(fmt.Sprintf("what the files up to this one declare takes more than %d bytes (64 MiB) of memory, and the rest is not read: use fewer aliases, or divide the files between several repositories", maxTotalWeight))
		}
	}
}

// taken is how much of quorate's files was read.
type taken struct {
	bytes, documents int
}

// refuseMore counts a file of quorate's, and refuses what is too much together.
func (t *taken) refuseMore(data []byte) string {
	if !mentionsGroup(data) {
		return ""
	}
	t.bytes += len(data)
	t.documents += countDocuments(data)
	switch {
	case t.bytes > maxTotalBytes:
		return fmt.Sprintf("the files up to this one have more than %d bytes (64 MiB) together, and the rest are not read: watch fewer directories, or divide them between several repositories", maxTotalBytes)
	case t.documents > maxTotalDocuments:
		return fmt.Sprintf("the files up to this one have more than %d documents together, and the rest are not read: watch fewer directories, or divide them between several repositories", maxTotalDocuments)
	}
	return ""
}
