package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/test/lab"
)

// Where quorate runs, and how its pod is found.
const (
	system   = "quorate-system"
	selector = "app.kubernetes.io/component=daemon"
)

// deploy runs quorate in the cluster, from deploy/, and starts to show what it
// does.
func (d *demo) deploy(ctx context.Context) error {
	// A quorate that was kept goes first, or it would bring its members back.
	for _, ns := range []string{system, namespace} {
		if err := d.cluster.ClaimNamespace(ctx, ns); err != nil {
			return err
		}
	}
	if err := d.cluster.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	d.atEnd("namespace "+namespace, true, d.deleteNamespace)
	overlay, err := d.writeOverlay()
	if err != nil {
		return fmt.Errorf("overlay for this run: %w", err)
	}
	d.Say("deploying quorate from deploy/ into the namespace %s", system)
	d.atEnd("quorate in namespace "+system, true, func(ctx context.Context) error { return d.undeploy(ctx, overlay) })
	if err := d.cluster.Apply(ctx, overlay); err != nil {
		return err
	}
	if err := d.follow(); err != nil {
		return err
	}
	return d.Wait(ctx, "quorate to run", deployLimit, func(ctx context.Context) (bool, string, error) {
		if _, runs := d.log.Last(lab.Contains(`"running"`)); runs {
			return true, "", nil
		}
		_, state, err := d.deployed(ctx)
		return false, state, err
	})
}

// follow shows what quorate says from now on, and keeps its log.
func (d *demo) follow() error {
	file, err := os.Create(filepath.Join(d.dir, "quorate.log"))
	if err != nil {
		return fmt.Errorf("keep quorate's log: %w", err)
	}
	d.log = lab.NewLog((&narrator{Progress: d.Progress}).tell)
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() {
		if err := d.cluster.Follow(ctx, system, selector, "quorate", d.log, file); err != nil {
			d.Say("%v", err)
		}
	})
	d.atEnd("log", false, func(context.Context) error {
		cancel()
		following.Wait()
		return file.Close()
	})
	return nil
}

func (d *demo) deleteNamespace(ctx context.Context) error {
	return d.Do("removing the namespace "+namespace, func() error { return d.cluster.DeleteNamespace(ctx, namespace) })
}

func (d *demo) undeploy(ctx context.Context, overlay string) error {
	return d.Do("removing quorate", func() error { return d.cluster.Delete(ctx, overlay) })
}

// deployed checks the Deployment, and at its pod where that is in trouble.
func (d *demo) deployed(ctx context.Context) (bool, string, error) {
	deployment, err := d.cluster.Client.AppsV1().Deployments(system).Get(ctx, "quorate", metav1.GetOptions{})
	if err != nil {
		return false, "", err
	}
	if available(deployment) {
		return true, "", nil
	}
	pods, err := d.cluster.Client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil || len(pods.Items) == 0 {
		return false, "no pod yet", err
	}
	for _, status := range pods.Items[0].Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil {
			return false, strings.TrimSpace(waiting.Reason + " " + waiting.Message), nil
		}
	}
	return false, "its pod is " + string(pods.Items[0].Status.Phase) + ", not ready; " + d.log.LastHold(), nil
}

func available(deployment *appsv1.Deployment) bool {
	s := deployment.Status
	return s.ObservedGeneration >= deployment.Generation && s.UpdatedReplicas == 1 && s.AvailableReplicas == 1
}

// writeOverlay writes the kustomization with what only this run knows:
// where Git is, where backups go and with which credentials.
func (d *demo) writeOverlay() (string, error) {
	dir := filepath.Join(d.dir, "deploy")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	text, err := d.overlay(dir)
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o600)
}

func (d *demo) overlay(dir string) ([]byte, error) {
	// kustomize takes no absolute path.
	base, err := relative(dir, filepath.Join(d.root, "deploy", "overlays", "sandbox"))
	if err != nil {
		return nil, err
	}
	name, tag := splitImage(d.image)
	type object = map[string]any
	return yaml.Marshal(object{
		"apiVersion": "kustomize.config.k8s.io/v1beta1",
		"kind":       "Kustomization",
		"namespace":  system,
		"resources":  []string{base},
		"images":     []object{{"name": "ghcr.io/quorate/quorate", "newName": name, "newTag": tag}},
		"configMapGenerator": []object{{
			"name": "quorate-settings", "behavior": "merge",
			"literals": []string{"REPO=" + d.git.URL(), "BACKUP_URL=" + d.store.URLTemplate()},
		}},
		"secretGenerator": []object{{
			"name": "quorate-object-store", "behavior": "merge", "literals": literals(d.store.Credentials()),
		}},
		"patches": []object{{
			"target": object{"kind": "Namespace"},
			"patch":  "- {op: add, path: /metadata/labels/" + strings.ReplaceAll(lab.OwnLabel, "/", "~1") + ", value: \"true\"}",
		}},
	})
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
