package jsonschema_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/jsonschema"
	"github.com/quorate/quorate/schema/jsonschema/internal/generate"
)

var update = flag.Bool("update", false, "rewrite the schemas and schema/REFERENCE.md")

// What the types say and what is in the repository are the same.
func TestGeneratedFilesAreFresh(t *testing.T) {
	for path, want := range generated(t) {
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go test ./schema/jsonschema -update, and read the difference", path, err)
		}
	}
}

// Each kind has a schema, and each schema is in the program.
func TestReadKnowsItsPathsOnly(t *testing.T) {
	for _, path := range jsonschema.Paths() {
		data, err := jsonschema.Read(path)
		onDisk, diskErr := os.ReadFile(path)
		if err != nil || diskErr != nil || !bytes.Equal(data, onDisk) {
			t.Errorf("%s: %v, %v", path, err, diskErr)
		}
	}
	if _, err := jsonschema.Read("../secret"); err == nil {
		t.Error("a path that is none was read")
	}
}

// generated are the texts that the model makes, by path.
func generated(t *testing.T) map[string][]byte {
	t.Helper()
	corpus := good(t)
	schemas, err := model(t).Schemas()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{jsonschema.AllKinds: schemas[""]}
	examples := map[string]string{}
	for _, kind := range jsonschema.Kinds() {
		files[jsonschema.Path(kind)] = schemas[kind]
		name := filepath.Base(jsonschema.Path(kind))
		examples[kind] = example(t, corpus, name[:len(name)-len("_v1alpha1.json")])
	}
	files["../../docs/problems.md"] = []byte(generate.Problems())
	files["../REFERENCE.md"] = []byte(model(t).Reference(examples))
	return files
}

// model is the file format.
func model(t *testing.T) *generate.Model {
	t.Helper()
	m, err := generate.New("..", good(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// example is the file of the corpus that the reference shows, without its first
// comment.
func example(t *testing.T, corpus []schema.File, name string) string {
	t.Helper()
	i := slices.IndexFunc(corpus, func(f schema.File) bool { return filepath.Base(f.Path) == name+".yaml" })
	if i < 0 {
		t.Fatalf("the corpus has no %s.yaml", name)
	}
	_, text, _ := bytes.Cut(corpus[i].Data, []byte("\n"))
	return string(text)
}

// good is the corpus of good documents.
func good(t *testing.T) []schema.File {
	t.Helper()
	paths, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	return readAll(t, paths)
}

func readAll(t *testing.T, paths []string) []schema.File {
	t.Helper()
	var files []schema.File
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, schema.File{Path: path, Data: data})
	}
	return files
}
