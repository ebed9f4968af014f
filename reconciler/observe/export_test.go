package observe

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/inspect"
	"github.com/quorate/quorate/reconciler/manifests"
)

func (o *Observer) HostOfVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	return o.hostOfVolume(ctx, claim)
}

func (o *Observer) RenderWith(v *View, with manifests.Options) error { return o.renderWith(v, with) }

// CertificateRecheck is for tests.
const CertificateRecheck = inspect.Recheck
