package schema

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// good is a valid document, to which the tests add what they are about.
const good = `apiVersion: quorate.dev/v1alpha1
kind: EtcdCluster
metadata: {name: orders, namespace: shop}
spec:
  version: "3.6.16"
  replicas: 3
  storage: {size: 8Gi}
`

// one parses one file.
func one(text string) Set { return Parse([]File{{Path: "a.yaml", Data: []byte(text)}}) }

// lines are the problems as text.
func lines(problems []Problem) string {
	var b strings.Builder
	for _, p := range problems {
		if i := slices.IndexFunc(ProblemKinds(), func(k ProblemKind) bool { return k.ID == p.ID }); i < 0 || p.Warning == (ProblemKinds()[i].Class == KindOfError) {
			panic(fmt.Sprintf("339: the ID of %q is %q, which is none of its sort", p, p.ID))
		}
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

// names are the valid clusters.
func names(s Set) string {
	var all []string
	for _, c := range s.Clusters {
		all = append(all, c.Metadata.Namespace+"/"+c.Metadata.Name)
	}
	return strings.Join(all, " ")
}

// heldNames are the held objects.
func heldNames(s Set) string {
	var all []string
	for _, h := range s.Held {
		all = append(all, h.Kind+" "+h.Namespace+"/"+h.Name)
	}
	return strings.Join(all, ", ")
}

func TestParseReadsDefaultsAndPlaces(t *testing.T) {
	s := one("# a comment\n---\n" + strings.Replace(good, ", namespace: shop", "", 1))
	if len(s.Clusters) != 1 || len(s.Problems) != 0 || len(s.Held) != 0 {
		t.Fatalf("got %d clusters and:\n%s", len(s.Clusters), lines(s.Problems))
	}
	c := s.Clusters[0]
	if c.Origin.File != "a.yaml" || c.Origin.Line != 2 {
		t.Errorf("origin %s:%d", c.Origin.File, c.Origin.Line)
	}
	if c.Metadata.Namespace != "default" || c.Spec.TLS.Mode != TLSManaged || c.Spec.Mode != ModeEnforce ||
		c.Spec.Upgrade.Backup != BackupRequired || c.Spec.Upgrade.Path != PathStrict || c.Spec.Upgrade.Soak.Duration != 10*time.Second {
		t.Errorf("defaults: %+v", c.EtcdCluster)
	}
	if c.Spec.Etcd.AutoCompaction.Mode != "" {
		t.Errorf("a compaction mode without retention: %q", c.Spec.Etcd.AutoCompaction.Mode)
	}
}

// Forms of YAML that are fine.
func TestParseTakesYAML(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"14 CRLF", strings.ReplaceAll(good, "\n", "\r\n"), "shop/orders"},
		{"14 BOM", "\ufeff" + good, "shop/orders"},
		{"14 BOM and CRLF", "\ufeff" + strings.ReplaceAll(good, "\n", "\r\n"), "shop/orders"},
		{"14 empty documents", "---\n---\n# nothing\n---\n" + good + "---\n...\n", "shop/orders"},
		{"14 directive", "%YAML 1.2\n---\n" + good, "shop/orders"},
		{"14 two documents", good + "---\n" + strings.Replace(good, "orders", "basket", 1), "shop/basket shop/orders"},
		{"14 JSON", `{"apiVersion":"quorate.dev/v1alpha1","kind":"EtcdCluster","metadata":{"name":"j"},"spec":{"version":"3.6.16","replicas":1,"storage":{"size":"8Gi"}}}`, "default/j"},
		{"14 anchors", good + "  podTemplate:\n    metadata: {labels: &l {team: a}, annotations: *l}\n", "shop/orders"},
		{"14 merge", good + "  podTemplate:\n    metadata:\n      labels: &l {team: a}\n      annotations: {<<: *l, team: b}\n", "shop/orders"},
		{"14 document marker in a text", good + "  podTemplate: {metadata: {annotations: {note: \"a --- b\"}}}\n", "shop/orders"},
		{"14 tab within a line", strings.Replace(good, "replicas: 3", "replicas:\t3", 1), "shop/orders"},
		{"14 nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := one(c.text)
			if names(s) != c.want || len(s.Problems) > 0 {
				t.Fatalf("got %q and:\n%s", names(s), lines(s.Problems))
			}
		})
	}
}

// Documents that cannot be taken, and what is held for each.
func TestParseHolds(t *testing.T) {
	const orders, aFile = "EtcdCluster shop/orders", " /" // whatever stood in the file
	bomb := good + "  podTemplate:\n    metadata:\n      a: &a [x,x,x,x,x,x,x,x,x,x]\n" +
		"      b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n      c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
		"      d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n      e: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n"
	for _, c := range []struct{ name, text, want, held string }{
		{"4 version read as a number", strings.Replace(good, `"3.6.16"`, "3.10", 1), "a.yaml:5:3: spec.version: YAML reads 3.10 as the number 3.1: put it in quotes", orders},
		{"4 version as a short number", strings.Replace(good, `"3.6.16"`, "3.6", 1), "a.yaml:5:3: spec.version: must be a string, not the number 3.6: put it in quotes", orders},
		{"13 unknown field", good + "  replica: 3\n", "a.yaml:8:3: spec.replica: is not a known field, did you mean replicas?", orders},
		{"13 unknown field deep down", good + "  podTemplate: {spec: {tolerations: [{operater: Exists}]}}\n", "a.yaml:8:39: spec.podTemplate.spec.tolerations[0].operater: is not a known field, did you mean operator?", orders},
		{"13 field of another object", good + "status: {}\n", "a.yaml:8:1: status: is not a known field", orders},
		{"13 wrong type", strings.Replace(good, "replicas: 3", `replicas: "3"`, 1), "a.yaml:6:3: spec.replicas: must be an integer, not the string \"3\": leave out the quotes", orders},
		{"13 number for a text", good + "  etcd: {options: {heartbeat-interval: 100}}\n", "a.yaml:8:20: spec.etcd.options.heartbeat-interval: must be a string, not the number 100: put it in quotes", orders},
		{"13 fraction", strings.Replace(good, "replicas: 3", "replicas: 3.5", 1), "spec.replicas: must be an integer", orders},
		{"13 too large", strings.Replace(good, "replicas: 3", "replicas: 99999999999", 1), "spec.replicas: must be an integer", orders},
		{"13 list for an object", good + "  etcd: []\n", "a.yaml:8:3: spec.etcd: must be an object, not a list", orders},
		{"13 bad amount", strings.Replace(good, "8Gi", "8GB", 1), "a.yaml:7:13: spec.storage.size: must be a quantity such as 8Gi", orders},
		{"13 bad duration", good + "  upgrade: {soak: 10}\n", "a.yaml:8:13: spec.upgrade.soak: must be a duration", orders},
		{"13 spec of another kind", strings.Replace(good, "EtcdCluster", "EtcdBackup", 1), "a.yaml:5:3: spec.version: is not a known field", "EtcdBackup shop/orders"},
		{"13 unknown kind", strings.Replace(good, "EtcdCluster", "EtcdClutser", 1), `a.yaml:2:1: kind: "EtcdClutser" is not a kind of quorate, did you mean EtcdCluster?`, "EtcdClutser shop/orders"},
		{"13 no kind", strings.Replace(good, "kind: EtcdCluster\n", "", 1), "kind: is missing", " shop/orders"},
		{"13 other version", strings.Replace(good, "v1alpha1", "v1", 1), `a.yaml:1:1: apiVersion: "quorate.dev/v1" is unknown to this version of quorate: write quorate.dev/v1alpha1`, orders},
		{"13 misspelt group", strings.Replace(good, "quorate.dev", "quorat.dev", 1), "did you mean quorate.dev/v1alpha1?", orders},
		{"13 apiVersion missing", strings.Replace(good, "apiVersion: quorate.dev/v1alpha1\n", "", 1), "apiVersion: is missing", orders},
		{"13 apiVersion misspelt", strings.Replace(good, "apiVersion", "apiversion", 1), "apiVersion: is missing", orders},
		{"14 List", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: quorate.dev/v1alpha1, kind: EtcdCluster}\n", "a.yaml:2:1: kind: lists are not supported", "List default/"},
		{"14 own List", strings.Replace(good, "EtcdCluster", "EtcdClusterList", 1), "lists are not supported", "EtcdClusterList shop/orders"},
		{"14 key written twice", good + "  replicas: 5\n", "a.yaml:8:3: spec.replicas: is written twice, first on line 6: keep one of them", orders},
		{"14 tab", strings.Replace(good, "  replicas", "\treplicas", 1), "a.yaml:6:1: the indentation contains a tab", "EtcdCluster default/"},
		{"14 no YAML", good + "  etcd: {\n", "a.yaml:8:3: a brace or bracket is opened and not closed", "EtcdCluster default/"},
		{"14 no YAML, names in lines", "apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata:\n  labels:\n    name: no\n  name: \"orders\" # x\n  namespace: shop\nspec: [\n", "a.yaml:8:1: a brace or bracket is opened and not closed", orders},
		{"14 alias bomb", bomb, "a.yaml:1:1: the document expands to more than", orders},
		{"14 alias in itself", good + "  podTemplate: &p {metadata: *p}\n", "", orders},
		{"14 infinite number", strings.Replace(good, "replicas: 3", "replicas: .inf", 1), "not a finite number", orders},
		{"14 tag", strings.Replace(good, "replicas: 3", "replicas: !x 3", 1), "the YAML tag \"!x\" is not known", orders},
		{"14 too large", good + strings.Repeat("#", 1<<20), "at most 1048576 (1 MiB) are accepted", aFile},
		{"14 10 MB", good + strings.Repeat("# x\n", 10<<18), "at most 1048576 (1 MiB) are accepted", aFile},
		{"14 too many documents", good + strings.Repeat("---\n", 1001), "at most 1000 are accepted", aFile},
		{"14 not UTF-8", good + "# \xff\n", "not UTF-8", aFile},
		{"3 no metadata", strings.Replace(good, "metadata: {name: orders, namespace: shop}\n", "", 1), "metadata.name: is missing", "EtcdCluster default/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := one(c.text)
			if len(s.Clusters) > 0 || !strings.Contains(lines(s.Problems), c.want) {
				t.Errorf("clusters %q and:\n%s\nwant %q", names(s), lines(s.Problems), c.want)
			}
			if got := heldNames(s); got != c.held {
				t.Errorf("held %q, want %q", got, c.held)
			}
		})
	}
}

// Of a document that is not read as a whole, no field is reported missing.
func TestParse14UnreadDocumentHasOneProblem(t *testing.T) {
	s := one(good + "  podTemplate: &p {metadata: *p}\n")
	if len(s.Problems) != 1 || heldNames(s) != "EtcdCluster shop/orders" {
		t.Errorf("held %q and:\n%s", heldNames(s), lines(s.Problems))
	}
}

func TestParseLeavesOthersAlone(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"13 core group", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"},
		{"15 Secret", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData: {password: hunter2}\n"},
		{"13 same kind of another operator", "apiVersion: etcd.aenix.io/v1alpha1\nkind: EtcdCluster\nmetadata: {name: x}\n"},
		{"13 List of others", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret}]\n"},
		{"13 no object", "replicas: 3\nimage: x\n"},
		{"13 template of another tool", "kind: {{ .Values.kind }}\n  - [\n"},
		{"13 large file of another tool", "apiVersion: v1\nkind: ConfigMap\n" + strings.Repeat("# x\n", 300000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if s := one(c.text); s.Ignored != 1 || len(s.Problems)+len(s.Held)+len(s.Clusters) > 0 {
				t.Fatalf("ignored %d, held %q, problems:\n%s", s.Ignored, heldNames(s), lines(s.Problems))
			}
		})
	}
}

func TestParseReportsAllAtOnce(t *testing.T) {
	s := one(strings.NewReplacer("3.6.16", "v3.5.1", "replicas: 3", "replicas: 9", "8Gi", "0", "name: orders", "name: Orders").Replace(good))
	got := lines(s.Problems)
	for _, field := range []string{"metadata.name", "spec.version", "spec.replicas", "spec.storage.size"} {
		if !strings.Contains(got, field+": ") {
			t.Errorf("nothing of %s in:\n%s", field, got)
		}
	}
	if s.Problems[0].Object != "EtcdCluster shop/Orders" {
		t.Errorf("object %q", s.Problems[0].Object)
	}
}

func TestParse14OneBadFileHidesNoGoodOne(t *testing.T) {
	files := []File{{Path: "bad.yaml", Data: []byte("apiVersion: quorate.dev/v1alpha1\nkind: [\n")}}
	for i := range 100 {
		files = append(files, File{Path: fmt.Sprintf("%d.yaml", i), Data: []byte(strings.Replace(good, "orders", fmt.Sprintf("c%d", i), 1))})
	}
	// A bad document between good ones of the same file, too.
	files = append(files, File{Path: "mixed.yaml", Data: []byte(strings.Replace(good, "orders", "m1", 1) + "---\nquorate.dev: [\n---\n" + strings.Replace(good, "orders", "m2", 1))})
	s := Parse(files)
	if len(s.Clusters) != 102 || len(s.Held) != 2 || len(s.Problems) != 2 {
		t.Fatalf("%d clusters, held %q:\n%s", len(s.Clusters), heldNames(s), lines(s.Problems))
	}
}

// No file is known that makes quorate panic, so the test makes such a mistake.
func TestParse14MistakeInQuorateHoldsOneFile(t *testing.T) {
	kind := reflect.TypeFor[EtcdRestore]()
	known := jsonFields(kind)
	knownFields.Store(kind, "no map")
	defer knownFields.Store(kind, known)
	s := parseTexts(strings.Replace(restoreText("again", "source: {schedule: nightly}"), "{name: again, namespace: shop}", "\n  name: again\n  namespace: shop", 1), good)
	if names(s) != "shop/orders" || heldNames(s) != " /, EtcdRestore shop/again" || !strings.HasPrefix(lines(s.Problems), "a.yaml: internal error while reading this file (") {
		t.Errorf("clusters %q, held %q and:\n%s", names(s), heldNames(s), lines(s.Problems))
	}
}

func TestParse23ClusterDeclaredTwice(t *testing.T) {
	other := strings.Replace(good, "orders", "basket", 1)
	s := Parse([]File{
		{Path: "b.yaml", Data: []byte("# b\n---\n" + good + "---\n" + other)},
		{Path: "a.yaml", Data: []byte(good)},
	})
	want := "a.yaml:3:12: metadata.name: EtcdCluster shop/orders is declared again at b.yaml:2: keep one of them, until then none is reconciled\n" +
		"b.yaml:5:12: metadata.name: EtcdCluster shop/orders is declared again at a.yaml:1: keep one of them, until then none is reconciled\n"
	if got := lines(s.Problems); got != want {
		t.Errorf("got:\n%s", got)
	}
	if names(s) != "shop/basket" || heldNames(s) != "EtcdCluster shop/orders" || len(s.Held[0].Problems) != 2 {
		t.Errorf("clusters %q, held %q", names(s), heldNames(s))
	}
}

// The namespace may be left out in one of the two places.
func TestParse9DefaultNamespaceIsTheSameName(t *testing.T) {
	s := one(strings.Replace(good, "namespace: shop", "namespace: default", 1) + "---\n" + strings.Replace(good, ", namespace: shop", "", 1))
	if len(s.Clusters) != 0 || len(s.Held) != 1 {
		t.Fatalf("clusters %q, held %q", names(s), heldNames(s))
	}
}

// A bad declaration of an object also holds a good one elsewhere.
func TestParse23BadAndGoodDeclaration(t *testing.T) {
	s := Parse([]File{
		{Path: "good.yaml", Data: []byte(good)},
		{Path: "bad.yaml", Data: []byte(strings.Replace(good, "3.6.16", "latest", 1))},
	})
	if len(s.Clusters) != 0 || heldNames(s) != "EtcdCluster shop/orders" {
		t.Fatalf("clusters %q, held %q", names(s), heldNames(s))
	}
}

func TestParseWarnsAndTakes(t *testing.T) {
	s := one(strings.Replace(good, "replicas: 3", "replicas: 4", 1))
	if len(s.Clusters) != 1 || lines(s.Problems) != "a.yaml:6:3: warning: spec.replicas: 4 is even: it tolerates no more failed members than 3, and needs one more for each write\n" {
		t.Fatalf("clusters %q:\n%s", names(s), lines(s.Problems))
	}
}

func TestParse19DoesNotDependOnTheOrderOfFiles(t *testing.T) {
	var files []File
	for i := range 30 {
		text := strings.Replace(good, "orders", fmt.Sprintf("c%d", i%20), 1)
		if i%7 == 0 {
			text += "  x: 1\n  y: 2\n"
		}
		files = append(files, File{Path: fmt.Sprintf("%d.yaml", i), Data: []byte(text)})
	}
	want := Parse(files)
	for range 5 {
		rand.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		if got := Parse(files); !reflect.DeepEqual(got, want) {
			t.Fatalf("got:\n%s\nwant:\n%s", lines(got.Problems), lines(want.Problems))
		}
	}
}

// Whatever the commits before contained, a commit is read alone, and what an
// earlier one declared stays unchanged.
func TestParserSaysWhatParseSays(t *testing.T) {
	texts := []string{
		good, good + "---\n" + good, "\ufeff" + good, good + "  replica: 5\n", "{", "quorate.dev: {", "\xff\xfequorate.dev", "kind: Pod\n",
		"apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\n", clusterText("orders", "state: Deleted"),
		clusterText("events", "backup: {destination: {objectURLTemplate: \"s3://b/x/{{ .UID }}\"}}"), backupText("source: {clusterName: orders}"),
		scheduleText("nightly", "orders", "s3://b/x/{{ .UID }}"), scheduleText("hourly", "events", "s3://b/x/{{ .UID }}"),
		restoreText("orders", "source: {schedule: nightly}"),
		good + "# " + strings.Repeat("x", maxFileBytes), good + strings.Repeat("---\n"+good, maxDocuments-1),
	}
	rapid.Check(t, func(t *rapid.T) {
		parser := Parser{}
		var commits [][]File
		var sets []Set
		current := map[string]string{}
		for range rapid.IntRange(1, 6).Draw(t, "commits") {
			for path, text := range rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), rapid.SampledFrom(append(texts, "")), 0, 3).Draw(t, "changes") {
				if current[path] = text; text == "" {
					delete(current, path)
				}
			}
			var files []File
			for path, text := range current {
				files = append(files, File{Path: path + ".yaml", Data: []byte(text)})
			}
			commits, sets = append(commits, files), append(sets, parser.Parse(files))
		}
		for i, files := range commits {
			if want := Parse(files); !reflect.DeepEqual(sets[i], want) {
				t.Errorf("commit %d of %d, %d files:\n%s\nwant\n%s", i+1, len(commits), len(files), lines(sets[i].Problems), lines(want.Problems))
			}
		}
	})
}

func TestParserReadsOnlyWhatHasChanged(t *testing.T) {
	named := func(name string) []byte { return []byte(strings.Replace(good, "orders", name, 1)) }
	first := []File{{Path: "a.yaml", Data: named("same")}, {Path: "b.yaml", Data: named("other")}, {Path: "c.yaml", Data: named("moved")}, {Path: "d.yaml", Data: named("gone")}, {Path: "f.yaml", Data: named("back")}}
	second := []File{{Path: "a.yaml", Data: named("same")}, {Path: "b.yaml", Data: append(named("other"), "# more\n"...)}, {Path: "e.yaml", Data: named("moved")}}
	parser := Parser{}
	soaks := func(files []File) map[string]any {
		found := map[string]any{}
		for _, c := range parser.Parse(files).Clusters {
			found[c.Metadata.Name] = c.Spec.Upgrade.Soak // a separate one for each document that is read
		}
		return found
	}
	was, is, again := soaks(first), soaks(second), soaks(first)
	for name, kept := range map[string]bool{"same": true, "other": false, "moved": false} {
		if (is[name] == was[name]) != kept {
			t.Errorf("%s is kept: %t, want %t", name, !kept, kept)
		}
	}
	if again["same"] != was["same"] || again["back"] == was["back"] {
		t.Error("more than the files of the last commit is kept, or less")
	}
}

// What a file declared before is held where the file was not read, whosever it is.
func TestUnreadFileHoldsWhatItDeclared(t *testing.T) {
	users := File{Path: "b.yaml", Data: []byte(strings.Replace(good, "orders", "users", 1))}
	parser := Parser{}
	for range 2 {
		if s := parser.Parse([]File{{Path: "a.yaml", Data: []byte(good)}, users}); names(s) != "shop/orders shop/users" || len(s.Held) != 0 {
			t.Errorf("read: clusters %q, held %q", names(s), heldNames(s))
		}
		s := parser.Parse([]File{{Path: "a.yaml", Unread: "too large"}, users})
		if names(s) != "shop/users" || lines(s.Problems) != "a.yaml: too large\n" || len(s.Held) != 1 || len(s.Unreadable) != 0 {
			t.Fatalf("not read: clusters %q, held %q, problems\n%s", names(s), heldNames(s), lines(s.Problems))
		}
		if h := s.Held[0]; !h.Means(KindCluster, "shop", "orders", "a.yaml") || h.Means(KindCluster, "shop", "users", "b.yaml") {
			t.Errorf("it holds %+v", h)
		}
	}
}

// A file is refused for the files before it, so the same text may be taken in the
// next commit, and refused in the one after.
func TestParserKeepsNoRefusal(t *testing.T) {
	large := []byte(strings.Repeat("# quorate.dev\n", maxFileBytes/14))
	var files []File
	for i := range maxTotalBytes / maxFileBytes {
		files = append(files, File{Path: fmt.Sprintf("%d.yaml", i), Data: large})
	}
	files = append(files, File{Path: "z.yaml", Data: []byte(good + strings.Repeat("# more\n", 100))})
	parser := Parser{}
	for _, c := range []struct {
		files    []File
		clusters string
	}{{files, ""}, {files[1:], "shop/orders"}, {files, ""}} {
		if s := parser.Parse(c.files); names(s) != c.clusters {
			t.Errorf("%d files: clusters %q, want %q:\n%s", len(c.files), names(s), c.clusters, lines(s.Problems))
		}
	}
}

// What was parsed stays in memory for as long as its commit is in force.
func TestParseKeepsNoMoreThanItSays(t *testing.T) {
	const count = 500
	files := make([]File, count)
	for i := range files {
		files[i] = File{Path: fmt.Sprintf("%05d.yaml", i), Data: []byte(strings.Replace(good, "orders", fmt.Sprintf("c%d", i), 1))}
	}
	before := liveHeap()
	s := Parse(files)
	kept := (liveHeap() - before) / count
	runtime.KeepAlive(files)
	if len(s.Clusters) != count {
		t.Fatal(len(s.Clusters))
	}
	// It is 1.2 KiB, and its YAML nodes would be four times that.
	if most := int64(3 << 10); kept > most {
		t.Fatalf("a cluster keeps %d bytes, want at most %d", kept, most)
	}
}

// liveHeap is what is in use, in bytes.
func liveHeap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// BenchmarkParse10000Files parses clusters of the size of the quickstart's, and a
// schedule for every tenth.
func BenchmarkParse10000Files(b *testing.B) {
	files := make([]File, 10000)
	for i := range files {
		text := strings.Replace(good, "orders", fmt.Sprintf("c%d", i), 1)
		if i%10 == 9 {
			text = scheduleText(fmt.Sprintf("s%d", i), fmt.Sprintf("c%d", i-1), "s3://b/{{ .Name }}/{{ .UID }}")
		}
		files[i] = File{Path: fmt.Sprintf("%05d.yaml", i), Data: []byte(text)}
	}
	for b.Loop() {
		if s := Parse(files); len(s.Clusters)+len(s.Schedules) != len(files) {
			b.Fatalf("%d clusters, %d schedules", len(s.Clusters), len(s.Schedules))
		}
	}
}
