package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// System is the namespace of deploy/base.
const System = "quorate-system"

// Overlay is what only one run of a deployed quorate knows, on top of
// deploy/overlays/sandbox.
type Overlay struct {
	// Namespace is where quorate runs, System unless several may run beside one another:
	// elsewhere its cluster roles have other names as well.
	Namespace string
	// Image is quorate's, Repo the repository, BackupURL the template of --backup-url.
	Image, Repo, BackupURL string
	// Credentials are those for the object store.
	Credentials map[string]string
	// Args are added to the daemon's.
	Args []string
}

// Write writes a kustomization into dir, for Cluster.Apply and Delete. Its namespace
// carries OwnLabel.
func (o Overlay) Write(ctx context.Context, dir string) error {
	root, err := Root(ctx)
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
	for _, arg := range o.Args {
		all = append(all, patch("Deployment", "quorate", "add", "/spec/template/spec/containers/0/args/-", arg))
	}
	if o.Namespace == System {
		return all
	}
	// kustomize renames neither a namespace in the subjects of a binding nor what belongs
	// to no namespace.
	for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
		all = append(all, patch(kind, "quorate", "replace", "/subjects/0/namespace", o.Namespace))
	}
	return append(all,
		patch("ClusterRoleBinding", "quorate", "replace", "/roleRef/name", o.Namespace),
		patch("ClusterRoleBinding", "quorate", "replace", "/metadata/name", o.Namespace),
		patch("ClusterRole", "quorate", "replace", "/metadata/name", o.Namespace),
		patch("ClusterRole", "quorate-viewer", "replace", "/metadata/name", o.Namespace+"-viewer"),
		patch("ClusterRole", "quorate-metrics-reader", "replace", "/metadata/name", o.Namespace+"-metrics-reader"),
	)
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
