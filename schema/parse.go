package schema

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Parse reads files, fills defaults, validates, and checks across the files for
// objects that are declared twice. It reports all problems at once, and a bad
// document hides neither its neighbours nor other files: it only holds the
// objects that it names. The result depends on the files, not on their order.
func Parse(files []File) Set { return new(Parser).Parse(files) }

// Parser parses the files of one commit after another, and reads only those that the
// last one did not have like this. It saves work and decides nothing: what it returns
// is what the function Parse would. So the sets share what did not change, and must
// not be written to. The zero value is ready; it is not for several goroutines at once.
type Parser struct {
	Bounds

	// last are the files of the last call, by path.
	last map[string]*reading
}

// Parse is the function Parse, with less work where files have not changed.
func (p *Parser) Parse(files []File) Set {
	ordered := slices.Clone(files)
	slices.SortStableFunc(ordered, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	g, readings, declared := &gathering{}, p.read(ordered), 0
	for i := range readings {
		declared += len(readings[i].declared)
	}
	g.declared = make([]declaration, 0, declared)
	for _, r := range readings {
		g.add(r)
	}
	g.confine(p.Namespaces)
	if p.Policy != nil {
		g.holdTo(p.Policy)
	}
	g.withoutPrivileges(p.Policy)
	if p.CheckHosts != nil {
		g.confineChecks(p.CheckHosts)
	}
	return g.set()
}

// read reads the files that are not known.
func (p *Parser) read(files []File) []reading {
	readings := make([]reading, len(files))
	before := &taken{}
	for i, f := range files {
		r := &readings[i]
		r.prepare(f, before)
		if known, ok := p.last[f.Path]; ok && known.isAsPrepared(r) {
			*r = *known
		}
	}
	readAll(readings)
	refuseHeavy(readings)
	p.last = make(map[string]*reading, len(files))
	for i := range readings {
		p.last[readings[i].file.Path] = &readings[i]
	}
	return readings
}

// readAll reads files, several at a time and in their order, until they are too much
// together.
func readAll(readings []reading) {
	var next, weight atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for weight.Load() <= maxTotalWeight {
				i := next.Add(1) - 1
				if i >= int64(len(readings)) {
					return
				}
				readings[i].read()
				weight.Add(readings[i].weight)
			}
		})
	}
	workers.Wait()
}

// gathering is what all files declare together.
type gathering struct {
	reading
	// refused are declarations that their files may not make.
	refused []declaration
	// restored are the clusters that a restore makes, as namespace/name.
	restored map[string]bool
	// hints is how often a similar name was searched for.
	hints int
	// byIdentity finds a declaration, once all files are read.
	byIdentity map[identity]int
}

// add takes what one more file declares.
func (g *gathering) add(r reading) {
	g.declared = append(g.declared, r.declared...)
	g.problems = append(g.problems, r.problems...)
	g.left = append(g.left, r.left...)
	g.ignored += r.ignored
	for group, seen := range r.others {
		g.countOther(group, seen)
	}
}

// declaration is one document of quorate's group, good or bad.
type declaration struct {
	identity
	origin Origin
	// object is what the document says; nil for one that cannot be read.
	object   object
	problems []Problem
	// place is where the backups of a cluster go, by placeOf, and digest that of the cluster.
	place, digest string
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

// predecessors points at the way from the manifests of earlier operators, once
// for each operator.
func (g *gathering) predecessors() {
	for group, seen := range g.others {
		documents, them := "document", "it is left alone"
		if seen.count > 1 {
			documents, them = "documents", "they are left alone, the first is this one"
		}
		problem := seen.first.Problem(IDPredecessor, "apiVersion", "%d %s of %s: %s, and `quorate convert` makes quorate files of manifests", seen.count, documents, group, them)
		problem.Warning = true
		g.problems = append(g.problems, problem)
	}
}

// set sorts the declarations into good and held ones.
func (g *gathering) set() Set {
	g.conflicts()
	g.crossFile()
	g.predecessors()
	set := Set{Problems: g.problems, Ignored: g.ignored, Unreadable: g.left}
	set.Clusters = slices.Grow(set.Clusters, g.clusters())
	held := map[identity]int{}
	for _, d := range append(slices.Clip(g.declared), g.unrivalled()...) { // without a copy where none is refused
		errors := slices.DeleteFunc(slices.Clone(d.problems), func(p Problem) bool { return p.Warning })
		if len(errors) == 0 {
			set.add(d)
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

// unrivalled are the refused declarations of objects that no other file declares: such an
// object may be there from before it was refused, and is held. That of another team is not
// held by a file that may not declare it.
func (g *gathering) unrivalled() []declaration {
	if len(g.refused) == 0 {
		return nil
	}
	declared := make(map[identity]bool, len(g.declared))
	for _, d := range g.declared {
		declared[d.identity] = true
	}
	return slices.DeleteFunc(g.refused, func(d declaration) bool { return d.name != "" && declared[d.identity] })
}

// clusters counts the declarations of clusters, good or bad.
func (g *gathering) clusters() int {
	n := 0
	for _, d := range g.declared {
		if d.kind == KindCluster {
			n++
		}
	}
	return n
}

// conflicts finds objects that are declared more than once. None of the places
// is taken, since which one is meant only the author knows.
func (g *gathering) conflicts() {
	first, all := make(map[identity]int, len(g.declared)), map[identity][]int{}
	for i, d := range g.declared {
		if d.kind == "" || d.name == "" {
			continue
		}
		before, again := first[d.identity]
		switch {
		case !again:
			first[d.identity] = i
		case all[d.identity] == nil:
			all[d.identity] = []int{before, i}
		default:
			all[d.identity] = append(all[d.identity], i)
		}
	}
	for id, indices := range all {
		for _, i := range indices {
			g.conflict(id, i, indices)
		}
	}
}

// conflict tells one of the places about the others.
func (g *gathering) conflict(id identity, self int, indices []int) {
	const most = 5
	var others []string
	for _, i := range indices[:min(most+1, len(indices))] {
		if i != self && len(others) < most {
			others = append(others, g.declared[i].origin.String())
		}
	}
	if extra := len(indices) - 1 - len(others); extra > 0 {
		others = append(others, fmt.Sprintf("%d more", extra))
	}
	g.blame(&g.declared[self], "metadata.name", "%s is declared again at %s: keep one of them, until then none is reconciled", id, strings.Join(others, ", "))
}

// add puts a good object where its kind belongs.
func (s *Set) add(d declaration) {
	switch o := d.object.(type) {
	case *EtcdCluster:
		s.Clusters = append(s.Clusters, Cluster{EtcdCluster: o, Origin: d.origin, Digest: d.digest})
	case *EtcdBackup:
		s.Backups = append(s.Backups, Backup{EtcdBackup: *o, Origin: d.origin})
	case *EtcdBackupSchedule:
		s.Schedules = append(s.Schedules, Schedule{EtcdBackupSchedule: *o, Origin: d.origin})
	case *EtcdRestore:
		s.Restores = append(s.Restores, Restore{EtcdRestore: *o, Origin: d.origin})
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

// sameBranch reports whether one field is the other or holds it.
func sameBranch(a, b string) bool {
	return a == b || isUnder(a, b) || isUnder(b, a)
}

// isUnder reports whether field is a part of parent.
func isUnder(field, parent string) bool {
	rest, ok := strings.CutPrefix(field, parent)
	return ok && parent != "" && rest != "" && (rest[0] == '.' || rest[0] == '[')
}
