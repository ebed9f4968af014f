package schema

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of one file. Both are far above what a person writes, and keep a
// mistaken or hostile file from taking the daemon's memory.
const (
	maxFileBytes = 1 << 20
	maxDocuments = 1000
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
}

// declaration is one document of quorate's group, good or bad.
type declaration struct {
	identity
	origin   Origin
	cluster  EtcdCluster
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
	if refusal := refuseFile(data); refusal != "" {
		p.refused(f.Path, data, refusal)
		return
	}
	for _, chunk := range splitDocuments(data) {
		if !isEmptyDocument(chunk.data) {
			p.document(f.Path, chunk)
		}
	}
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
			p.declared = append(p.declared, declaration{identity: id, origin: Origin{path, chunk.line}, problems: []Problem{problem}})
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
	case wrong:
		p.declare(declaration{identity: header.identity, origin: origin}, []Problem{problem})
	case ours:
		p.cluster(origin, root, header.identity)
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

// cluster decodes, defaults and validates an EtcdCluster. Validation says
// nothing of fields that could not be read.
func (p *parser) cluster(origin Origin, root *document, id identity) {
	d := declaration{identity: id, origin: origin}
	problems := decode(root, &d.cluster)
	// A name that came through a YAML merge is known only now.
	d.name = cmp.Or(d.name, d.cluster.Metadata.Name)
	d.namespace = cmp.Or(d.namespace, d.cluster.Metadata.Namespace)
	Default(&d.cluster)
	for _, problem := range Validate(&d.cluster) {
		if !slices.ContainsFunc(problems, func(known Problem) bool { return sameBranch(known.Field, problem.Field) }) {
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
	set := Set{Problems: p.problems, Ignored: p.ignored, Unreadable: p.left}
	held := map[identity]int{}
	for _, d := range p.declared {
		errors := slices.DeleteFunc(slices.Clone(d.problems), func(p Problem) bool { return p.Warning })
		if len(errors) == 0 {
			set.Clusters = append(set.Clusters, Cluster{EtcdCluster: d.cluster, Origin: d.origin})
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
	var others []string
	for _, i := range indices {
		if i != self {
			others = append(others, fmt.Sprintf("%s:%d", p.declared[i].origin.File, p.declared[i].origin.Line))
		}
	}
	const most = 5
	if extra := len(others) - most; extra > 0 {
		others = append(others[:most], fmt.Sprintf("%d more", extra))
	}
	d := &p.declared[self]
	problem := Problem{
		File: d.origin.File, Line: d.origin.Line, Object: id.String(), Field: "metadata.name",
		Message: fmt.Sprintf("%s is declared again at %s: keep one of them, until then none is acted upon", id, strings.Join(others, ", ")),
	}
	d.problems = append(d.problems, problem)
	p.problems = append(p.problems, problem)
}

// sort puts everything into its promised order.
func (s *Set) sort() {
	slices.SortFunc(s.Clusters, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	slices.SortStableFunc(s.Held, func(a, b Held) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Origin.File, b.Origin.File), cmp.Compare(a.Origin.Line, b.Origin.Line))
	})
	for _, held := range s.Held {
		sortProblems(held.Problems)
	}
	sortProblems(s.Problems)
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
