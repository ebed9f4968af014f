package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/test/checkout"
)

// System is the namespace of deploy/base.
const System = "quorate-system"

// Overlay is what only one run of a deployed quorate knows, on top of
// deploy/overlays/sandbox.
type Overlay struct {
	// Namespace is where quorate runs, System unless several may run beside one another:
	// elsewhere its cluster roles have other names as well, and that of the first is Namespace.
	Namespace string
	// Image is quorate's, Repo the repository, BackupURL the template of --backup-url.
	Image, Repo, BackupURL string
	// Credentials are those for the object store.
	Credentials map[string]string
	// Args are added to the daemon's.
	Args []string
	// Namespaces are the only ones that quorate works in, as deploy/overlays/namespaces says it;
	// none for all. BindDeployed gives it its rights in each.
	Namespaces []string
}

// Write writes a kustomization into dir, for Cluster.Apply and Delete. Its namespace
// carries OwnLabel.
func (o Overlay) Write(dir string) error {
	root, err := checkout.Root()
	if err != nil {
		return err
	}
	// kustomize takes no absolute path.
	base, err := relative(dir, filepath.Join(root, "deploy", "overlays", "sandbox"))
	if err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	text, err := yaml.Marshal(o.kustomization(base))
	if err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o600)
}

type object = map[string]any

func (o Overlay) kustomization(base string) object {
	name, tag := splitImage(o.Image)
	return object{
		"apiVersion": "kustomize.config.k8s.io/v1beta1",
		"kind":       "Kustomization",
		"namespace":  o.Namespace,
		"resources":  []string{base},
		"images":     []object{{"name": "ghcr.io/quorate/quorate", "newName": name, "newTag": tag}},
		"configMapGenerator": []object{{
			"name": "quorate-settings", "behavior": "merge",
			"literals": []string{"REPO=" + o.Repo, "BACKUP_URL=" + o.BackupURL},
		}},
		"secretGenerator": []object{{
			"name": "quorate-object-store", "behavior": "merge", "literals": literals(o.Credentials),
		}},
		"patches": o.patches(),
	}
}

func (o Overlay) patches() []object {
	all := []object{patch("Namespace", "", "add", "/metadata/labels/"+strings.ReplaceAll(OwnLabel, "/", "~1"), "true")}
	args := o.Args
	if len(o.Namespaces) > 0 {
		args = append(slices.Clone(args), "--namespaces="+strings.Join(o.Namespaces, ","))
	}
	for _, arg := range args {
		all = append(all, patch("Deployment", "quorate", "add", "/spec/template/spec/containers/0/args/-", arg))
	}
	suffixes := []string{"", "-cluster-scoped", "-viewer", "-metrics-reader"}
	bound := suffixes[:2]
	if len(o.Namespaces) > 0 {
		for _, suffix := range bound {
			all = append(all, unbind("quorate"+suffix))
		}
		bound = nil
	}
	if o.Namespace == System {
		return all
	}
	// What belongs to no namespace needs another name, by which kustomize knows it no more.
	for _, suffix := range bound {
		all = append(all,
			patch("ClusterRoleBinding", "quorate"+suffix, "replace", "/roleRef/name", o.Namespace+suffix),
			patch("ClusterRoleBinding", "quorate"+suffix, "replace", "/metadata/name", o.Namespace+suffix),
		)
	}
	for _, suffix := range suffixes {
		all = append(all, patch("ClusterRole", "quorate"+suffix, "replace", "/metadata/name", o.Namespace+suffix))
	}
	return all
}

// unbind takes a ClusterRoleBinding out.
func unbind(name string) object {
	return object{"patch": "{$patch: delete, apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: " + name + "}}"}
}

// patch changes one value of an object; the name may be "".
func patch(kind, name, op, path, value string) object {
	return object{
		"target":  object{"kind": kind, "name": name},
		"patch":   fmt.Sprintf("- {op: %s, path: %s, value: %q}", op, path, value),
		"options": object{"allowNameChange": true},
	}
}

// relative is the way from one directory to another, links followed.
func relative(from, to string) (string, error) {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return "", err
	}
	if to, err = filepath.EvalSymlinks(to); err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

func literals(values map[string]string) []string {
	var all []string
	for name, value := range values {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return all
}

// splitImage takes an image's name apart as kustomize wants it.
func splitImage(image string) (name, tag string) {
	i := strings.LastIndex(image, ":")
	if i < 0 || strings.Contains(image[i:], "/") {
		return image, "latest"
	}
	return image[:i], image[i+1:]
}
