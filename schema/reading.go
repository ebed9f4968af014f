package schema

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// reading is what one file declares.
type reading struct {
	// file is the text of a file, without a mark at its beginning.
	file File
	// refusal is why the file is not parsed, or empty.
	refusal string
	// done says that the file was read, and weight what it takes, in bytes, roughly.
	done   bool
	weight int64

	declared []declaration
	problems []Problem
	ignored  int
	left     []Problem
	// others are the documents of earlier operators, by group.
	others map[string]others
}

// prepare reports whether the file may be parsed, after those that came before it.
func (r *reading) prepare(f File, before *taken) {
	f.Data = bytes.TrimPrefix(f.Data, []byte("\ufeff"))
	r.file = f
	if f.Unread != "" {
		r.refusal = f.Unread
		return
	}
	if isUTF16(f.Data) {
		// Without the zero bytes it is close enough to text to say whose it is.
		r.file.Data = bytes.ReplaceAll(f.Data, []byte{0}, nil)
		r.refusal = "the file is UTF-16 text: save it as UTF-8"
		return
	}
	r.refusal = refuseFile(f.Data)
	if r.refusal == "" {
		r.refusal = before.refuseMore(f.Data)
	}
}

// isAsPrepared reports whether a file of the same path that is prepared would be read
// alike: it has the same text, and is refused as this one was or not at all.
func (r *reading) isAsPrepared(next *reading) bool {
	return r.refusal == next.refusal && bytes.Equal(r.file.Data, next.file.Data)
}

// read parses the file, unless that is done. Not even a mistake in quorate that it finds
// ends the daemon, or keeps another file from being read.
func (r *reading) read() {
	if r.done {
		return
	}
	defer func() {
		if mistake := recover(); mistake != nil {
			r.refuse(fmt.Sprintf("internal error while reading this file (%v): please report this bug", mistake))
		}
	}()
	if r.refusal != "" {
		r.refuse(r.refusal)
		return
	}
	for _, chunk := range splitDocuments(r.file.Data) {
		if !isEmptyDocument(chunk.data) {
			r.document(chunk)
		}
		if r.weight > maxFileWeight {
			r.refuse(fmt.Sprintf("what the file declares takes more than %d bytes (16 MiB) of memory: use fewer aliases, or split it", maxFileWeight))
			return
		}
	}
	r.done = true
}

// isUTF16 knows the mark at the beginning of such a file.
func isUTF16(data []byte) bool {
	return bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})
}

// refuse notes a file that is not parsed, and forgets what was read of it. What it
// seems to declare is held, and so is, by a declaration without a name, whatever stood
// in it before. A file that never speaks of quorate is another tool's, however large;
// whose one is that was not read nobody knows.
func (r *reading) refuse(why string) {
	*r = reading{file: r.file, refusal: why, done: true}
	path := r.file.Path
	if r.file.Unread == "" && !mentionsGroup(r.file.Data) {
		r.leave(Problem{ID: IDFile, File: path, Message: why})
		return
	}
	r.problems = append(r.problems, Problem{ID: IDFile, File: path, Message: why})
	r.declared = append(r.declared, declaration{origin: Origin{File: path, Line: 1}, problems: slices.Clone(r.problems)})
	for i, chunk := range splitDocuments(r.file.Data) {
		if i > maxDocuments {
			return
		}
		id := skimIdentity(chunk.data)
		id.namespace = cmp.Or(id.namespace, defaultNamespace)
		if mentionsGroup(chunk.data) && id.name != "" {
			problem := Problem{ID: IDFile, File: path, Line: chunk.line, Object: id.String(), Message: why}
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

// countOther adds documents of an earlier operator, which follow those that
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

// leave notes what cannot be read and does not speak of quorate: the first of a file.
func (r *reading) leave(problem Problem) {
	r.ignored++
	if len(r.left) == 0 {
		r.left = append(r.left, problem)
	}
}

// object decodes, defaults and validates a document of one of the kinds.
// Validation skips fields that could not be read.
func (r *reading) object(origin Origin, text chunk, root *document, id identity) {
	origin.text = text
	d := declaration{identity: id, origin: origin, object: newObject(id.kind)}
	problems, meant, weight := decode(root, d.object)
	r.weight += weight + int64(len(text.data))
	d.object.setDefaults()
	// A name that came through a YAML merge is known only now.
	d.name = cmp.Or(d.name, d.object.meta().Name)
	d.namespace = cmp.Or(d.namespace, d.object.meta().Namespace)
	if c, ok := d.object.(*EtcdCluster); ok {
		d.place, d.digest = placeOf(d.identity, d.name, c.Spec.Backup.Destination), Digest(c)
	}
	whole := !slices.ContainsFunc(problems, func(p Problem) bool { return p.Field == "" })
	if !whole || len(problems) > maxProblems {
		r.declare(d, problems) // Little can be said of what is not read as a whole.
		return
	}
	for _, problem := range d.object.validate() {
		// What follows the reported ones need not be compared with them all.
		said := len(problems) <= maxProblems && slices.ContainsFunc(problems, problem.follows)
		if !said && !slices.ContainsFunc(meant, func(field string) bool { return sameBranch(field, problem.Field) }) {
			problem.Line, problem.Column = root.place(problem.Field)
			problems = append(problems, problem)
		}
	}
	r.declare(d, problems)
}

// declare notes a document with its problems, and their place.
func (r *reading) declare(d declaration, problems []Problem) {
	d.namespace = cmp.Or(d.namespace, defaultNamespace)
	for i := range problems {
		problems[i].File = d.origin.File
		problems[i].Line = cmp.Or(problems[i].Line, d.origin.Line)
		problems[i].Object = d.String()
	}
	d.problems = firstProblems(problems)
	r.weight += int64(len(d.problems)) * problemWeight
	r.problems = append(r.problems, d.problems...)
	r.declared = append(r.declared, d)
}

// firstProblems are those of a document that are reported, errors before warnings, and how
// many there are besides.
func firstProblems(problems []Problem) []Problem {
	if len(problems) <= maxProblems {
		return problems
	}
	SortProblems(problems)
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(isWarning(a), isWarning(b)) })
	rest := problems[maxProblems]
	rest.ID, rest.Field, rest.Column = IDMore, "", 0
	rest.Message = fmt.Sprintf("%d more problems of this document are not listed: fix the first %d", len(problems)-maxProblems, maxProblems)
	return append(slices.Clone(problems[:maxProblems]), rest)
}

// isWarning is 1 for a warning.
func isWarning(p Problem) int {
	if p.Warning {
		return 1
	}
	return 0
}
