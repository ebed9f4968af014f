package schema

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// reading is what one file declares.
type reading struct {
	// file is the text of a file, without a mark at its beginning.
	file File
	// refusal is why the file is not parsed, or empty.
	refusal string

	declared []declaration
	problems []Problem
	ignored  int
	left     []Problem
	// others are the documents of earlier operators, by group.
	others map[string]others
}

// prepare says whether the file may be parsed, after those that came before it.
func (r *reading) prepare(f File, before *taken) {
	f.Data = bytes.TrimPrefix(f.Data, []byte("\ufeff"))
	r.file = f
	if isUTF16(f.Data) {
		// Without the zero bytes it is close enough to text to say whose it is.
		r.file.Data = bytes.ReplaceAll(f.Data, []byte{0}, nil)
		r.refusal = "the file is UTF-16 text: save it as UTF-8"
		return
	}
	if r.refusal = refuseFile(f.Data); r.refusal == "" {
		r.refusal = before.refuseMore(f.Data)
	}
}

// isAsPrepared says whether a file of the same path that is prepared would be read
// alike: it has the same text, and is refused as this one was or not at all.
func (r *reading) isAsPrepared(next *reading) bool {
	return r.refusal == next.refusal && bytes.Equal(r.file.Data, next.file.Data)
}

// read parses the file. Not even a mistake in quorate that it finds ends the daemon,
// or keeps another file from being read.
func (r *reading) read() {
	defer func() {
		if mistake := recover(); mistake != nil {
			*r = reading{file: r.file, refusal: fmt.Sprintf("quorate cannot cope with this file (%v): please report it", mistake)}
			r.refused()
		}
	}()
	if r.refusal != "" {
		r.refused()
		return
	}
	for _, chunk := range splitDocuments(r.file.Data) {
		if !isEmptyDocument(chunk.data) {
			r.document(chunk)
		}
	}
}

// isUTF16 knows the mark at the beginning of such a file.
func isUTF16(data []byte) bool {
	return bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})
}

// refuseFile looks at a file before it is given to the YAML parser.
func refuseFile(data []byte) string {
	if len(data) > maxFileBytes {
		return fmt.Sprintf("the file has %d bytes: at most %d (1 MiB) are read, split it", len(data), maxFileBytes)
	}
	if !utf8.Valid(data) {
		return "the file is not UTF-8 text: save it as UTF-8"
	}
	if n := countDocuments(data); n > maxDocuments {
		return fmt.Sprintf("the file has %d documents: at most %d are read, split it", n, maxDocuments)
	}
	return ""
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
		return fmt.Sprintf("the files up to this one have more than %d bytes (64 MiB) together, and no more are read: watch fewer directories, or divide them between several repositories", maxTotalBytes)
	case t.documents > maxTotalDocuments:
		return fmt.Sprintf("the files up to this one have more than %d documents together, and no more are read: watch fewer directories, or divide them between several repositories", maxTotalDocuments)
	}
	return ""
}

// refused notes a file that is not parsed. What it seems to declare is held. A
// file that never speaks of quorate is another tool's, however large.
func (r *reading) refused() {
	path, why := r.file.Path, r.refusal
	if !mentionsGroup(r.file.Data) {
		r.leave(Problem{File: path, Message: why})
		return
	}
	r.problems = append(r.problems, Problem{File: path, Message: why})
	for i, chunk := range splitDocuments(r.file.Data) {
		if i > maxDocuments {
			return
		}
		id := skimIdentity(chunk.data)
		id.namespace = cmp.Or(id.namespace, defaultNamespace)
		if mentionsGroup(chunk.data) && id.name != "" {
			problem := Problem{File: path, Line: chunk.line, Object: id.String(), Message: why}
			r.declared = append(r.declared, declaration{identity: id, origin: Origin{File: path, Line: chunk.line}, problems: []Problem{problem}})
		}
	}
}

// document reads one document of a file.
func (r *reading) document(chunk chunk) {
	origin := Origin{File: r.file.Path, Line: chunk.line}
	root, problem := readYAML(chunk)
	if problem != nil {
		r.unreadable(origin, chunk, *problem)
		return
	}
	header := readHeader(root)
	switch verdict, problem := classify(root, header); verdict {
	case foreign:
		r.ignored++
		r.predecessor(origin, chunk, header)
	case wrong:
		r.declare(declaration{identity: header.identity, origin: origin}, []Problem{problem})
	case ours:
		r.object(origin, chunk, root, header.identity)
	}
}

// others are the documents of an earlier operator.
type others struct {
	count int
	first Origin
}

// predecessor notes a document of an earlier operator.
func (r *reading) predecessor(origin Origin, text chunk, h header) {
	group, _, _ := strings.Cut(h.apiVersion, "/")
	if group != "etcd.database.coreos.com" && group != "etcd.improbable.io" {
		return
	}
	origin.text = text
	r.countOther(group, others{count: 1, first: origin})
}

// countOther adds documents of an earlier operator, which stand behind those that
// are counted already.
func (r *reading) countOther(group string, more others) {
	seen, known := r.others[group]
	if !known {
		seen.first = more.first
	}
	seen.count += more.count
	if r.others == nil {
		r.others = map[string]others{}
	}
	r.others[group] = seen
}

// unreadable notes a document that is no YAML. Only one that speaks of quorate
// is reported: templates of other tools are often no YAML.
func (r *reading) unreadable(origin Origin, chunk chunk, problem Problem) {
	if !mentionsGroup(chunk.data) {
		problem.File = origin.File
		r.leave(problem)
		return
	}
	r.declare(declaration{identity: skimIdentity(chunk.data), origin: origin}, []Problem{problem})
}

// leave notes what cannot be read and does not speak of quorate.
func (r *reading) leave(problem Problem) {
	r.ignored++
	r.left = append(r.left, problem)
}

// object decodes, defaults and validates a document of one of the kinds.
// Validation says nothing of fields that could not be read.
func (r *reading) object(origin Origin, text chunk, root *document, id identity) {
	origin.text = text
	d := declaration{identity: id, origin: origin, object: newObject(id.kind)}
	problems, meant := decode(root, d.object)
	d.object.setDefaults()
	// A name that came through a YAML merge is known only now.
	d.name = cmp.Or(d.name, d.object.meta().Name)
	d.namespace = cmp.Or(d.namespace, d.object.meta().Namespace)
	if c, ok := d.object.(*EtcdCluster); ok {
		d.place = placeOf(d.identity, d.name, c.Spec.Backup.Destination)
	}
	if slices.ContainsFunc(problems, func(p Problem) bool { return p.Field == "" }) {
		r.declare(d, problems) // Nothing can be said of a document that is not read as a whole.
		return
	}
	for _, problem := range d.object.validate() {
		said := slices.ContainsFunc(problems, func(known Problem) bool { return sameBranch(known.Field, problem.Field) })
		if !said && !slices.ContainsFunc(meant, func(field string) bool { return sameBranch(field, problem.Field) }) {
			problem.Line, problem.Column = root.place(problem.Field)
			problems = append(problems, problem)
		}
	}
	r.declare(d, problems)
}

// declare notes a document with its problems, and says where they are.
func (r *reading) declare(d declaration, problems []Problem) {
	d.namespace = cmp.Or(d.namespace, defaultNamespace)
	for _, problem := range problems {
		problem.File = d.origin.File
		problem.Line = cmp.Or(problem.Line, d.origin.Line)
		problem.Object = d.String()
		d.problems = append(d.problems, problem)
	}
	r.problems = append(r.problems, d.problems...)
	r.declared = append(r.declared, d)
}
