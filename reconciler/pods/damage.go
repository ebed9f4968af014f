package pods

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

// Damage returns what is wrong with the data of a pod's member, or "". The guard
// tells it by its exit code, etcd by its last log line.
func Damage(p *corev1.Pod) string {
	for _, s := range p.Status.InitContainerStatuses {
		if s.Name != naming.ContainerGuard || s.Ready {
			continue
		}
		if ended := LastEnd(s); ended != nil {
			switch ended.ExitCode {
			case guard.ExitEmpty:
				return state.DamageEmpty
			case guard.ExitForeign:
				return state.DamageForeign
			case guard.ExitOutdated:
				return state.DamageOutdated
			case guard.ExitOlder:
				return state.DamageOlder
			case guard.ExitCorrupt:
				return state.DamageCorrupt
			}
		}
		return "" // etcd has not run since the guard began to check
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.Name != naming.ContainerEtcd || s.Ready {
			continue
		}
		if ended := LastEnd(s); ended != nil && ended.ExitCode != 0 && ended.Reason != OutOfMemory && SoundsCorrupt(ended.Message) {
			return state.DamageCorrupt
		}
	}
	return ""
}

// Found is what the guard has found on a pod's volume, where it did not let etcd start.
// It ends its message with its own advice, which is left out here.
func Found(p *corev1.Pod) string {
	for _, s := range p.Status.InitContainerStatuses {
		if ended := LastEnd(s); s.Name == naming.ContainerGuard && !s.Ready && ended != nil && ended.ExitCode != 0 {
			found, _, _ := strings.Cut(LastWords(ended.Message), "; ")
			return found
		}
	}
	return ""
}

// LastEnd is how a container ended last, nil when it never did.
func LastEnd(s corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if s.State.Terminated != nil {
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}

// SoundsCorrupt reports whether etcd's last words are of data that it cannot read. A
// disk that is full or does not answer passes, or is another matter: an error of
// that kind can come with any of the words for damage.
func SoundsCorrupt(lastWords string) bool {
	if SoundsOfDisk(lastWords) {
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

// NotReadySince is since when a pod has not been ready; its creation where it
// never was.
func NotReadySince(p *corev1.Pod) time.Time {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status != corev1.ConditionTrue && !condition.LastTransitionTime.IsZero() {
			return condition.LastTransitionTime.Time
		}
	}
	return p.CreationTimestamp.Time
}

// SoundsOfDisk reports whether etcd's last words are of a disk, or of a limit, and not
// of what is on it.
func SoundsOfDisk(lastWords string) bool {
	return mentions(lastWords, "no space left on device", "disk quota exceeded", "input/output error", "permission denied", "read-only file system", "cannot allocate memory", "too many open files")
}

// mentions reports whether a text has any of some words.
func mentions(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
