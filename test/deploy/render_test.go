package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// render returns what an overlay on top of a directory of deploy/ applies.
func render(t *testing.T, base, overlay string) []*resource.Resource {
	t.Helper()
	// kustomize takes a base by a relative path only, links followed.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at, err := filepath.Abs(filepath.Join("..", "..", "deploy", base))
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	if err == nil {
		at, err = filepath.Rel(dir, at)
	}
	if err != nil {
		t.Fatal(err)
	}
	text := "resources: [" + at + "]\n" + overlay
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("build %s with\n%s\n%v", base, overlay, err)
	}
	return objects.Resources()
}

// subject is whom a binding gives its role.
type subject struct{ Kind, Name, Namespace string }

// subjectsOf returns the subjects of a binding, nil of any other object.
func subjectsOf(t *testing.T, o *resource.Resource) (all []subject) {
	t.Helper()
	if !strings.HasSuffix(o.GetKind(), "RoleBinding") {
		return nil
	}
	list, err := o.GetSlice("subjects")
	if err != nil {
		t.Fatalf("%s: %v", o.CurId(), err)
	}
	for _, one := range list {
		fields, _ := one.(map[string]any)
		text := func(key string) string { s, _ := fields[key].(string); return s }
		all = append(all, subject{text("kind"), text("name"), text("namespace")})
	}
	return all
}

// Each binding gives its role to quorate's own account, wherever an overlay puts quorate and
// whatever it calls it: a binding of another namespace's account leaves quorate without rights,
// and gives them to whoever makes that account.
func TestEveryBindingFollowsTheNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		base, overlay string
		bindings      int
	}{
		"the base":                   {"base", "", 3},
		"another namespace":          {"base", "namespace: etcd-operations\n", 3},
		"another name":               {"base", "namespace: etcd-operations\nnamePrefix: blue-\n", 3},
		"the sandbox":                {"overlays/sandbox", "", 3},
		"the sandbox elsewhere":      {"overlays/sandbox", "namespace: etcd-operations\n", 3},
		"some namespaces":            {"overlays/namespaces", "", 3},
		"some namespaces and a name": {"overlays/namespaces", "namePrefix: blue-\n", 3},
	} {
		t.Run(name, func(t *testing.T) {
			objects, account, bindings := render(t, c.base, c.overlay), subject{}, 0
			for _, o := range objects {
				if o.GetKind() == "ServiceAccount" {
					account = subject{"ServiceAccount", o.GetName(), o.GetNamespace()}
				}
			}
			for _, o := range objects {
				for _, s := range subjectsOf(t, o) {
					bindings++
					if s != account {
						t.Errorf("%s %s is for %+v, and quorate is %+v", o.GetKind(), o.GetName(), s, account)
					}
				}
			}
			if account.Namespace == "" || bindings != c.bindings {
				t.Errorf("quorate is %+v, with %d bindings", account, bindings)
			}
		})
	}
}

// The namespace that is made is the one that quorate is put into.
func TestTheNamespaceIsMade(t *testing.T) {
	for overlay, want := range map[string]string{"": "quorate-system", "namespace: etcd-operations\n": "etcd-operations"} {
		var made, used string
		for _, o := range render(t, "base", overlay) {
			switch o.GetKind() {
			case "Namespace":
				made = o.GetName()
			case "Deployment":
				used = o.GetNamespace()
			}
		}
		if made != want || used != want {
			t.Errorf("with %q the namespace %q is made, and quorate runs in %q", overlay, made, used)
		}
	}
}

// Each variable that the daemon's flags name is in its settings, also where an overlay adds some:
// Kubernetes would leave $(REPO) as it stands.
func TestEveryVariableOfTheDaemonIsSet(t *testing.T) {
	for _, base := range []string{"base", "overlays/sandbox", "overlays/namespaces"} {
		var settings map[string]string
		var args []any
		for _, o := range render(t, base, "configMapGenerator: [{name: quorate-settings, behavior: merge, literals: [REPO=https://git.example.com/etcd.git]}]\n") {
			switch o.GetKind() {
			case "ConfigMap":
				settings = o.GetDataMap()
			case "Deployment":
				containers, err := o.GetSlice("spec.template.spec.containers")
				if err != nil {
					t.Fatal(err)
				}
				container, _ := containers[0].(map[string]any)
				args, _ = container["args"].([]any)
				if container["terminationMessagePolicy"] != "FallbackToLogsOnError" {
					t.Errorf("%s: why the daemon ended is not in its pod", base)
				}
			}
		}
		variables := 0
		for _, arg := range args {
			text, _ := arg.(string)
			if _, after, found := strings.Cut(text, "$("); found {
				variables++
				if name := strings.TrimSuffix(after, ")"); !hasKey(settings, name) {
					t.Errorf("%s: %s, and the settings are %v", base, text, settings)
				}
			}
		}
		if variables != 5 || settings["REPO"] == "" {
			t.Errorf("%s: %d variables in %v, %v", base, variables, args, settings)
		}
	}
}

func hasKey(m map[string]string, key string) bool {
	_, found := m[key]
	return found
}
