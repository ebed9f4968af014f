package execute

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// rotator changes the authorities of clusters, and writes the Secrets of certificates.
type rotator struct{ issuer }

// Each of these reads the Secrets past the caches, and works out anew what is left to do: so it
// may end after any of its calls, and does the rest when it is taken again.

// makeAuthorities creates the next authorities that are missing.
func (e rotator) makeAuthorities(ctx context.Context, v *observe.View) error {
	c := v.Certified()
	live, err := e.liveSecrets(ctx, c)
	if err != nil {
		return err
	}
	// A cache that lacks a Secret for a while makes its authority look lost.
	if seen, is := v.Observed.Certificates.Rotation, certs.Check(c, e.Options.ClusterDomain, live, e.Now()).Rotation; seen != nil && !slices.Equal(seen.Lost, is.Lost) {
		return fmt.Errorf("make the next authorities: those that seemed lost are there: %w", state.ErrChanged)
	}
	made, err := certs.NextAuthorities(c, e.Options.ClusterDomain, live, e.Now())
	if err != nil {
		return err
	}
	return e.createSecrets(ctx, c, made)
}

// publishTrust has the Secrets of certificates say what is trusted, and then makes the Secret that
// members mount: when it was made, all the others had said so, and their copies, and from then on
// clients have the overlap.
func (e rotator) publishTrust(ctx context.Context, v *observe.View, a action.PublishTrust) error {
	c, domain := v.Certified(), e.Options.ClusterDomain
	live, err := e.liveSecrets(ctx, c)
	if err != nil {
		return err
	}
	if a.Bundle == state.BundleIssuers {
		return e.publishIssuers(ctx, c, live, a)
	}
	trusted, err := certs.Trust(c, domain, live, a.Secret)
	if err != nil {
		return fmt.Errorf("%w: %w", err, state.ErrChanged)
	}
	if a.Bundle != "" {
		if err := e.updateSecrets(ctx, c, certs.Bundles(c, domain, live, a.Bundle)); err != nil {
			return err
		}
	}
	if live[a.Secret] != nil {
		return nil
	}
	if err := (copier{e.Executor}).refresh(ctx, c); err != nil {
		return err
	}
	return e.createSecrets(ctx, c, []*corev1.Secret{trusted})
}

// publishIssuers is publishTrust of both issuers: the Secrets that the file names are read, too.
func (e rotator) publishIssuers(ctx context.Context, c schema.EtcdCluster, live map[string]*corev1.Secret, a action.PublishTrust) error {
	named, err := e.namedSecrets(ctx, c)
	if err != nil {
		return err
	}
	all := maps.Clone(named)
	maps.Copy(all, live)
	both := certs.UnitedTrust(c, e.Options.ClusterDomain, all)
	if both == nil || both.Name != a.Secret {
		return fmt.Errorf("%s: the ca.crt of a Secret has changed: %w", a, state.ErrChanged)
	}
	if err := e.updateSecrets(ctx, c, certs.UnitedBundles(c, e.Options.ClusterDomain, all)); err != nil {
		return err
	}
	if live[a.Secret] != nil {
		return nil
	}
	return e.createSecrets(ctx, c, []*corev1.Secret{both})
}

// switchCertificates issues all certificates by the authorities that stay. What speaks of the
// others alone goes first.
func (e rotator) switchCertificates(ctx context.Context, v *observe.View, a action.SwitchCertificates) error {
	c := v.Certified()
	live, err := e.liveSecrets(ctx, c)
	if err != nil {
		return err
	}
	issued, err := certs.IssueBy(c, e.Options.ClusterDomain, live, a.By, e.Now())
	if err != nil {
		return err
	}
	if a.Against != "" {
		if err := e.deleteSecret(ctx, v, a.Against); err != nil {
			return err
		}
	}
	return e.updateSecrets(ctx, c, issued)
}

// retireAuthorities ends a change: first nobody trusts the others by its Secret, then what stays
// takes their place, and then what is left of the change is deleted.
func (e rotator) retireAuthorities(ctx context.Context, v *observe.View, a action.RetireAuthorities) error {
	c := v.Certified()
	live, err := e.liveSecrets(ctx, c)
	if err != nil {
		return err
	}
	if a.Keep == state.ByOther {
		return e.retireOwn(ctx, v, a, live)
	}
	for _, l := range certs.Check(c, e.Options.ClusterDomain, live, e.Now()).Rotation.Leaves {
		if !l.By.Is(a.Keep) {
			return fmt.Errorf("%s: %s is signed by an authority that would go: %w", a, l.Secret, state.ErrChanged)
		}
	}
	update, create, remove := certs.Retire(c, e.Options.ClusterDomain, live, a.Keep)
	if err := e.updateSecrets(ctx, c, update); err != nil {
		return err
	}
	if err := e.createSecrets(ctx, c, create); err != nil {
		return err
	}
	for name := range live {
		if naming.IsTrust(c.Metadata.Name, name) && name != a.Trust {
			remove = append(remove, name)
		}
	}
	for _, name := range remove {
		if err := e.deleteSecret(ctx, v, name); err != nil {
			return err
		}
	}
	return nil
}

// retireOwn deletes the certificates and keys that quorate has made, where another program issues all of
// them: leaves first, for an authority without what it has signed is issued anew, and leaves without
// their authority are not. Those of applications stay.
func (e rotator) retireOwn(ctx context.Context, v *observe.View, a action.RetireAuthorities, live map[string]*corev1.Secret) error {
	c := v.Certified()
	if naming.ManagesTLS(c) || !v.LeavesOwn() {
		return fmt.Errorf("%s: a member shows, or trusts, certificates of quorate's: %w", a, state.ErrChanged)
	}
	for _, l := range certs.Leaves(c, e.Options.ClusterDomain) {
		if live[l.Secret] != nil {
			if err := e.deleteSecret(ctx, v, l.Secret); err != nil {
				return err
			}
		}
	}
	names := slices.Sorted(maps.Keys(live))
	for _, name := range slices.Backward(names) {
		if naming.IsIssued(c.Metadata.Name, name) {
			if err := e.deleteSecret(ctx, v, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteSecret deletes a Secret of the cluster.
func (e rotator) deleteSecret(ctx context.Context, v *observe.View, name string) error {
	if err := kube.DeleteOwn(ctx, e.Kube.CoreV1().Secrets(v.Cluster.Metadata.Namespace), v.Cluster.EtcdCluster, name, metav1.DeletePropagationBackground); err != nil {
		return fmt.Errorf("delete Secret %s: %w", name, err)
	}
	return nil
}
