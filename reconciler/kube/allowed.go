package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
)

// Allowed returns an error where a Secret that a file names lacks the label that lets quorate use
// it for backups. Who may write files in Git may not thereby use every Secret of a namespace.
func Allowed(secret *corev1.Secret) error { return AllowedFor(secret, naming.UseBackups) }

// AllowedFor is Allowed for another use.
func AllowedFor(secret *corev1.Secret, use string) error {
	if secret.Labels[naming.LabelUse] == use {
		return nil
	}
	return fmt.Errorf("the Secret %s/%s does not say that quorate may use it for %s: who owns it runs kubectl -n %s label secret %s %s=%s",
		secret.Namespace, secret.Name, use, secret.Namespace, secret.Name, naming.LabelUse, use)
}
