package main

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

const deployed = "../../deploy/"

// The daemon of deploy/base as it stands, without a repository, says in one line what to set and
// where.
func TestTheBaseWithoutARepositorySaysWhatToSet(t *testing.T) {
	var k struct {
		ConfigMapGenerator []struct {
			Literals []string `json:"literals"`
		} `json:"configMapGenerator"`
	}
	readYAML(t, filepath.Join(deployed, "base", "kustomization.yaml"), func(text []byte) error { return yaml.Unmarshal(text, &k) })
	var settings []string
	for _, literal := range k.ConfigMapGenerator[0].Literals {
		name, value, _ := strings.Cut(literal, "=")
		settings = append(settings, "$("+name+")", value)
	}
	var d appsv1.Deployment
	readYAML(t, filepath.Join(deployed, "base", "deployment.yaml"), func(text []byte) error { return yaml.UnmarshalStrict(text, &d) })
	args := d.Spec.Template.Spec.Containers[0].Args
	for i := range args {
		args[i] = strings.NewReplacer(settings...).Replace(args[i])
	}
	var out, problems bytes.Buffer
	status := execute(t.Context(), args, &out, &problems)
	if text := problems.String(); status != 1 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "REPO of the ConfigMap quorate-settings") {
		t.Errorf("%q: status %d, %s", args, status, text)
	}
}

// What the quickstart runs from a machine has the namespace that its lease is in.
func TestTheQuickstartMakesTheNamespaceOfTheLease(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	page, err := os.ReadFile("../../examples/quickstart/README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(page), "bin/quorate run")
	namespace := newRun().Flags().Lookup("lease-namespace").DefValue
	if !found || !strings.Contains(before, "\n    kubectl create namespace "+namespace+"\n") {
		t.Errorf("it does not make %s before it runs quorate", namespace)
	}
}

// Whatever people copy names the image that runs: neither latest nor no tag at all, which is the same.
func TestNoPageOrManifestRunsLatest(t *testing.T) {
	latest := regexp.MustCompile(`:\s*"?latest\b`)
	image := regexp.MustCompile(`(?m)^[\s-]*image:[ \t]*"?([^\s"{]+)`)
	files, images := []string{"../../README.md"}, 0
	for _, dir := range []string{"deploy", "examples", "docs"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && slices.Contains([]string{".yaml", ".yml", ".md", ".json", ".go", ""}, filepath.Ext(path)) && !d.IsDir() && !strings.HasSuffix(path, "_test.go") {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := latest.Find(text); found != nil {
			t.Errorf("%s: %s", file, found)
		}
		for _, one := range image.FindAllStringSubmatch(string(text), -1) {
			images++
			if name := one[1][strings.LastIndex(one[1], "/")+1:]; !strings.ContainsAny(name, ":@") {
				t.Errorf("%s: the image %s has no tag", file, one[1])
			}
		}
	}
	if images == 0 {
		t.Error("no image was found")
	}
}

// Whatever a page links to, or names as a file of this repository, is there: a reader tries it.
func TestEveryPathThatAPageShowsExists(t *testing.T) {
	root := filepath.Join("..", "..")
	link := regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)\s]*)?\)`)
	// Paths from the top of the checkout, in commands, code and sentences.
	path := regexp.MustCompile(`(?:^|[\s` + "`" + `'"(=])((?:\./)?(?:cmd|deploy|docs|examples|reconciler|schema|sources|test)/[\w./*-]*\w)`)
	shown := 0
	err := filepath.WalkDir(root, func(page string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "testdata") {
			return cmp.Or(err, fs.SkipDir)
		}
		if filepath.Ext(page) != ".md" || d.Name() == "CHANGELOG.md" || d.IsDir() {
			return nil
		}
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		for _, found := range link.FindAllSubmatch(text, -1) {
			if shown++; !exists(filepath.Join(filepath.Dir(page), string(found[1]))) {
				t.Errorf("%s links to %s", page, found[1])
			}
		}
		for _, found := range path.FindAllSubmatch(text, -1) {
			// deploy/quorate is how kubectl names the Deployment.
			if shown++; string(found[1]) != "deploy/quorate" && !exists(filepath.Join(root, string(found[1]))) {
				t.Errorf("%s names %s", page, found[1])
			}
		}
		return nil
	})
	if err != nil || shown < 300 {
		t.Errorf("%d paths were found, %v", shown, err)
	}
}

// exists reports whether a file is there, or one that a pattern matches.
func exists(path string) bool {
	found, err := filepath.Glob(path)
	return err == nil && len(found) > 0
}
