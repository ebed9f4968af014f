package reconciler

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/plan"
)

// observePod describes one pod.
func observePod(p *corev1.Pod) plan.Pod {
	pod := plan.Pod{
		Name: p.Name, Ordinal: int32(memberOrdinal(p.Name)), UID: string(p.UID),
		Template: p.Annotations[AnnotationTemplateHash], Version: p.Annotations[AnnotationVersion],
		Created: p.CreationTimestamp.Time, Terminating: p.DeletionTimestamp != nil,
		Quota: podQuota(p), Trouble: podTrouble(p),
		Unpulled: slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), unpulled),
	}
	for _, condition := range p.Status.Conditions {
		switch {
		case condition.Type != corev1.PodReady:
		case condition.Status == corev1.ConditionTrue:
			pod.Ready, pod.ReadySince = true, condition.LastTransitionTime.Time
		case condition.LastTransitionTime.After(etcdStarted(p)):
			pod.UnreadySince = condition.LastTransitionTime.Time
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil || s.RestartCount > 0 {
			pod.Ran = true
		}
	}
	return pod
}

// etcdStarted is when the etcd that runs in the pod was started; far in the future
// while none runs.
func etcdStarted(p *corev1.Pod) time.Time {
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == EtcdContainer && s.State.Running != nil {
			return s.State.Running.StartedAt.Time
		}
	}
	return time.Unix(1<<40, 0)
}

// podTrouble says why a pod does not run, or "" while it does or just starts. The
// words stay the same while the kubelet tries again and again.
func podTrouble(p *corev1.Pod) string {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return "not scheduled: " + condition.Message
		}
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if trouble := containerTrouble(s); trouble != "" {
			return s.Name + ": " + trouble
		}
	}
	return ""
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
	case failed != nil && failed.ExitCode != 0:
		return cmp.Or(lastLine(failed.Message), fmt.Sprintf("%s, exit code %d", failed.Reason, failed.ExitCode))
	case w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating":
		return strings.TrimSuffix(w.Reason+": "+lastLine(w.Message), ": ")
	}
	return ""
}

// unpulled says whether the container waits for an image that cannot be had.
func unpulled(s corev1.ContainerStatus) bool {
	w := s.State.Waiting
	return w != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}, w.Reason)
}

// lastLine keeps a message to one line of a bearable length.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := lines[len(lines)-1]
	const most = 300
	if len(line) > most {
		return line[:most] + "…"
	}
	return line
}

// podQuota is the quota that the pod gives its member, in bytes; 0 where it leaves
// that to etcd. Before etcd 3.6 no member tells its own.
func podQuota(p *corev1.Pod) int64 {
	for _, c := range p.Spec.Containers {
		for _, arg := range slices.Concat(c.Command, c.Args) {
			if text, found := strings.CutPrefix(arg, "--quota-backend-bytes="); found && c.Name == EtcdContainer {
				n, _ := strconv.ParseInt(text, 10, 64) // quorate has written it
				return n
			}
		}
	}
	return 0
}
