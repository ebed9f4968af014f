// Package statuses keeps the status of each object in a ConfigMap beside it, and its
// phase on the StatefulSet, for kubectl and `quorate status`.
//
// It is written for people, and never read back for a decision: a pass that found it
// missing, stale or forged would do the same. What is read of it is only what saves a
// write, and the times at which conditions have changed.
package statuses

import (
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// ConfigMap is the status of an object, as it is written beside it at some time.
func ConfigMap(s schema.Status, by string, now time.Time) (*corev1.ConfigMap, error) {
	text, err := yaml.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write the status of %s %s/%s: %w", s.Kind, s.Metadata.Namespace, s.Metadata.Name, err)
	}
	labels := map[string]string{
		"app.kubernetes.io/managed-by": "quorate", naming.LabelStatus: naming.StatusKind(s.Kind), naming.LabelStatusBy: by,
	}
	maps.Copy(labels, fitting(map[string]string{naming.LabelStatusOf: s.Metadata.Name}))
	maps.Copy(labels, Labels(s))
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.Status(s.Kind, s.Metadata.Name), Namespace: s.Metadata.Namespace, Labels: labels,
			Annotations: map[string]string{naming.AnnotationWritten: now.UTC().Format(time.RFC3339)},
		},
		Data: map[string]string{naming.KeyStatus: string(text)},
	}, nil
}

// Read is the status in a ConfigMap, and when it was written; the zero time if that is
// unknown.
func Read(cm *corev1.ConfigMap) (s schema.Status, written time.Time, err error) {
	if err := yaml.Unmarshal([]byte(cm.Data[naming.KeyStatus]), &s); err != nil {
		return s, written, fmt.Errorf("read the status in ConfigMap %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	if s.APIVersion != schema.StatusAPIVersion || naming.Status(s.Kind, s.Metadata.Name) != cm.Name || s.Metadata.Namespace != cm.Namespace {
		return s, written, fmt.Errorf("read the status in ConfigMap %s/%s: it is not that of an object of this name", cm.Namespace, cm.Name)
	}
	written, _ = time.Parse(time.RFC3339, cm.Annotations[naming.AnnotationWritten])
	return s, written, nil
}

// Labels are what kubectl shows with -L: the phase, the reason, the commit, and of a
// cluster the version that is wanted. What is no label is left out.
func Labels(s schema.Status) map[string]string {
	phase, why := s.Phase()
	labels := map[string]string{naming.LabelPhase: string(phase), naming.LabelReason: why.Reason, naming.LabelCommit: s.Status.Commit}
	if c := s.Status.Cluster; c != nil {
		labels[naming.LabelWantedVersion] = c.Version.Wanted
	}
	return fitting(labels)
}

// fitting are the labels whose values Kubernetes takes and that say something.
func fitting(labels map[string]string) map[string]string {
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" || len(validation.IsValidLabelValue(value)) > 0 })
	return labels
}

// ByOf is the value of the label that says which quorate writes a status.
func ByOf(owner state.Owner) string {
	owner.Claim = 0
	h := fnv.New64a()
	_, _ = h.Write([]byte(owner.String()))
	return strconv.FormatUint(h.Sum64(), 36)
}

// since gives each condition the time at which it became what it is: that of before,
// unless its status has changed.
func since(s schema.Status, before []schema.Condition, now time.Time) schema.Status {
	was := map[string]schema.Condition{}
	for _, c := range before {
		was[c.Type] = c
	}
	list := make([]schema.Condition, len(s.Status.Conditions))
	for i, c := range s.Status.Conditions {
		c.LastTransitionTime = now.UTC().Format(time.RFC3339)
		if old := was[c.Type]; old.Status == c.Status && old.LastTransitionTime != "" {
			c.LastTransitionTime = old.LastTransitionTime
		}
		list[i] = c
	}
	s.Status.Conditions = list
	return s
}

// plain is a status without times, as a pass gives it.
func plain(s schema.Status) schema.Status {
	list := make([]schema.Condition, len(s.Status.Conditions))
	for i, c := range s.Status.Conditions {
		c.LastTransitionTime = ""
		list[i] = c
	}
	s.Status.Conditions, s.Observed = list, ""
	return s
}
