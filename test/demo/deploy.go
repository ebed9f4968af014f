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

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/test/lab"
)

// Where quorate runs, and how its pods are found, and the one of them that acts.
const (
	system   = lab.System
	selector = "app.kubernetes.io/component=daemon"
	acting   = naming.LabelActing + "=true"
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
		if err := d.cluster.Follow(ctx, system, acting, "quorate", d.log, file); err != nil {
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
	return s.ObservedGeneration >= deployment.Generation && s.UpdatedReplicas == *deployment.Spec.Replicas && s.AvailableReplicas == *deployment.Spec.Replicas
}

// writeOverlay writes the kustomization with what only this run knows:
// where Git is, where backups go and with which credentials.
func (d *demo) writeOverlay() (string, error) {
	dir := filepath.Join(d.dir, "deploy")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return dir, lab.Overlay{
		Namespace: system, Image: d.image, Repo: d.git.URL(), BackupURL: d.store.URLTemplate(), Credentials: d.store.Credentials(),
	}.Write(dir)
}
