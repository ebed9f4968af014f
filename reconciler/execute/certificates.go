package execute

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// issuer writes the Secrets with the certificates of a cluster and of its applications.
type issuer struct{ *Executor }

// issue creates the Secrets that are missing, authorities first.
func (e issuer) issue(ctx context.Context, v *observe.View) error {
	c := certs.ManagedBy(v.Certified())
	existing, err := e.liveSecrets(ctx, c)
	if err != nil {
		return err
	}
	missing, err := certs.Issue(c, e.Options.ClusterDomain, existing, e.Now())
	if err != nil {
		return err
	}
	return e.createSecrets(ctx, c, missing)
}

// liveSecrets reads the cluster's own Secrets past the caches, by name.
func (e issuer) liveSecrets(ctx context.Context, c schema.EtcdCluster) (map[string]*corev1.Secret, error) {
	list, err := e.Kube.CoreV1().Secrets(c.Metadata.Namespace).List(ctx, metav1.ListOptions{LabelSelector: naming.LabelCluster + "=" + c.Metadata.Name})
	if err != nil {
		return nil, fmt.Errorf("list the certificates: %w", err)
	}
	live := map[string]*corev1.Secret{}
	for i := range list.Items {
		live[list.Items[i].Name] = &list.Items[i]
	}
	return live, nil
}

// reissue replaces certificates that name too few members or grow old.
// Secrets and authorities are read past the caches; one that has changed in between
// stays.
func (e issuer) reissue(ctx context.Context, v *observe.View, names []string) error {
	c := certs.ManagedBy(v.Certified())
	domain := e.Options.ClusterDomain
	live, err := e.liveSecrets(ctx, c)
	if err != nil {
		return err
	}
	status := certs.Check(c, domain, live, e.Now())
	if len(status.Missing)+len(status.Problems) > 0 {
		return state.ErrChanged
	}
	old := slices.Concat(status.MissingSANs, status.Due)
	for _, l := range certs.Leaves(c, domain) {
		if !slices.Contains(names, l.Secret) || !slices.Contains(old, l.Secret) {
			continue
		}
		issued, err := certs.Reissue(c, domain, l.Secret, live, e.Now())
		if err != nil {
			return err
		}
		if err := e.updateSecrets(ctx, c, []*corev1.Secret{issued}); err != nil {
			return err
		}
	}
	return nil
}

// issueClients issues the certificates of applications. Secrets and authority are
// read past the caches; one that has become good, or somebody else's, stays.
func (e issuer) issueClients(ctx context.Context, v *observe.View, names []string) error {
	c := certs.ManagedBy(v.Certified())
	secrets := e.Kube.CoreV1().Secrets(c.Metadata.Namespace)
	live, err := e.liveSecrets(ctx, c)
	if err != nil {
		return err
	}
	for _, w := range certs.CheckClients(c, live, e.Now()).Wanting {
		if !slices.Contains(names, w.Secret) {
			continue
		}
		issued, err := certs.IssueClient(c, w.Secret, live, e.Now())
		if err != nil {
			return err
		}
		if live[w.Secret] == nil {
			_, err = secrets.Create(ctx, issued, metav1.CreateOptions{FieldManager: naming.FieldManager})
		} else {
			_, err = secrets.Update(ctx, issued, metav1.UpdateOptions{FieldManager: naming.FieldManager})
		}
		if err != nil {
			return fmt.Errorf("write Secret %s: %w", w.Secret, err)
		}
	}
	return nil
}

// createSecrets creates Secrets in their order.
func (e issuer) createSecrets(ctx context.Context, c schema.EtcdCluster, all []*corev1.Secret) error {
	secrets := e.Kube.CoreV1().Secrets(c.Metadata.Namespace)
	for _, secret := range all {
		_, err := secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: naming.FieldManager})
		if apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create Secret %s: it exists, but is not labelled as this cluster's, or another writer was faster", secret.Name)
		}
		if err != nil {
			return fmt.Errorf("create Secret %s: %w", secret.Name, err)
		}
	}
	return nil
}

// updateSecrets updates Secrets in their order. One that has changed since it was read stays.
func (e issuer) updateSecrets(ctx context.Context, c schema.EtcdCluster, all []*corev1.Secret) error {
	secrets := e.Kube.CoreV1().Secrets(c.Metadata.Namespace)
	for _, secret := range all {
		if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: naming.FieldManager}); err != nil {
			return fmt.Errorf("update Secret %s: %w", secret.Name, err)
		}
	}
	return nil
}
