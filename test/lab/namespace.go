package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OwnLabel marks the namespaces that the harness has made.
const OwnLabel = "quorate.dev/lab"

// deleteLimit bounds the end of a namespace: members take their time to stop,
// and volumes to go.
const deleteLimit = 9 * time.Minute

// CreateNamespace makes a namespace with OwnLabel. One of that name that the
// harness made before is deleted first; any other is refused.
func (c *Cluster) CreateNamespace(ctx context.Context, name string) error {
	if err := c.ClaimNamespace(ctx, name); err != nil {
		return err
	}
	_, err := c.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{OwnLabel: "true"}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// ClaimNamespace makes sure that there is no namespace of that name: what an
// earlier run left is deleted, any other is an error.
func (c *Cluster) ClaimNamespace(ctx context.Context, name string) error {
	ns, err := c.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("get namespace %s: %w", name, err)
	case ns.Labels[OwnLabel] == "":
		return fmt.Errorf("namespace %s exists already and was not made by a run of this program: use another cluster, or delete the namespace if it is not needed", name)
	}
	return c.DeleteNamespace(ctx, name)
}

// DeleteNamespace deletes a namespace with everything in it, claims included,
// and waits until it and the volumes of its claims are gone.
func (c *Cluster) DeleteNamespace(ctx context.Context, name string) error {
	err := c.Client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	if err := c.hurry(ctx, name); err != nil {
		return fmt.Errorf("empty namespace %s: %w", name, err)
	}
	err = Poll(ctx, deleteLimit, func(ctx context.Context) (bool, error) {
		_, err := c.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return false, err
		}
		return c.volumesGone(ctx, name)
	})
	if err != nil {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	return nil
}

// hurry ends the pods of a namespace without their grace, and deletes its
// claims. Kubernetes does it as well, but checks again only after half of the
// longest grace. In a namespace that is being deleted nothing is recreated.
func (c *Cluster) hurry(ctx context.Context, namespace string) error {
	now, all := metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}, metav1.ListOptions{}
	return errors.Join(
		c.Client.AppsV1().StatefulSets(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		c.Client.CoreV1().Pods(namespace).DeleteCollection(ctx, now, all),
		c.Client.CoreV1().PersistentVolumeClaims(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
	)
}

// volumesGone reports whether no volume is left that is deleted with its claim.
func (c *Cluster) volumesGone(ctx context.Context, namespace string) (bool, error) {
	volumes, err := c.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, v := range volumes.Items {
		claim := v.Spec.ClaimRef
		if claim != nil && claim.Namespace == namespace && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			return false, nil
		}
	}
	return true, nil
}
