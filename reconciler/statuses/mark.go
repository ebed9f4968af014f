package statuses

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// marks are the labels of a StatefulSet that tell how its cluster is.
func marks() []string {
	return []string{naming.LabelPhase, naming.LabelReason, naming.LabelWantedVersion, naming.LabelCommit}
}

// unmarked is the StatefulSet of a cluster, and the labels of it that are to be written,
// nil for one that is to go; none where it tells how the cluster is.
func unmarked(s schema.Status, from Source) (set *appsv1.StatefulSet, labels map[string]any) {
	if s.Kind != schema.KindCluster {
		return nil, nil
	}
	set, tell := from.MarkedSet(s.Metadata.Namespace, s.Metadata.Name)
	if set == nil {
		return nil, nil
	}
	if tell && tells(set.Labels, s) {
		return nil, nil
	}
	want, own := Labels(s), map[string]bool(nil)
	if !tell {
		want, own = nil, written(set)
	}
	labels = map[string]any{}
	for _, label := range marks() {
		value, wanted := want[label]
		switch {
		case set.Labels[label] == value, !tell && !own[label]:
		case wanted:
			labels[label] = value
		default:
			labels[label] = nil
		}
	}
	return set, labels
}

// tells reports whether labels are those of a status, as those of almost all clusters are at any time: to see that
// costs little. It returns false where that is not plain.
func tells(labels map[string]string, s schema.Status) bool {
	phase, why := s.Phase()
	c := s.Status.Cluster
	return c != nil && labels[naming.LabelPhase] == string(phase) && labels[naming.LabelReason] == why.Reason &&
		labels[naming.LabelCommit] == s.Status.Commit && labels[naming.LabelWantedVersion] == c.Version.Wanted
}

// written are the labels of a StatefulSet that were written by mark and by nobody since. Of
// a cluster that is only observed no others are quorate's to take off.
func written(set *appsv1.StatefulSet) map[string]bool {
	names := map[string]bool{}
	for _, e := range set.ManagedFields {
		if e.Manager != naming.StatusManager || e.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Labels map[string]any `json:"f:labels"`
			} `json:"f:metadata"`
		}
		if json.NewDecoder(e.FieldsV1.GetRawReader()).Decode(&fields) != nil {
			continue // then they are nobody's
		}
		for label := range fields.Metadata.Labels {
			names[strings.TrimPrefix(label, "f:")] = true
		}
	}
	return names
}

// mark writes labels of a StatefulSet, and nothing else of it: its pods' template is not
// touched, so that no pod restarts. The UID keeps it from labelling another one of that
// name.
func (w *Writer) mark(ctx context.Context, set *appsv1.StatefulSet, labels map[string]any) (done bool, err error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": set.UID, "labels": labels}})
	if err != nil {
		return false, err
	}
	_, err = w.Kube.AppsV1().StatefulSets(set.Namespace).Patch(ctx, set.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: naming.StatusManager})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil // another one may stand there now
	}
	if err != nil {
		return false, fmt.Errorf("label StatefulSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return true, nil
}
