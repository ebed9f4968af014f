package jsonschema_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/jsonschema"
	"github.com/quorate/quorate/schema/jsonschema/internal/generate"
)

// What the corpus and the examples say is fine for the parser, with a policy that allows it, and
// the schemas.
func TestGoodDocumentsAreGoodForBoth(t *testing.T) {
	judge := compile(t)
	text, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := schema.ParsePolicy("policy.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	parser := schema.Parser{Bounds: schema.Bounds{Policy: policy}}
	sets := map[string][]schema.File{"corpus": good(t)}
	for _, dir := range exampleDirs(t) {
		sets[strings.TrimPrefix(dir, "../../examples/")] = readAll(t, yamlFiles(t, dir))
	}
	for name, files := range sets {
		t.Run(name, func(t *testing.T) {
			for _, problem := range parser.Parse(files).Problems {
				if !problem.Warning {
					t.Errorf("the parser refuses: %v", problem)
				}
			}
			for _, f := range files {
				for _, document := range ourDocuments(t, f.Data) {
					if err := judge(document); err != nil {
						t.Errorf("the schema refuses %s: %v", f.Path, err)
					}
				}
			}
		})
	}
}

// A field that no good document uses could be spelt or typed in any way.
func TestCorpusUsesEveryField(t *testing.T) {
	m := model(t)
	used := map[string]bool{}
	for _, f := range good(t) {
		for _, document := range ourDocuments(t, f.Data) {
			for _, kind := range m.Kinds {
				if kind.Name == document["kind"] {
					use(kind, document, used)
				}
			}
		}
	}
	for _, typ := range m.Types {
		for _, field := range typ.Fields {
			if name := typ.Name + "." + field.Name; !used[name] {
				t.Errorf("no document in testdata/good uses %s", name)
			}
		}
	}
}

// use notes the fields of a mapping.
func use(typ *generate.Type, values map[string]any, used map[string]bool) {
	for _, field := range typ.Fields {
		if value, ok := values[field.Name]; ok {
			used[typ.Name+"."+field.Name] = true
			useValue(field.Value, value, used)
		}
	}
}

func useValue(v generate.Value, value any, used map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		if v.Shape == generate.Object {
			use(v.Type, value, used)
		}
	case []any:
		for _, item := range value {
			useValue(*v.Item, item, used)
		}
	}
}

// Slips that a schema can express are refused by the parser and by the schema.
// Each is one change of a small good document.
func TestBadDocumentsAreBadForBoth(t *testing.T) {
	judge := compile(t)
	for _, c := range badDocuments() {
		t.Run(c.kind+"/"+c.name, func(t *testing.T) {
			base := small()[c.kind]
			text := strings.Replace(base, c.from, c.to, 1)
			if c.from == "" {
				text = base + c.to
			}
			if text == base {
				t.Fatalf("%q is not in the document", c.from)
			}
			var before, document map[string]any
			if err := yaml.Unmarshal([]byte(base), &before); err != nil || judge(before) != nil || len(errors(base)) > 0 {
				t.Fatalf("the document is bad without the slip: %v, %v, %v", err, judge(before), errors(base))
			}
			if err := yaml.Unmarshal([]byte(text), &document); err != nil {
				t.Fatal(err)
			}
			if len(errors(text)) == 0 {
				t.Errorf("the parser takes:\n%s", text)
			}
			if judge(document) == nil {
				t.Errorf("the schema takes:\n%s", text)
			}
		})
	}
}

// A field without a value is left out for the parser. Whoever writes one in an
// editor has not finished, so the schemas ask for the rest.
func TestEmptyValuesAreUnfinished(t *testing.T) {
	judge := compile(t)
	for _, slip := range []string{"  tls:\n", "  image: {repository: \"\"}\n"} {
		text := small()[schema.KindCluster] + slip
		var document map[string]any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		if problems := errors(text); len(problems) > 0 || judge(document) == nil {
			t.Errorf("%s: the parser says %v, the schema %v", slip, problems, judge(document))
		}
	}
}

// errors are those of one document.
func errors(text string) []schema.Problem {
	set := schema.Parse([]schema.File{{Path: "a.yaml", Data: []byte(text)}})
	return slices.DeleteFunc(set.Problems, func(p schema.Problem) bool { return p.Warning })
}

// compile gives a function that judges a document by the schema of its kind and
// by that of all kinds, which must agree.
func compile(t *testing.T) func(document map[string]any) error {
	t.Helper()
	compiler := validator.NewCompiler()
	schemas := map[string]*validator.Schema{}
	for _, path := range jsonschema.Paths() {
		data, err := jsonschema.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		value, err := validator.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource(path, value); err != nil {
			t.Fatal(err)
		}
		if schemas[path], err = compiler.Compile(path); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return func(document map[string]any) error {
		t.Helper()
		whole := schemas[jsonschema.AllKinds].Validate(document)
		kind, _ := document["kind"].(string)
		one, ok := schemas[jsonschema.Path(kind)]
		if !ok {
			return whole
		}
		if err := one.Validate(document); (err == nil) != (whole == nil) {
			t.Errorf("the schema of one kind says %v, that of all kinds %v", err, whole)
		}
		return whole
	}
}

// ourDocuments are the documents of quorate's group.
func ourDocuments(t *testing.T, data []byte) []map[string]any {
	t.Helper()
	all, err := generate.Documents(data)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(d map[string]any) bool { return d["apiVersion"] != schema.APIVersion })
}

// exampleDirs are the examples that hold documents of quorate's.
func exampleDirs(t *testing.T) []string {
	t.Helper()
	dirs := map[string]bool{}
	for _, path := range yamlFiles(t, "../../examples") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(schema.APIVersion)) {
			dirs[exampleDir(path)] = true
		}
	}
	if len(dirs) == 0 {
		t.Fatal("no examples found")
	}
	return slices.Sorted(maps.Keys(dirs))
}

// exampleDir is the directory whose files belong together. In the fleet each
// environment is one, with clusters of the same names, and after a disaster one takes
// the place of the other.
func exampleDir(path string) string {
	parts := strings.Split(filepath.ToSlash(path), "/")
	if parts[3] == "fleet" || parts[3] == "disaster-recovery" {
		return strings.Join(parts[:5], "/")
	}
	return strings.Join(parts[:4], "/")
}

// yamlFiles are the YAML files below a directory.
func yamlFiles(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err == nil && !entry.IsDir() && (ext == ".yaml" || ext == ".yml") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
