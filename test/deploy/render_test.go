package deploy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// deployed is the directory of deploy/, links followed, as kustomize takes it.
func deployed() (string, error) {
	path, err := filepath.Abs(filepath.Join("..", "..", "deploy"))
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// withRepo are the settings of an overlay that must be set.
const withRepo = "configMapGenerator: [{name: quorate-settings, behavior: merge, literals: [REPO=https://git.example.com/etcd.git, BACKUP_URL=s3://backups/x]}]\n"

// dir stands for a directory of deploy/ in an overlay, which must name it by a relative path.
func dir(name string) string { return "DEPLOY/" + name }

// components adds components of deploy/ to an overlay.
func components(names ...string) string {
	for i, name := range names {
		names[i] = dir(name)
	}
	return "components: [" + strings.Join(names, ", ") + "]\n"
}

// build returns what an overlay applies, which may have further files.
func build(t *testing.T, overlay string, files map[string]string) ([]*resource.Resource, error) {
	t.Helper()
	at, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, err := deployed()
	if err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(files)
	if all == nil {
		all = map[string]string{}
	}
	all["kustomization.yaml"] = overlay
	for name, text := range all {
		name = filepath.Join(at, name)
		relative, err := filepath.Rel(filepath.Dir(name), root)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(name), 0o700)
		}
		if err == nil {
			err = os.WriteFile(name, []byte(strings.ReplaceAll(text, "DEPLOY", relative)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), at)
	if err != nil {
		return nil, fmt.Errorf("build\n%s\n%w", overlay, err)
	}
	return objects.Resources(), nil
}

// render returns what an overlay on top of directories of deploy/ applies.
func render(t *testing.T, overlay string, on ...string) []*resource.Resource {
	t.Helper()
	on = slices.Clone(on)
	for i, name := range on {
		on[i] = dir(name)
	}
	resources, err := build(t, "resources: ["+strings.Join(on, ", ")+"]\n"+overlay, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resources
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
		"shards":                     {"overlays/shards", "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			bindingsAreQuorates(t, render(t, c.overlay, c.base), c.bindings)
		})
	}
}

// bindingsAreQuorates wants so many bindings, each for the account that is made.
func bindingsAreQuorates(t *testing.T, objects []*resource.Resource, want int) {
	t.Helper()
	account, bindings := subject{}, 0
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
	if account.Namespace == "" || bindings != want {
		t.Errorf("quorate is %+v, with %d bindings", account, bindings)
	}
}

// In a copy of deploy/overlays/namespaces quorate has another namespace, and the RoleBindings stay in
// those that they are for.
func TestTheOverlayOfNamespacesCanBeElsewhere(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"kustomization.yaml", "rolebindings.yaml", "quorate/kustomization.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "overlays", "namespaces", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = strings.NewReplacer("../../../base", dir("base"), "\nnamespace: quorate-system", "\nnamespace: etcd").Replace(string(text))
	}
	objects, err := build(t, files["kustomization.yaml"], files)
	if err != nil {
		t.Fatal(err)
	}
	bindingsAreQuorates(t, objects, 3)
	expectNowhere(t, objects, "quorate-system")
	in := map[string]bool{}
	for _, o := range objects {
		in[o.GetKind()+" "+o.GetNamespace()] = true
	}
	if !in["RoleBinding team-a"] || !in["RoleBinding team-b"] || !in["Deployment etcd"] {
		t.Errorf("there are %v", in)
	}
}

// expectNowhere wants a text to be in no object.
func expectNowhere(t *testing.T, objects []*resource.Resource, text string) {
	t.Helper()
	for _, o := range objects {
		if yaml := o.MustYaml(); strings.Contains(yaml, text) {
			t.Errorf("%s has %s:\n%s", o.CurId(), text, yaml)
		}
	}
}

// shown are the overlays that the comments of a file show.
func shown(text string) (overlays []string) {
	for block := range strings.SplitSeq(text, "\n#\n") {
		var lines []string
		for line := range strings.Lines(block) {
			if line, indented := strings.CutPrefix(line, "#   "); indented {
				lines = append(lines, line)
			}
		}
		if overlay := strings.Join(lines, ""); strings.Contains("\n"+overlay, "\nresources: [") {
			overlays = append(overlays, regexp.MustCompile(`(\.\./)+(deploy/)?`).ReplaceAllString(overlay, "DEPLOY/"))
		}
	}
	return overlays
}

// What the heads of the kustomizations show can be built, and what they show for another namespace
// names quorate-system no more.
func TestTheOverlaysThatCommentsShow(t *testing.T) {
	built, elsewhere := 0, 0
	err := filepath.WalkDir("../../deploy", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "kustomization.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, overlay := range shown(string(text)) {
			built++
			objects, err := build(t, overlay, nil)
			if err != nil {
				t.Errorf("%s shows: %v", path, err)
				continue
			}
			if strings.Contains(overlay, "etcd\n") || strings.Contains(overlay, "value: etcd}") {
				elsewhere++
				expectNowhere(t, objects, "quorate-system")
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if built < 8 || elsewhere != 3 {
		t.Errorf("%d overlays were found, %d of them in another namespace", built, elsewhere)
	}
}

// The policies that name quorate's account name the one that an overlay makes.
func TestTheAdmissionPoliciesNameTheAccount(t *testing.T) {
	for name, c := range map[string]struct{ overlay, account string }{
		"as it is":          {"", "'quorate-system' + ':' + 'quorate'"},
		"another namespace": {"namespace: etcd\n", "'etcd' + ':' + 'quorate'"},
		"another name":      {"namespace: etcd\nnamePrefix: blue-\n", "'etcd' + ':' + 'blue-quorate'"},
	} {
		named := 0
		for _, o := range render(t, c.overlay+"transformers: ["+dir("admission/account")+"]\n", "base", "admission") {
			text := strings.Join(strings.Fields(o.MustYaml()), " ")
			found := strings.Count(strings.ReplaceAll(text, "''", "'"), "'system:serviceaccount:' + "+c.account)
			if named += found; o.GetKind() == "ValidatingAdmissionPolicy" && (found == 0 || found != strings.Count(text, "system:serviceaccount:' + ")+strings.Count(text, "system:serviceaccount:'' + ")) {
				t.Errorf("%s: %s names another account:\n%s", name, o.GetName(), text)
			}
		}
		if named != 6 {
			t.Errorf("%s: the account is named %d times", name, named)
		}
	}
}

// An overlay of the policies alone has no account that they could follow: it is refused, and names
// none that is not there.
func TestPoliciesFollowNoAccountThatIsMissing(t *testing.T) {
	_, err := build(t, "resources: ["+dir("admission")+"]\ntransformers: ["+dir("admission/account")+"]\n", nil)
	if err == nil || !strings.Contains(err.Error(), "ServiceAccount") {
		t.Errorf("it is built: %v", err)
	}
}

// The namespace that is made is the one that quorate is put into.
func TestTheNamespaceIsMade(t *testing.T) {
	for overlay, want := range map[string]string{"": "quorate-system", "namespace: etcd-operations\n": "etcd-operations"} {
		var made, used string
		for _, o := range render(t, overlay, "base") {
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
	for _, base := range []string{"base", "overlays/sandbox", "overlays/namespaces", "overlays/shards"} {
		var settings map[string]string
		var args []any
		for _, o := range render(t, withRepo, base) {
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
