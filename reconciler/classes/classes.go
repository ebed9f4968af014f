// Package classes asks what a StorageClass does: whether its volumes can grow, and whether it makes any. It is asked
// only where members' volumes are to grow, or to change to it.
package classes

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/jobs"
)

// Reader asks about classes.
type Reader struct {
	Kube kubernetes.Interface
	Jobs jobs.Client
}

// Rigidity returns why volumes of the class cannot grow, or "".
func (r Reader) Rigidity(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "its claim has no StorageClass, and only volumes of a class can grow", nil
	}
	class, err := r.Kube.StorageV1().StorageClasses().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("its StorageClass %s no longer exists", name), nil
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("quorate may not read StorageClass %s to see whether it allows that; "+
			"grant get on storageclasses", name), nil
	case err != nil:
		return "", fmt.Errorf("read StorageClass %s: %w", name, err)
	case class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion:
		return fmt.Sprintf("its StorageClass %s does not allow it (allowVolumeExpansion)", name), nil
	}
	return "", nil
}
