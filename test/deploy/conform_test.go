package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	// The oldest Kubernetes that is supported, and that of the sandbox. Their modules have the
	// schemas of all kinds.
	oldest, newest = "k8s.io/kubernetes@v1.30.14", "k8s.io/kubernetes@v1.36.3"
	// The kinds of deploy/monitoring.
	prometheusOperator = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
)

// module is where a module is, which is downloaded if it was not yet.
func module(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", name)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	var m struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		t.Fatalf("download %s: %v\n%s", name, err, out)
	}
	return m.Dir
}

// install is the path of a program, built from its module: as a tool of this one it would have other
// versions of what all modules here share, which would then be compiled twice.
func install(t *testing.T, program string) string {
	t.Helper()
	bin := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "install", program)
	cmd.Dir, cmd.Env = bin, append(os.Environ(), "GOBIN="+bin, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("install %s: %v\n%s", program, err, out)
	}
	name, _, _ := strings.Cut(filepath.Base(program), "@")
	return filepath.Join(bin, name)
}

// strict lets a schema know no field but its properties.
func strict(v any) {
	switch v := v.(type) {
	case object:
		if _, fixed := v["properties"].(object); fixed && v["additionalProperties"] == nil && v["x-kubernetes-preserve-unknown-fields"] != true {
			v["additionalProperties"] = false
		}
		if v["format"] == "int-or-string" || v["x-kubernetes-int-or-string"] == true {
			delete(v, "type")
			v["oneOf"] = []any{object{"type": "string"}, object{"type": "integer"}}
		}
		delete(v, "format") // date-time and others are for the API server
		for _, each := range v {
			strict(each)
		}
	case []any:
		for _, each := range v {
			strict(each)
		}
	}
}

// needs adds a definition and those that it refers to.
func needs(name string, from, to object) {
	if to[name] != nil {
		return
	}
	to[name] = from[name]
	var refer func(v any)
	refer = func(v any) {
		switch v := v.(type) {
		case object:
			if ref, is := v["$ref"].(string); is {
				needs(strings.TrimPrefix(ref, "#/definitions/"), from, to)
			}
			for _, each := range v {
				refer(each)
			}
		case []any:
			for _, each := range v {
				refer(each)
			}
		}
	}
	refer(from[name])
}

// schemaFile is what kubeconform calls the schema of a kind.
func schemaFile(kind, group, version string) string {
	if group, _, _ = strings.Cut(group, "."); group != "" {
		group += "-"
	}
	return strings.ToLower(kind) + "-" + group + version + ".json"
}

// schemas writes the schemas of some kinds, as a release of Kubernetes has them.
func schemas(t *testing.T, kubernetes string, kinds map[string]bool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write := func(name string, schema object) {
		text, err := json.Marshal(schema)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(module(t, kubernetes), "api", "openapi-spec", "swagger.json"))
	var swagger struct{ Definitions object }
	if err == nil {
		err = json.Unmarshal(text, &swagger)
	}
	if err != nil {
		t.Fatal(err)
	}
	strict(swagger.Definitions)
	for name, definition := range swagger.Definitions {
		of, _ := at(definition, "x-kubernetes-group-version-kind").([]any)
		for _, each := range of {
			kind, _ := at(each, "kind").(string)
			group, _ := at(each, "group").(string)
			version, _ := at(each, "version").(string)
			if kinds[kind] {
				all := object{}
				needs(name, swagger.Definitions, all)
				write(schemaFile(kind, group, version), object{"$ref": "#/definitions/" + name, "definitions": all})
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(module(t, prometheusOperator), "example", "prometheus-operator-crd", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		var crd object
		if err == nil {
			err = yaml.Unmarshal(text, &crd)
		}
		if err != nil {
			t.Fatal(err)
		}
		kind, _ := at(crd, "spec", "names", "kind").(string)
		if schema, _ := at(crd, "spec", "versions", 0, "schema", "openAPIV3Schema").(object); kinds[kind] {
			strict(schema["properties"].(object)["spec"])
			write(schemaFile(kind, "monitoring.coreos.com", "v1"), schema)
		}
	}
	return dir
}

// The objects of the chart, with any values, and of each kustomization are what the oldest and the
// newest Kubernetes take, without a field that they do not know.
func TestEverythingConformsToTheSchemas(t *testing.T) {
	const all = "monitoring: {serviceMonitor: true, podMonitor: true, prometheusRule: true, dashboards: true}\n" +
		"metrics: {tlsSecret: tls}\nnetworkPolicy: {create: true, clusterNamespaces: [shop]}\nadmission: {create: true}\n"
	objectsOf := map[string][]object{
		"chart": template(t, "etcd", repo), "chart with all": template(t, "etcd", repo+all),
		"chart confined": template(t, "etcd", repo+"rbac: {clusterWide: false, namespaces: [shop], clusterScoped: true}\n"),
	}
	for _, dir := range []string{"base", "monitoring", "network/daemon", "network/clusters", "admission", "policy", "overlays/production", "overlays/namespaces", "overlays/sandbox"} {
		objectsOf[dir] = objects(t, render(t, "", dir))
	}
	kinds := map[string]bool{}
	for _, list := range objectsOf {
		for _, o := range list {
			kind, _ := o["kind"].(string)
			kinds[kind] = true
		}
	}
	if len(kinds) < 16 {
		t.Errorf("only %v are rendered", slices.Sorted(maps.Keys(kinds)))
	}
	kubeconform := install(t, "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0")
	conform := func(schemas, file string) (string, error) {
		said, err := exec.CommandContext(t.Context(), kubeconform, "-strict", "-schema-location="+schemas+"/{{ .ResourceKind }}{{ .KindSuffix }}.json", file).CombinedOutput()
		return string(said), err
	}
	dirs := map[string]string{oldest: schemas(t, oldest, kinds), newest: schemas(t, newest, kinds)}
	file := filepath.Join(t.TempDir(), "objects.yaml")
	for kubernetes, dir := range dirs {
		for name, list := range objectsOf {
			write(t, file, list)
			if said, err := conform(dir, file); err != nil {
				t.Errorf("%s, %s: %v\n%s", name, kubernetes, err, said)
			}
		}
	}
	// A field that is misspelt is found in each kind.
	for kind, o := range oneOfEach(objectsOf["chart with all"]) {
		misspell(o)
		write(t, file, []object{o})
		for kubernetes, dir := range dirs {
			if said, err := conform(dir, file); err == nil || !strings.Contains(said, "kindd") {
				t.Errorf("%s, %s: a field that does not exist is taken: %v %s", kind, kubernetes, err, said)
			}
		}
	}
}

func oneOfEach(list []object) map[string]object {
	of := map[string]object{}
	for _, o := range list {
		of[fmt.Sprint(o["kind"])] = o
	}
	return of
}

// misspell adds a field that no kind has.
func misspell(o object) {
	if spec, is := o["spec"].(object); is {
		o = spec
	}
	o["kindd"] = "x"
}

func write(t *testing.T, file string, list []object) {
	t.Helper()
	var text strings.Builder
	for _, o := range list {
		one, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(one))
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The sandbox can be of both releases, whole: no part of Kubernetes is of another patch. The chart asks
// for the oldest.
func TestOldestAndNewestAreThoseOfTheSandbox(t *testing.T) {
	const modules = "../sandbox/kubernetes"
	for _, name := range []string{oldest, newest} {
		kubernetes, version, _ := strings.Cut(name, "@")
		text, err := os.ReadFile(filepath.Join(modules, version, "go.mod"))
		if err != nil || !strings.Contains(string(text), kubernetes+" "+version+"\n") {
			t.Errorf("%s: %v", name, err)
		}
		for line := range strings.Lines(string(text)) {
			if part := strings.Replace(version, "v1.", "v0.", 1); strings.Contains(line, " => k8s.io/") && !strings.HasSuffix(line, " "+part+"\n") {
				t.Errorf("%s: want %s in %s", name, part, line)
			}
		}
	}
	if dirs, err := os.ReadDir(modules); err != nil || len(dirs) != 2 {
		t.Errorf("the sandbox has %v, %v", dirs, err)
	}
	chart, err := os.ReadFile("../../deploy/helm/quorate/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(oldest, "@v")
	if want := fmt.Sprintf(`kubeVersion: ">=%s.0-0"`, version[:strings.LastIndex(version, ".")]); !strings.Contains(string(chart), want) {
		t.Errorf("the chart has no %s", want)
	}
}
