package editor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/schema/jsonschema"
	"github.com/quorate/quorate/test/needs"
)

// What an author sees is the one thing that is wrong, on its line.
func TestEditorUnderlines(t *testing.T) {
	const good = `apiVersion: quorate.dev/v1alpha1
kind: EtcdCluster
metadata: {name: orders}
spec:
  version: "3.6.16"
  replicas: 3
  storage: {size: 8Gi}
`
	const restore = `apiVersion: quorate.dev/v1alpha1
kind: EtcdRestore
metadata: {name: back}
spec:
  source: {clusterName: orders}
  clusterTemplate: {version: "3.6.16", replicas: 1, storage: {size: 8Gi}}
`
	cases := []struct{ name, text, at, want string }{
		{"good", good, "", ""},
		{"good restore", restore, "", ""},
		{"two good documents", good + "---\n" + restore, "", ""},
		{"13 unknown field", strings.Replace(good, "{size:", "{class: a, size:", 1), "class: a", "Property class is not allowed."},
		{"13 unknown kind", strings.Replace(good, "EtcdCluster", "EtcdClutser", 1), "kind:", `Value is not accepted. Valid values: "EtcdCluster", "EtcdBackup", "EtcdBackupSchedule", "EtcdRestore".`},
		{"4 version as a number", strings.Replace(good, `"3.6.16"`, "3.6", 1), "version:", `Incorrect type. Expected "string".`},
		{"4 version with v", strings.Replace(good, "3.6.16", "v3.6.16", 1), "version:", `Write an etcd release as MAJOR.MINOR.PATCH in quotes, such as "3.6.16".`},
		{"2 too many members", strings.Replace(good, "replicas: 3", "replicas: 9", 1), "replicas: 9", "Value is above the maximum of 7."},
		{"state", good + "  state: Stopped\n", "state:", `Value is not accepted. Valid values: "Running", "Hibernated", "Deleted".`},
		{"storage missing", strings.Replace(good, "  storage: {size: 8Gi}\n", "", 1), "spec:", `Missing property "storage".`},
		{"second document", good + "---\n" + strings.Replace(restore, "replicas: 1", "replicas: 0", 1), "replicas: 0", "Value is below the minimum of 1."},
		{"no source", strings.Replace(restore, "clusterName: orders", "", 1), "source:", "Write one of the fields that name the source."},
		{"two sources", strings.Replace(restore, "clusterName:", "schedule: often, clusterName:", 1), "source:", "Leave out clusterName here."},
	}
	folder := repository(t)
	server := start(t, languageServer(t), folder, map[string]any{
		"validate": true,
		// The setting of the help.
		"schemas": map[string]any{"./schemas/quorate.schema.json": []string{"clusters/**/*.yaml"}},
	})
	for _, c := range cases {
		t.Run("setting/"+c.name, func(t *testing.T) {
			path := filepath.Join(folder, "clusters", strings.ReplaceAll(c.name, " ", "-")+".yaml")
			judge(t, server.diagnose(t, fileURI(path), c.text), c.text, c.at, c.want)
		})
		t.Run("comment/"+c.name, func(t *testing.T) {
			const comment = "# yaml-language-server: $schema=../schemas/quorate.schema.json\n"
			text := comment + strings.Replace(c.text, "---\n", "---\n"+comment, 1)
			path := filepath.Join(folder, "elsewhere", strings.ReplaceAll(c.name, " ", "-")+".yaml")
			judge(t, server.diagnose(t, fileURI(path), text), text, c.at, c.want)
		})
	}
}

// judge wants one diagnostic, on the line that holds at, or none.
func judge(t *testing.T, got []diagnostic, text, at, want string) {
	t.Helper()
	switch {
	case want == "" && len(got) == 0:
		return
	case want == "" || len(got) != 1 || got[0].Message != want:
		t.Fatalf("got %v, want %q", got, want)
	}
	if line := strings.Split(text, "\n")[got[0].Range.Start.Line]; !strings.Contains(line, at) {
		t.Errorf("underlined is %q, want the line with %q", line, at)
	}
}

// repository is a directory with the schemas, as quorate schema --dir writes them.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	data, err := jsonschema.Read(jsonschema.AllKinds)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string][]byte{"schemas/" + jsonschema.AllKinds: data, "clusters/.keep": nil} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// languageServer installs the pinned version and returns its program.
func languageServer(t *testing.T) string {
	t.Helper()
	needs.Long(t)
	npm := needs.Program(t, "npm")
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		needs.Skip(t, "needs yaml-language-server: npm ci: %v: %.300q", err, output)
	}
	return filepath.Join(dir, "node_modules", "yaml-language-server", "bin", "yaml-language-server")
}
