// Package pods reads what a pod's status says: whether it is ready, why it does not run,
// and what is wrong with its member's data.
package pods

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

// Describe describes one pod.
func Describe(p *corev1.Pod) state.Pod {
	pod := state.Pod{
		Name: p.Name, Ordinal: naming.Ordinal(p.Name), UID: string(p.UID),
		Template: p.Annotations[naming.AnnotationTemplateHash], Version: p.Annotations[naming.AnnotationVersion],
		Created: p.CreationTimestamp.Time, Terminating: p.DeletionTimestamp != nil,
		Ready: Ready(p), Quota: PodQuota(p), Trouble: troubleOf(p, ofMember(p)),
		Barred:    barred(p),
		RunsSince: etcdStarted(p),
		Unpulled:  slices.ContainsFunc(ofMember(p), unpulled),
	}
	if pod.Trouble == "" && !pod.Ready {
		pod.Beside = Trouble(p)
	}
	pod.GoingSince, pod.Finalizers = Going(p)
	for _, condition := range p.Status.Conditions {
		switch {
		case condition.Type != corev1.PodReady:
		case condition.Status == corev1.ConditionTrue:
			pod.ReadySince = condition.LastTransitionTime.Time
		case !pod.RunsSince.IsZero() && condition.LastTransitionTime.After(pod.RunsSince):
			pod.UnreadySince = condition.LastTransitionTime.Time
		}
	}
	if s := etcdOf(p); s != nil {
		pod.Ran = s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil || s.RestartCount > 0
		pod.Crashed, pod.EtcdReady = crashed(*s), s.Ready
	}
	return pod
}

// etcdOf is the status of etcd's container, nil while there is none. Others may run in the
// pod, such as what a mesh has added: they tell nothing of etcd.
func etcdOf(p *corev1.Pod) *corev1.ContainerStatus {
	i := slices.IndexFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == naming.ContainerEtcd })
	if i < 0 {
		return nil
	}
	return &p.Status.ContainerStatuses[i]
}

// ofMember are the containers without which etcd does not run: those before it, and its own. One
// that runs beside it, although it is started before, keeps it back only until it has been started.
func ofMember(p *corev1.Pod) (statuses []corev1.ContainerStatus) {
	var beside []corev1.ContainerStatus
	for _, s := range p.Status.InitContainerStatuses {
		if sidecar(p, s.Name) {
			beside = append(beside, s)
			continue
		}
		statuses = append(statuses, s)
	}
	etcd := etcdOf(p)
	if etcd != nil {
		statuses = append(statuses, *etcd)
	}
	if etcd == nil || etcd.State.Waiting != nil && etcd.State.Waiting.Reason == "PodInitializing" {
		statuses = append(statuses, beside...)
	}
	return statuses
}

// sidecar reports whether an init container runs on beside the others.
func sidecar(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// Going is since when an object is being deleted, and by what it is kept besides Kubernetes'
// own protection of claims in use; zero and "" for one that is not. The time in the object is when its
// grace period ends.
func Going(o metav1.Object) (since time.Time, finalizers string) {
	at, grace := o.GetDeletionTimestamp(), o.GetDeletionGracePeriodSeconds()
	if at == nil {
		return time.Time{}, ""
	}
	since = at.Time
	if grace != nil {
		since = since.Add(-time.Duration(*grace) * time.Second)
	}
	kept := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == inUse })
	return since, strings.Join(kept, ", ")
}

// inUse keeps a claim for as long as a pod uses it.
const inUse = "kubernetes.io/pvc-protection"

// Ready reports whether a pod is ready.
func Ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Mounts reports whether a pod uses a volume claim.
func Mounts(p *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

// crashed reports whether a container has ended with an error, or was started again
// for a reason that the kubelet has forgotten.
func crashed(s corev1.ContainerStatus) bool {
	if ended := LastEnd(s); ended != nil {
		return ended.ExitCode != 0
	}
	return s.RestartCount > 0
}

// etcdStarted is when the etcd that runs in the pod was started; zero while none runs.
func etcdStarted(p *corev1.Pod) time.Time {
	if s := etcdOf(p); s != nil && s.State.Running != nil {
		return s.State.Running.StartedAt.Time
	}
	return time.Time{}
}

// Trouble returns why a pod does not run, or "" while it does or just starts. The
// words stay the same while the kubelet tries again and again.
func Trouble(p *corev1.Pod) string {
	return troubleOf(p, slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses))
}

// troubleOf is why a pod does not run, as far as some of its containers tell.
func troubleOf(p *corev1.Pod, statuses []corev1.ContainerStatus) string {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return "not scheduled: " + condition.Message
		}
	}
	for _, s := range statuses {
		if trouble := containerTrouble(s); trouble != "" {
			return s.Name + ": " + trouble + memoryOf(p, s)
		}
	}
	return ""
}

// barred reports whether Kubernetes, and not what runs in its containers, keeps etcd from
// running.
func barred(p *corev1.Pod) bool {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return true
		}
	}
	for _, s := range ofMember(p) {
		if containerTrouble(s) == "" {
			continue
		}
		// A waiting container that has never ended has never been started.
		ended := LastEnd(s)
		return unpulled(s) || (ended == nil && s.State.Waiting != nil && s.RestartCount == 0) ||
			(ended != nil && slices.Contains([]string{OutOfMemory, "StartError", "ContainerCannotRun"}, ended.Reason))
	}
	return false
}

// containerTrouble is what keeps one container from running, or "".
func containerTrouble(s corev1.ContainerStatus) string {
	failed := s.State.Terminated
	if failed == nil {
		failed = s.LastTerminationState.Terminated
	}
	switch w := s.State.Waiting; {
	case s.Ready:
		return ""
	case unpulled(s):
		return "ImagePullBackOff: " + s.Image + " cannot be pulled"
	case failed != nil && failed.Reason == OutOfMemory:
		return OutOfMemory // what it said last has nothing to do with that
	case failed != nil && failed.ExitCode != 0:
		return cmp.Or(LastWords(failed.Message), fmt.Sprintf("%s, exit code %d", failed.Reason, failed.ExitCode))
	case w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating":
		return strings.TrimSuffix(w.Reason+": "+LastLine(w.Message), ": ")
	}
	return ""
}

// OutOfMemory is the reason by which a kubelet says that a container was killed
// because it needed more memory than it may have.
const OutOfMemory = "OOMKilled"

// memoryOf adds the limit to the trouble of a container that needed more.
func memoryOf(p *corev1.Pod, s corev1.ContainerStatus) string {
	failed := LastEnd(s)
	if failed == nil || failed.Reason != OutOfMemory {
		return ""
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if limit, has := c.Resources.Limits[corev1.ResourceMemory]; has && c.Name == s.Name {
			return ": it needs more than its memory limit of " + limit.String()
		}
	}
	return ": its node has no memory left for it"
}

// LastWords is the line that tells why a container ended: the reason precedes
// the stack where it is a panic.
func LastWords(text string) string {
	lines := strings.Split(text, "\n")
	for _, mark := range []string{`"level":"fatal"`, `"level":"panic"`, "panic: ", "fatal error: "} {
		for _, line := range slices.Backward(lines) {
			if strings.Contains(line, mark) {
				return LastLine(logMessage(line))
			}
		}
	}
	return LastLine(text)
}

// logMessage is what a line of etcd's log says, without the time, so that it stays the
// same from one crash to the next; any other line is returned unchanged.
func logMessage(line string) string {
	var entry struct{ Msg, Error string }
	if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Msg == "" {
		return line
	}
	return strings.TrimSuffix(entry.Msg+": "+entry.Error, ": ")
}

// unpulled reports whether the container waits for an image that cannot be had.
func unpulled(s corev1.ContainerStatus) bool {
	w := s.State.Waiting
	return w != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}, w.Reason)
}

// LastLine keeps a message to one line of a bearable length.
func LastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := lines[len(lines)-1]
	const most = 300
	if len(line) > most {
		return line[:most] + "…"
	}
	return line
}

// PodQuota is the quota that the pod gives its member, in bytes; 0 where it leaves
// that to etcd. Before etcd 3.6 no member tells its own.
func PodQuota(p *corev1.Pod) int64 {
	for _, c := range p.Spec.Containers {
		for _, arg := range slices.Concat(c.Command, c.Args) {
			if text, found := strings.CutPrefix(arg, "--quota-backend-bytes="); found && c.Name == naming.ContainerEtcd {
				n, _ := strconv.ParseInt(text, 10, 64) // quorate has written it
				return n
			}
		}
	}
	return 0
}
