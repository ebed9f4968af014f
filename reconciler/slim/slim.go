// Package slim takes out of objects, before caches keep them, what quorate never reads there: of thousands of
// clusters it would be most of the memory. Each function is a toolscache.TransformFunc, and changes nothing in what
// it has returned before. What is written is made of objects that were read past the caches.
package slim

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
)

// Record takes the data out of a ConfigMap that has the label of a cluster, and a name that quorate gives none
// of its own: who may write these would fill its memory.
func Record(o any) (any, error) {
	if cm, ok := o.(*corev1.ConfigMap); ok && !IsRecord(cm) {
		cm.Data, cm.BinaryData = nil, nil
	}
	return o, nil
}

// IsRecord reports whether a ConfigMap is the record of the cluster that its label names.
func IsRecord(cm *corev1.ConfigMap) bool {
	return cm.Name == naming.Record(cm.Labels[naming.LabelCluster])
}

// Secret is the same as Record for Secrets. Of an application's certificate it leaves what quorate has made.
func Secret(o any) (any, error) {
	s, ok := o.(*corev1.Secret)
	if !ok {
		return o, nil
	}
	withoutFields(s)
	switch {
	case naming.IsSecret(s.Labels[naming.LabelCluster], s.Name):
	case s.Labels[naming.LabelClient] != "":
		s.Data = certificateData(s.Data)
	default:
		s.Data = nil
	}
	return o, nil
}

// Copy takes out of a Secret of an application, which anybody can give that label, what is no certificate, or key, of
// quorate's.
func Copy(o any) (any, error) {
	if s, ok := o.(*corev1.Secret); ok {
		withoutFields(s)
		s.Data = certificateData(s.Data)
	}
	return o, nil
}

// maxCertificateData bounds what is kept of one key of an application's Secret, whose name
// the file chooses, in bytes: a certificate or key of quorate's has less than 2 KiB.
const maxCertificateData = 16 << 10

// certificateData is what a Secret has of a certificate and its key, as far as it is no larger
// than one of quorate's.
func certificateData(data map[string][]byte) map[string][]byte {
	kept := map[string][]byte{}
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, naming.AuthorityCertKey} {
		if value, ok := data[key]; ok && len(value) <= maxCertificateData {
			kept[key] = value
		}
	}
	return kept
}

// Claim takes out of a volume claim which fields who has set; when it was changed, and by whom, stays.
func Claim(o any) (any, error) {
	if claim, ok := o.(*corev1.PersistentVolumeClaim); ok {
		withoutFields(claim)
	}
	return o, nil
}

// Pod leaves of a pod where it is, how it is, which volumes it has, and of its containers what their members
// start with, and what they may use at the most. Where it may run and how it is probed is for the scheduler and the
// kubelet; that a probe of liveness is as wanted, quorate compares.
func Pod(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	p.ManagedFields = nil
	p.Spec.Affinity, p.Spec.TopologySpreadConstraints, p.Spec.Tolerations, p.Spec.SecurityContext, p.Spec.ImagePullSecrets = nil, nil, nil, nil, nil
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i, c := range list {
			list[i] = corev1.Container{
				Name: c.Name, Image: c.Image, Command: c.Command, Args: c.Args, Env: c.Env, RestartPolicy: c.RestartPolicy,
				LivenessProbe: c.LivenessProbe, Resources: corev1.ResourceRequirements{Limits: c.Resources.Limits},
			}
		}
	}
	return o, nil
}

// withoutFields takes out of an object which fields each writer has set, and leaves who has written, and when.
func withoutFields(o metav1.Object) {
	for i := range o.GetManagedFields() {
		o.GetManagedFields()[i].FieldsV1 = nil
	}
}

// template is as much of a revision's data as is kept.
type template struct {
	Spec struct {
		Template struct {
			Metadata struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		} `json:"template"`
	} `json:"spec"`
}

// Revision leaves of a revision of a StatefulSet what Template reads.
func Revision(o any) (any, error) {
	r, ok := o.(*appsv1.ControllerRevision)
	if !ok {
		return o, nil
	}
	r.ManagedFields = nil
	var kept template
	kept.Spec.Template.Metadata.Annotations = map[string]string{}
	for _, name := range []string{naming.AnnotationTemplateHash, naming.AnnotationVersion} {
		if value, has := annotations(r)[name]; has {
			kept.Spec.Template.Metadata.Annotations[name] = value
		}
	}
	text, err := json.Marshal(kept)
	r.Data.Raw = text
	return o, err
}

// Template is the hash of the pod template in a revision of a StatefulSet, and its version of etcd. One that is
// not there or cannot be read has neither, and matches no template.
func Template(r *appsv1.ControllerRevision) (hash, version string) {
	if r == nil {
		return "", ""
	}
	a := annotations(r)
	return a[naming.AnnotationTemplateHash], a[naming.AnnotationVersion]
}

func annotations(r *appsv1.ControllerRevision) map[string]string {
	var t template
	if err := json.Unmarshal(r.Data.Raw, &t); err != nil {
		return nil
	}
	return t.Spec.Template.Metadata.Annotations
}
