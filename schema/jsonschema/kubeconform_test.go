package jsonschema_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/needs"
)

// The examples and the corpus pass kubeconform as "quorate schema --help" tells
// people to run it.
func TestKubeconformTakesTheExamples(t *testing.T) {
	paths := yamlFiles(t, "testdata/good")
	for _, path := range yamlFiles(t, "../../examples") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(data, []byte(schema.Group+"/")) {
			t.Logf("%s is left out: it holds no document of quorate's", path)
			continue
		}
		paths = append(paths, path)
	}
	if output, err := kubeconform(t, paths...); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// And it finds what is wrong, field by field.
func TestKubeconformRefuses(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"13 unknown field", "replicas: 3", "replica: 3", "additional properties 'replica' not allowed"},
		{"14 key twice", "replicas: 3", "replicas: 3\n  replicas: 5", `key "replicas" already set in map`},
		{"4 version as a number", `"3.6.16"`, "3.6", "got number, want string"},
		{"13 unknown kind", "EtcdCluster", "EtcdClutser", "could not find schema for EtcdClutser"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bad.yaml")
			text := strings.Replace(small()[schema.KindCluster], c.from, c.to, 1)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			output, err := kubeconform(t, path)
			if err == nil || !strings.Contains(output, c.want) {
				t.Errorf("got %v and:\n%s\nwant %s", err, output, c.want)
			}
		})
	}
}

// kubeconform runs the tool, which has its own module. It finds the schemas by the names that collections of
// custom resources have.
func kubeconform(t *testing.T, paths ...string) (output string, err error) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tool, err := kubeconformPath()
	if err != nil {
		needs.Skip(t, "needs kubeconform, whose modules `make unit` downloads the first time: %.300q", err)
	}
	schemas := filepath.Join(here, "{{ .Group }}/{{ .ResourceKind }}_{{ .ResourceAPIVersion }}.json")
	args := []string{"-strict", "-schema-location", schemas}
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(here, path)
		}
		args = append(args, path)
	}
	data, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput()
	return string(data), err
}

// kubeconformPath is where Go has built it.
var kubeconformPath = sync.OnceValues(func() (string, error) {
	var problem bytes.Buffer
	cmd := exec.Command("go", "-C", "testdata/kubeconform", "tool", "-n", "kubeconform")
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, problem.String())
	}
	return strings.TrimSpace(string(out)), nil
})
