package schema

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of one file, and of all together. They are far above what people write,
// and keep a mistaken or hostile file from taking the daemon's memory.
const (
	maxFileBytes = 1 << 20
	maxDocuments = 1000

	maxTotalBytes     = 64 << 20
	maxTotalDocuments = 10000
)

// Parse reads files, fills defaults, validates, and looks across the files for
// objects that are declared twice. It reports all problems at once, and a bad
// document hides neither its neighbours nor other files: it only holds the
// objects that it names. The result depends on the files, not on their order.
func Parse(files []File) Set {
	p := &parser{}
	ordered := slices.Clone(files)
	slices.SortStableFunc(ordered, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range ordered {
		p.file(f)
	}
	return p.set()
}

// parser gathers what the documents declare.
type parser struct {
	declared []declaration
	problems []Problem
	ignored  int
	left     []Problem
	// bytes and documents are read so far.
	bytes, documents int
	// others are the documents of earlier operators, by group.
	others map[string]others
	// restored are the clusters that a restore makes, as namespace/name.
	restored map[string]bool
	// hints is how often a near name was looked for.
	hints int
	// byIdentity finds a declaration, once all files are read.
	byIdentity map[identity]int
}

// declaration is one document of quorate's group, good or bad.
type declaration struct {
	identity
	origin Origin
	// object is what the document says; nil for one that cannot be read.
	object   object
	problems []Problem
}

// identity names an object, as far as it could be read.
type identity struct {
	kind, namespace, name string
}

// String is "EtcdCluster namespace/name", or "" when the object has no name.
func (id identity) String() string {
	if id.kind == "" || id.name == "" {
		return ""
	}
	return id.kind + " " + id.namespace + "/" + id.name
}

// file reads one file.
func (p *parser) file(f File) {
	data := bytes.TrimPrefix(f.Data, []byte("\ufeff"))
	if isUTF16(data) {
		// Without the zero bytes it is close enough to text to say whose it is.
		p.refused(f.Path, bytes.ReplaceAll(data, []byte{0}, nil), "the file is UTF-16 text: save it as UTF-8")
		return
	}
	refusal := refuseFile(data)
	if refusal == "" {
		refusal = p.refuseMore(data)
	}
	if refusal != "" {
		p.refused(f.Path, data, refusal)
		return
	}
	for _, chunk := range splitDocuments(data) {
		if !isEmptyDocument(chunk.data) {
			p.document(f.Path, chunk)
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

// refuseMore counts a file of quorate's, and refuses what is too much together.
func (p *parser) refuseMore(data []byte) string {
	if !mentionsGroup(data) {
		return ""
	}
	p.bytes += len(data)
	p.documents += countDocuments(data)
	switch {
	case p.bytes > maxTotalBytes:
		return fmt.Sprintf("the files up to this one have more than %d bytes (64 MiB) together, and no more are read: watch fewer directories, or divide them between several repositories", maxTotalBytes)
	case p.documents > maxTotalDocuments:
		return fmt.Sprintf("the files up to this one have more than %d documents together, and no more are read: watch fewer directories, or divide them between several repositories", maxTotalDocuments)
	}
	return ""
}

// refused notes a file that is not parsed. What it seems to declare is held. A
// file that never speaks of quorate is another tool's, however large.
func (p *parser) refused(path string, data []byte, why string) {
	if !mentionsGroup(data) {
		p.leave(Problem{File: path, Message: why})
		return
	}
	p.problems = append(p.problems, Problem{File: path, Message: why})
	for i, chunk := range splitDocuments(data) {
		if i > maxDocuments {
			return
		}
		id := skimIdentity(chunk.data)
		id.namespace = cmp.Or(id.namespace, defaultNamespace)
		if mentionsGroup(chunk.data) && id.name != "" {
			problem := Problem{File: path, Line: chunk.line, Object: id.String(), Message: why}
			p.declared = append(p.declared, declaration{identity: id, origin: Origin{File: path, Line: chunk.line}, problems: []Problem{problem}})
		}
	}
}

// document reads one document of a file.
func (p *parser) document(path string, chunk chunk) {
	origin := Origin{File: path, Line: chunk.line}
	root, problem := readYAML(chunk)
	if problem != nil {
		p.unreadable(origin, chunk, *problem)
		return
	}
	header := readHeader(root)
	switch verdict, problem := classify(root, header); verdict {
	case foreign:
		p.ignored++
		p.predecessor(origin, root, header)
	case wrong:
		p.declare(declaration{identity: header.identity, origin: origin}, []Problem{problem})
	case ours:
		p.object(origin, root, header.identity)
	}
}

// others are the documents of an earlier operator.
type others struct {
	count int
	first Origin
}

// predecessor notes a document of an earlier operator.
func (p *parser) predecessor(origin Origin, root *document, h header) {
	group, _, _ := strings.Cut(h.apiVersion, "/")
	if group != "etcd.database.coreos.com" && group != "etcd.improbable.io" {
		return
	}
	seen, known := p.others[group]
	if !known {
		origin.document = root
		seen.first = origin
	}
	seen.count++
	if p.others == nil {
		p.others = map[string]others{}
	}
	p.others[group] = seen
}

// predecessors points at the way from the manifests of earlier operators, once
// for each operator.
func (p *parser) predecessors() {
	for group, seen := range p.others {
		documents, them := "document", "it is left alone"
		if seen.count > 1 {
			documents, them = "documents", "they are left alone, the first is this one"
		}
		problem := seen.first.Problem("apiVersion", "%d %s of %s: %s, and `quorate convert` makes quorate files of manifests", seen.count, documents, group, them)
		problem.Warning = true
		p.problems = append(p.problems, problem)
	}
}

// unreadable notes a document that is no YAML. Only one that speaks of quorate
// is reported: templates of other tools are often no YAML.
func (p *parser) unreadable(origin Origin, chunk chunk, problem Problem) {
	if !mentionsGroup(chunk.data) {
		problem.File = origin.File
		p.leave(problem)
		return
	}
	p.declare(declaration{identity: skimIdentity(chunk.data), origin: origin}, []Problem{problem})
}

// leave notes what cannot be read and does not speak of quorate.
func (p *parser) leave(problem Problem) {
	p.ignored++
	p.left = append(p.left, problem)
}

// object decodes, defaults and validates a document of one of the kinds.
// Validation says nothing of fields that could not be read.
func (p *parser) object(origin Origin, root *document, id identity) {
	origin.document = root
	d := declaration{identity: id, origin: origin, object: newObject(id.kind)}
	problems, meant := decode(root, d.object)
	// A name that came through a YAML merge is known only now.
	d.name = cmp.Or(d.name, d.object.meta().Name)
	d.namespace = cmp.Or(d.namespace, d.object.meta().Namespace)
	d.object.setDefaults()
	if slices.ContainsFunc(problems, func(p Problem) bool { return p.Field == "" }) {
		p.declare(d, problems) // Nothing can be said of a document that is not read as a whole.
		return
	}
	for _, problem := range d.object.validate() {
		said := slices.ContainsFunc(problems, func(known Problem) bool { return sameBranch(known.Field, problem.Field) })
		if !said && !slices.ContainsFunc(meant, func(field string) bool { return sameBranch(field, problem.Field) }) {
			problem.Line, problem.Column = root.place(problem.Field)
			problems = append(problems, problem)
		}
	}
	p.declare(d, problems)
}

// declare notes a document with its problems, and says where they are.
func (p *parser) declare(d declaration, problems []Problem) {
	d.namespace = cmp.Or(d.namespace, defaultNamespace)
	for _, problem := range problems {
		problem.File = d.origin.File
		problem.Line = cmp.Or(problem.Line, d.origin.Line)
		problem.Object = d.String()
		d.problems = append(d.problems, problem)
	}
	p.problems = append(p.problems, d.problems...)
	p.declared = append(p.declared, d)
}

// set sorts the declarations into good and held ones.
func (p *parser) set() Set {
	p.conflicts()
	p.crossFile()
	p.predecessors()
	set := Set{Problems: p.problems, Ignored: p.ignored, Unreadable: p.left}
	held := map[identity]int{}
	for _, d := range p.declared {
		errors := slices.DeleteFunc(slices.Clone(d.problems), func(p Problem) bool { return p.Warning })
		if len(errors) == 0 {
			set.add(d.object, d.origin)
			continue
		}
		i, known := held[d.identity]
		if !known || d.name == "" {
			i = len(set.Held)
			held[d.identity] = i
			set.Held = append(set.Held, Held{Kind: d.kind, Namespace: d.namespace, Name: d.name, Origin: d.origin})
		}
		set.Held[i].Problems = append(set.Held[i].Problems, errors...)
	}
	set.sort()
	return set
}

// conflicts finds objects that are declared more than once. None of the places
// is taken, since which one is meant only the author knows.
func (p *parser) conflicts() {
	places := map[identity][]int{}
	for i, d := range p.declared {
		if d.kind != "" && d.name != "" {
			places[d.identity] = append(places[d.identity], i)
		}
	}
	for id, indices := range places {
		for _, i := range indices {
			if len(indices) > 1 {
				p.conflict(id, i, indices)
			}
		}
	}
}

// conflict tells one of the places about the others.
func (p *parser) conflict(id identity, self int, indices []int) {
	const most = 5
	var others []string
	for _, i := range indices[:min(most+1, len(indices))] {
		if i != self && len(others) < most {
			others = append(others, p.declared[i].origin.String())
		}
	}
	if extra := len(indices) - 1 - len(others); extra > 0 {
		others = append(others, fmt.Sprintf("%d more", extra))
	}
	p.blame(&p.declared[self], "metadata.name", "%s is declared again at %s: keep one of them, until then none is acted upon", id, strings.Join(others, ", "))
}

// add puts a good object where its kind belongs.
func (s *Set) add(o object, origin Origin) {
	switch o := o.(type) {
	case *EtcdCluster:
		s.Clusters = append(s.Clusters, Cluster{EtcdCluster: *o, Origin: origin})
	case *EtcdBackup:
		s.Backups = append(s.Backups, Backup{EtcdBackup: *o, Origin: origin})
	case *EtcdBackupSchedule:
		s.Schedules = append(s.Schedules, Schedule{EtcdBackupSchedule: *o, Origin: origin})
	case *EtcdRestore:
		s.Restores = append(s.Restores, Restore{EtcdRestore: *o, Origin: origin})
	}
}

// byName orders objects by namespace and name.
func byName(a, b Metadata) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// sort puts everything into its promised order.
func (s *Set) sort() {
	slices.SortFunc(s.Clusters, func(a, b Cluster) int { return byName(a.Metadata, b.Metadata) })
	slices.SortFunc(s.Backups, func(a, b Backup) int { return byName(a.Metadata, b.Metadata) })
	slices.SortFunc(s.Schedules, func(a, b Schedule) int { return byName(a.Metadata, b.Metadata) })
	slices.SortFunc(s.Restores, func(a, b Restore) int { return byName(a.Metadata, b.Metadata) })
	slices.SortStableFunc(s.Held, func(a, b Held) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Origin.File, b.Origin.File), cmp.Compare(a.Origin.Line, b.Origin.Line))
	})
	for _, held := range s.Held {
		SortProblems(held.Problems)
	}
	SortProblems(s.Problems)
}

// sameBranch says whether one field is the other or holds it.
func sameBranch(a, b string) bool {
	return a == b || isUnder(a, b) || isUnder(b, a)
}

// isUnder says whether field is a part of parent.
func isUnder(field, parent string) bool {
	rest, ok := strings.CutPrefix(field, parent)
	return ok && parent != "" && rest != "" && (rest[0] == '.' || rest[0] == '[')
}
