package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/schema"
)

// The groups of the old operators.
const (
	groupCoreos     = "etcd.database.coreos.com"
	groupImprobable = "etcd.improbable.io"
)

// Result is what became of the files.
type Result struct {
	// Documents are quorate's, in the order of the files that they come from.
	Documents []Document
	// Notes are sorted by file and line: what has no equivalent and what to do.
	Notes []Note
	// Unreadable are the documents that are no YAML.
	Unreadable []Note
	// Ignored counts the documents of other kinds: CRDs, Deployments, Secrets. An etcd
	// of an operator that quorate does not know is a document that is left out.
	Ignored int
}

// Document is one object of quorate's.
type Document struct {
	// Kind, Namespace and Name are those of the object; Namespace may be "".
	Kind, Namespace, Name string
	// Text is YAML with comments, without a document marker.
	Text string
	// LeftOut says that the whole text is a comment, because something that the
	// object needs could not be expressed.
	LeftOut bool
}

// Note is one thing that a person should know about an old manifest.
type Note struct {
	// File is the given path, Line counts from 1.
	File string
	Line int
	// Message tells what has no equivalent and what to do.
	Message string
	// at is the field of the new document that the note is written above.
	at string
}

// String is "file:line: message".
func (n Note) String() string { return fmt.Sprintf("%s:%d: %s", n.File, n.Line, n.Message) }

// Convert converts every manifest of the files. Files are taken in the order of
// their paths, so the result does not depend on the order they are given in.
func Convert(files []schema.File) Result {
	c := &conversion{clusters: map[string]source{}}
	ordered := slices.Clone(files)
	slices.SortStableFunc(ordered, func(a, b schema.File) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range ordered {
		c.read(f)
	}
	for _, s := range c.sources {
		c.convert(s)
	}
	c.check()
	return c.result()
}

// conversion gathers what the files hold and what becomes of it.
type conversion struct {
	sources    []source
	clusters   map[string]source
	drafts     []*draft
	notes      []Note
	unreadable []Note
	ignored    int
}

// source is one old object.
type source struct {
	file, group, version, kind, namespace, name string

	node *yaml.Node
}

// key tells objects of a kind apart.
func (s source) key() string { return objectKey(s.namespace, s.name) }

func objectKey(namespace, name string) string { return cmp.Or(namespace, "default") + "/" + name }

// convert sends an object to the function for its kind.
func (c *conversion) convert(s source) {
	switch s.group + " " + s.kind {
	case groupCoreos + " EtcdCluster":
		c.coreosCluster(s)
	case groupCoreos + " EtcdBackup":
		c.coreosBackup(s)
	case groupCoreos + " EtcdRestore":
		c.coreosRestore(s)
	case groupImprobable + " EtcdCluster":
		c.improbableCluster(s)
	case groupImprobable + " EtcdBackup":
		c.improbableBackup(s)
	case groupImprobable + " EtcdBackupSchedule":
		c.improbableSchedule(s)
	case groupImprobable + " EtcdRestore":
		c.improbableRestore(s)
	case groupImprobable + " EtcdPeer":
		c.notes = append(c.notes, Note{File: s.file, Line: s.node.Line, Message: fmt.Sprintf(
			"EtcdPeer %s is not converted: quorate keeps no object per member, the members follow from the EtcdCluster", clip(s.name))})
	case schema.Group + " " + s.kind:
		c.notes = append(c.notes, Note{File: s.file, Line: s.node.Line, Message: fmt.Sprintf("%s %s is quorate's already and is not converted", s.kind, clip(s.name))})
	default:
		c.unknown(s)
	}
}

// unknown keeps an object that cannot be converted as a comment, whole: whoever gives
// away the old file still has all that it said.
func (c *conversion) unknown(s source) {
	d := c.draft(s, s.kind, s.name)
	d.root = s.node
	if s.group == groupCoreos || s.group == groupImprobable {
		d.leaveOut("%s is not a known kind of %s: convert it manually", clip(s.kind), s.group)
		return
	}
	d.leaveOut("quorate does not know the operator of %s: write an EtcdCluster for it; `quorate schema` and the reference name all fields", s.group)
}

// speaksOfEtcd reports whether an object is an etcd, or a part of one, of some operator:
// one that is passed over in silence would be taken for converted.
//
//	etcd.database.coreos.com/v1beta2  EtcdCluster
//	operator.etcd.io/v1alpha1         EtcdCluster
//	druid.gardener.cloud/v1alpha1     Etcd, EtcdCopyBackupsTask
func speaksOfEtcd(group, kind string) bool {
	return strings.Contains(group, "etcd") || strings.Contains(group, ".") && strings.HasPrefix(strings.ToLower(kind), "etcd")
}

// result gives everything its promised order.
func (c *conversion) result() Result {
	r := Result{Unreadable: c.unreadable, Ignored: c.ignored, Notes: c.notes}
	for _, d := range c.drafts {
		r.Documents = append(r.Documents, d.document())
		r.Notes = append(r.Notes, d.notes...)
	}
	slices.SortStableFunc(r.Notes, func(a, b Note) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return r
}
