package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/plan"
)

// podDamage says what is wrong with the data of a pod's member, or "". The guard
// says it by its exit code, etcd by its last words.
func podDamage(p *corev1.Pod) string {
	for _, s := range p.Status.InitContainerStatuses {
		if s.Name != GuardContainer || s.Ready {
			continue
		}
		if ended := lastEnd(s); ended != nil {
			switch ended.ExitCode {
			case guard.ExitEmpty:
				return plan.DamageEmpty
			case guard.ExitForeign:
				return plan.DamageForeign
			case guard.ExitOutdated:
				return plan.DamageOutdated
			case guard.ExitCorrupt:
				return plan.DamageCorrupt
			}
		}
		return "" // etcd has not run since the guard began to look
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.Name != EtcdContainer || s.Ready {
			continue
		}
		if ended := lastEnd(s); ended != nil && ended.ExitCode != 0 && ended.Reason != outOfMemory && soundsCorrupt(ended.Message) {
			return plan.DamageCorrupt
		}
	}
	return ""
}

// lastEnd is how a container ended last, nil when it never did.
func lastEnd(s corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if s.State.Terminated != nil {
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}

// soundsCorrupt says whether etcd's last words are of data that it cannot read. A
// disk that is full or does not answer passes, or is another matter: an error of
// that kind can come with any of the words for damage.
func soundsCorrupt(lastWords string) bool {
	if soundsOfDisk(lastWords) {
		return false
	}
	return mentions(lastWords,
		// The write-ahead log.
		"wal: crc mismatch", "walpb: crc mismatch", "wal: conflicting metadata found", "wal: slice bounds out of range", "wal: snapshot mismatch",
		"wal: snapshot not found", "wal: file not found", "[wal] max entry size limit exceeded", "failed to read WAL, cannot be repaired", "failed to repair WAL",
		// Snapshots, and the database.
		"snap: crc mismatch", "snap: snapshot file doesn't exist", "failed to find database snapshot file", "failed to recover v3 backend from snapshot",
		"database file is corrupt", "invalid database", "checksum error", "file size too small", "illegal v2store content",
		// Measured: a pod's status keeps the last two kilobytes, and of a panic that
		// is only where it happened. Nothing else panics in there.
		"go.etcd.io/bbolt.(*DB).freepages", "go.etcd.io/bbolt.(*DB).loadFreelist", "etcdserver.recoverSnapshot(",
		// Raft found less than it had promised.
		"Was the raft log corrupted, truncated, or lost?")
}

// notReadySince is since when a pod has not been ready; its creation where it
// never was.
func notReadySince(p *corev1.Pod) time.Time {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status != corev1.ConditionTrue && !condition.LastTransitionTime.IsZero() {
			return condition.LastTransitionTime.Time
		}
	}
	return p.CreationTimestamp.Time
}

// observeDamage describes what the pods, their claims and their nodes tell of lost
// data. Nodes and volumes are looked at only for pods that are not ready: at rest
// nothing is asked.
func (v *view) observeDamage(ctx context.Context, r *Reconciler, live *liveCluster) error {
	if !slices.ContainsFunc(v.observed.Pods, func(p plan.Pod) bool { return !p.Ready }) {
		return nil
	}
	claims := named(live.claims)
	pods := named(live.pods)
	for i := range v.observed.Pods {
		pod := &v.observed.Pods[i]
		if p := pods[pod.Name]; p != nil && !pod.Ready {
			claim := claims[v.claimName(pod.Name)]
			if pod.Damage = podDamage(p); claim != nil && claim.Status.Phase == corev1.ClaimLost {
				pod.Damage = plan.DamageLost
			}
			if pod.Damage != "" {
				pod.DamageSince = notReadySince(p)
			}
			var err error
			if pod.NodeGone, pod.NodeGoneSince, err = r.nodeGone(ctx, p, claim); err != nil {
				return err
			}
		}
	}
	return nil
}

// nodeGone says whether the node is gone to which a pod's volume is tied, and since
// when. A volume that can go to another node loses nothing with one, and where
// quorate may not look at nodes, none is gone. A volume names its node by a label,
// which need not be the node's name.
func (r *Reconciler) nodeGone(ctx context.Context, p *corev1.Pod, claim *corev1.PersistentVolumeClaim) (bool, time.Time, error) {
	var nodes *corev1.NodeList
	host, err := r.hostOfVolume(ctx, claim)
	if err == nil && host != "" {
		nodes, err = r.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: corev1.LabelHostname + "=" + host})
	}
	switch {
	case apierrors.IsForbidden(err):
		return false, time.Time{}, nil
	case err != nil:
		return false, time.Time{}, fmt.Errorf("look for the node of %s: %w", p.Name, err)
	case host == "":
		return false, time.Time{}, nil
	case len(nodes.Items) == 0:
		return true, notReadySince(p), nil
	}
	for _, condition := range nodes.Items[0].Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return true, condition.LastTransitionTime.Time, nil
		}
	}
	return false, time.Time{}, nil
}

// hostOfVolume is the host name of the only node on which the volume of a claim is,
// "" where it is on any or on none in particular.
func (r *Reconciler) hostOfVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	if claim == nil || claim.Spec.VolumeName == "" {
		return "", nil
	}
	volume, err := r.kube.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return "", err
	}
	a := volume.Spec.NodeAffinity
	if a == nil || a.Required == nil || len(a.Required.NodeSelectorTerms) != 1 {
		return "", nil
	}
	for _, e := range a.Required.NodeSelectorTerms[0].MatchExpressions {
		if e.Key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
			return e.Values[0], nil
		}
	}
	return "", nil
}

// soundsOfDisk says whether etcd's last words are of a disk, or of a limit, and not
// of what is on it.
func soundsOfDisk(lastWords string) bool {
	return mentions(lastWords, "no space left on device", "disk quota exceeded", "input/output error", "permission denied", "read-only file system", "cannot allocate memory", "too many open files")
}

// mentions says whether a text has any of some words.
func mentions(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
