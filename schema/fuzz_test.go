package schema

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// FuzzParse16 asserts what holds for any two files: nothing panics, every problem
// says where and what, neither the order of the files nor what was parsed before
// matters, what is taken is valid and reads the same when it is written out again.
func FuzzParse16(f *testing.F) {
	seeds := []string{
		good, good + "---\n" + good, "\ufeff" + good, strings.ReplaceAll(good, "\n", "\r\n"), "a: &a [*a]\n", "{", "---", "...\n---\n",
		good + "  podTemplate: &p {metadata: {<<: *p}}\n", "apiVersion: quorate.dev/v1\nkind: List\nitems: [", "? [a]\n: b\nkind: quorate.dev\n",
		good + "  <<: [{replicas: 1}, 5]\n  etcd: {options: {\"\": x}}\n",
		backupText("source: {clusterName: orders}"), scheduleText("nightly", "orders", "s3://b/{{ .Name }}/{{ .UID }}", "retention: {keepLast: 3}"),
		restoreText("again", "source: {schedule: nightly, before: 2026-11-20T08:00:00Z}"), "--- quorate.dev: x\n  y:z\n\tq\n",
	}
	for _, seed := range append(seeds, exampleTexts(f)...) {
		f.Add([]byte(seed), []byte(clusterText("orders")))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		files := []File{{Path: "a.yaml", Data: a}, {Path: "b.yaml", Data: b}}
		s := Parse(files)
		if again := Parse([]File{files[1], files[0]}); !reflect.DeepEqual(s, again) {
			t.Errorf("the order of the files matters:\n%s\n%s", lines(s.Problems), lines(again.Problems))
		}
		parser := Parser{}
		for _, earlier := range [][]File{{{Path: "a.yaml", Data: b}, files[1]}, {files[0], {Path: "c.yaml", Data: b}}, files} {
			parser.Parse(earlier)
		}
		if again := parser.Parse(files); !reflect.DeepEqual(s, again) {
			t.Errorf("what was parsed before matters:\n%s\n%s", lines(s.Problems), lines(again.Problems))
		}
		for _, p := range append(s.Problems, s.Unreadable...) {
			if p.File == "" || p.Message == "" || p.Line < 0 || p.Column < 0 || p.Column > 0 && p.Line == 0 {
				t.Errorf("a problem without a place or words: %+v", p)
			}
		}
		for _, h := range s.Held {
			if len(h.Problems) == 0 {
				t.Errorf("%s/%s is held without a reason", h.Namespace, h.Name)
			}
		}
		for _, o := range goodObjects(s) {
			checkGood(t, o)
		}
	})
}

// goodObjects are the objects of a set, of all kinds.
func goodObjects(s Set) []object {
	var all []object
	for i := range s.Clusters {
		all = append(all, s.Clusters[i].EtcdCluster)
	}
	for i := range s.Backups {
		all = append(all, &s.Backups[i].EtcdBackup)
	}
	for i := range s.Schedules {
		all = append(all, &s.Schedules[i].EtcdBackupSchedule)
	}
	for i := range s.Restores {
		all = append(all, &s.Restores[i].EtcdRestore)
	}
	return all
}

// checkGood validates an object again, and writes and reads it.
func checkGood(t *testing.T, o object) {
	t.Helper()
	for _, p := range o.validate() {
		if !p.Warning {
			t.Errorf("an object is taken that is not valid: %s", p)
		}
	}
	text, err := yaml.Marshal(o)
	if err != nil {
		t.Fatalf("write %s: %v", o.meta().Name, err)
	}
	p := new(Parser).read([]File{{Path: "again.yaml", Data: text}})[0]
	if len(p.declared) != 1 || p.declared[0].object == nil || hashOf(p.declared[0].object) != hashOf(o) {
		t.Errorf("written and read again, it is another object:\n%s\n%s", text, lines(p.problems))
	}
}

// exampleTexts are the files of the examples.
func exampleTexts(f *testing.F) []string {
	f.Helper()
	var texts []string
	for _, pattern := range []string{"../examples/*/*/*.yaml", "../examples/*/*/*/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			texts = append(texts, string(data))
		}
	}
	if len(texts) == 0 {
		f.Fatal("there are no examples")
	}
	return texts
}
