package schema

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/test/needs"
)

// heavy is a cluster of some kilobytes whose aliases expand to 9,000 tolerations.
func heavy(name string) string {
	return "apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata:\n  name: " + name + "\n  namespace: shop\n" +
		"spec: {version: \"3.6.16\", replicas: 3, storage: {size: 8Gi},\n  podTemplate: {spec: {tolerations: [&t {operator: Exists}" +
		strings.Repeat(",*t", 9000) + "]}}}\n"
}

// Little text that expands to much is refused before it takes the memory, at the same
// file whatever was read before, and what it declares is held, by name and by file.
func TestTooMuchMemoryTogether(t *testing.T) {
	needs.Long(t)
	const count = 120
	var files []File
	for i := range count {
		files = append(files, File{Path: fmt.Sprintf("%03d.yaml", i), Data: []byte(heavy(fmt.Sprintf("c%03d", i)))})
	}
	files = append(files, File{Path: "zy.yaml", Data: []byte("# not for quorate.dev\nkind: Pod\n")}, File{Path: "zz.yaml", Data: []byte("kind: Pod\n---\n{")})
	s := Parse(files)
	good := len(s.Clusters)
	if good < 50 || good > 110 || len(s.Held) != 2*(count-good)+1 || s.Ignored != 2 || len(s.Unreadable) != 1 || s.Clusters[good-1].Metadata.Name != fmt.Sprintf("c%03d", good-1) {
		t.Fatalf("%d clusters, %d held, %d ignored, %d unreadable:\n%s", good, len(s.Held), s.Ignored, len(s.Unreadable), lines(s.Problems))
	}
	if said := s.Held[0].Problems[0].String(); !strings.Contains(said, "declare takes more than 67108864 bytes (64 MiB) of memory") {
		t.Error(said)
	}
	readings := make([]reading, count)
	for i := range readings {
		readings[i].prepare(files[i], &taken{})
	}
	if readAll(readings); readings[count-1].done {
		t.Error("all is read before it is found to be too much")
	}
	parser := Parser{}
	if later := parser.Parse(files[count/2:]); len(later.Clusters) != count/2 {
		t.Errorf("the second half alone: %d clusters", len(later.Clusters))
	}
	for range 2 {
		if got := parser.Parse(files); !reflect.DeepEqual(got, s) {
			t.Errorf("after the second half: %d clusters, %d held", len(got.Clusters), len(got.Held))
		}
	}
	parser = Parser{}
	var with, without runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&with)
	runtime.KeepAlive(s)
	s = Set{}
	runtime.GC()
	if runtime.ReadMemStats(&without); with.HeapAlloc-without.HeapAlloc > maxTotalWeight*5/4 {
		t.Errorf("%d MiB are kept", (with.HeapAlloc-without.HeapAlloc)>>20)
	}
}

// What can grow with few bytes of a file counts with what it takes in memory.
func TestWeight(t *testing.T) {
	weigh := func(extra string) int64 {
		return new(Parser).read([]File{{Path: "a.yaml", Data: []byte(good + extra)}})[0].weight
	}
	const hundred = 100
	for name, c := range map[string]struct {
		extra string
		least int64
	}{
		"a list":   {"  podTemplate: {spec: {tolerations: [&t {operator: Exists}" + strings.Repeat(",*t", hundred-1) + "]}}\n", hundred * weightOf(reflect.TypeFor[corev1.Toleration]())},
		"a map":    {"  podTemplate: {metadata: {annotations: {" + manyKeys(hundred) + "}}}\n", hundred * 2 * weightOf(reflect.TypeFor[string]())},
		"pointers": {"  podTemplate: {spec: {affinity: {podAntiAffinity: {}, podAffinity: {}}}}\n", weightOf(reflect.TypeFor[corev1.Affinity]()) + weightOf(reflect.TypeFor[corev1.PodAffinity]()) + weightOf(reflect.TypeFor[corev1.PodAntiAffinity]())},
		"text":     {"#" + strings.Repeat(" x", hundred) + "\n", 0},
		"problems": {strings.ReplaceAll(manyKeys(hundred), ",", "\n"), hundred * problemWeight},
	} {
		if got := weigh(c.extra) - weigh(""); got < c.least+int64(len(c.extra)) || got > 2*c.least+4*int64(len(c.extra)) {
			t.Errorf("%s weighs %d, want %d and the %d bytes of the text", name, got, c.least, len(c.extra))
		}
	}
}

// manyKeys are so many entries of a mapping.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "x%d: y,", i)
	}
	return b.String()
}

// The group may be written so that the text does not show it.
func TestTooMuchMemoryInDisguise(t *testing.T) {
	needs.Long(t)
	var files []File
	for i := range 120 {
		text := strings.Replace(heavy(fmt.Sprintf("c%03d", i)), "quorate.dev", "\"quorate\\u002edev", 1)
		files = append(files, File{Path: fmt.Sprintf("%03d.yaml", i), Data: []byte(strings.Replace(text, "v1alpha1", "v1alpha1\"", 1))})
	}
	s := Parse(files)
	if good := len(s.Clusters); good < 50 || good > 110 || len(s.Unreadable) != 120-good {
		t.Errorf("%d clusters, %d held, %d unreadable:\n%s", good, len(s.Held), len(s.Unreadable), lines(s.Problems))
	}
}

// It is the sum of a file's documents that counts.
func TestTooMuchMemoryOfOneFile(t *testing.T) {
	var many []string
	for i := range 36 {
		many = append(many, heavy(fmt.Sprintf("c%03d", i)))
	}
	s := parseTexts(strings.Join(many, "---\n"), good)
	if names(s) != "shop/orders" || len(s.Held) != len(many)+1 || !strings.Contains(lines(s.Problems), "a.yaml: what the file declares takes more than ") {
		t.Errorf("clusters %q, %d held and:\n%s", names(s), len(s.Held), lines(s.Problems))
	}
}

// A document with a mistake in every line tells of the first, and how many more there are.
func TestManyProblemsOfOneDocument(t *testing.T) {
	text := strings.Replace(good, "replicas", "replcias", 1)
	for i := range 15_000 {
		text += fmt.Sprintf("  x%d: 1\n", i)
	}
	s := one(text)
	if len(s.Problems) != maxProblems+1 || len(s.Held) != 1 || len(s.Held[0].Problems) != maxProblems+1 {
		t.Fatalf("%d problems, held %v", len(s.Problems), heldNames(s))
	}
	last := s.Problems[maxProblems].String()
	if !strings.Contains(lines(s.Problems), "spec.replcias: is not a known field, did you mean replicas?") ||
		!strings.HasSuffix(last, ": 14901 more problems of this document are not listed: fix the first 100") {
		t.Error(last)
	}
	if again := one(text); !reflect.DeepEqual(again, s) {
		t.Errorf("reported again, other problems are the first:\n%s\n%s", lines(s.Problems), lines(again.Problems))
	}
}

// However many warnings precede it, an error is reported, and holds.
func TestErrorsAreToldBeforeWarnings(t *testing.T) {
	var problems []Problem
	for i := range maxProblems + 10 {
		problems = append(problems, Problem{Line: i + 1, Warning: true, Message: "w"})
	}
	problems = append(problems, Problem{Line: 200, Message: "e"})
	shown := firstProblems(problems)
	if len(shown) != maxProblems+1 || shown[0].Message != "e" || shown[1].Line != 1 || !shown[maxProblems].Warning {
		t.Errorf("shown:\n%s", lines(shown))
	}
	if n := len(firstProblems(shown[:maxProblems])); n != maxProblems {
		t.Errorf("of %d, %d are shown", maxProblems, n)
	}
}

// Other tools' templates may be no YAML by the thousand: one of a file is enough.
func TestUnreadableOfOthersIsToldOnceForEachFile(t *testing.T) {
	s := parseTexts(strings.Repeat("---\n{\n", 900), "{", good)
	if len(s.Unreadable) != 2 || s.Ignored != 901 || s.Unreadable[0].Line != 2 || s.Unreadable[1].File != "b.yaml" {
		t.Errorf("%d ignored:\n%s", s.Ignored, lines(s.Unreadable))
	}
}
