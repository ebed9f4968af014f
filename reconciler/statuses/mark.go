package statuses

import (
	"context"
	"encoding/json"
	"fmt"

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

// unmarked is the StatefulSet of a cluster whose labels tell something else; nil where
// there is nothing to write.
func (w *Writer) unmarked(s schema.Status, from Source) *appsv1.StatefulSet {
	if s.Kind != schema.KindCluster {
		return nil
	}
	set := from.MarkedSet(s.Metadata.Namespace, s.Metadata.Name)
	if set == nil {
		return nil
	}
	want := Labels(s)
	for _, label := range marks() {
		if set.Labels[label] != want[label] {
			return set
		}
	}
	return nil
}

// mark labels a StatefulSet, and nothing else of it: its pods' template is not touched,
// so that no pod restarts. The UID keeps it from labelling another one of that name.
func (w *Writer) mark(ctx context.Context, set *appsv1.StatefulSet, want map[string]string) (done bool, err error) {
	labels := map[string]any{}
	for _, label := range marks() {
		labels[label] = nil // removes it
		if value, wanted := want[label]; wanted {
			labels[label] = value
		}
	}
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
