package execute

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// keepTrust keeps what the issuer's Secrets say to trust, which are read past the caches: only what
// was decided on is kept. What goes is deleted first: the oldest that is kept is what members trust
// that mount none.
func (e issuer) keepTrust(ctx context.Context, v *observe.View, a action.KeepTrust) error {
	c := v.Certified()
	secrets, names := e.Kube.CoreV1().Secrets(c.Metadata.Namespace), naming.TLSSecrets(c)
	live, err := e.namedSecrets(ctx, c)
	if err != nil {
		return err
	}
	kept := certs.NamedTrust(c, live)
	if kept == nil || kept.Name != a.Secret {
		return fmt.Errorf("%s: the ca.crt of %s or %s has changed: %w", a, names.Server, names.Peer, state.ErrChanged)
	}
	for _, name := range a.Drop {
		if err := kube.DeleteOwn(ctx, secrets, c, name, metav1.DeletePropagationBackground); err != nil {
			return fmt.Errorf("delete Secret %s: %w", name, err)
		}
	}
	_, err = secrets.Create(ctx, kept, metav1.CreateOptions{FieldManager: naming.FieldManager})
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("create Secret %s: %w", kept.Name, err)
		}
		return nil
	}
	there, err := secrets.Get(ctx, kept.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read Secret %s: %w", kept.Name, err)
	}
	if !certs.KeepsTrust(c, there) {
		return fmt.Errorf("create Secret %s: it exists, and is not quorate's or does not hold what its name says: delete it", kept.Name)
	}
	return nil
}

// namedSecrets reads the Secrets of server and peer that the file names, past the caches, by name.
func (e issuer) namedSecrets(ctx context.Context, c schema.EtcdCluster) (map[string]*corev1.Secret, error) {
	live, names := map[string]*corev1.Secret{}, c.Spec.TLS.Secrets
	for _, name := range []string{names.Server, names.Peer} {
		secret, err := e.Kube.CoreV1().Secrets(c.Metadata.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read Secret %s: %w", name, err)
		}
		live[name] = secret
	}
	return live, nil
}
