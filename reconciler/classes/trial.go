package classes

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// handMade is the provisioner of classes whose volumes people make.
const handMade = "kubernetes.io/no-provisioner"

// movesTo is the class that members' volumes are to change to and that none has yet, and how many are to; "" for none.
func movesTo(c desired.Cluster, rec *record.Record, claims []*corev1.PersistentVolumeClaim) (string, int) {
	storage := c.Spec.Storage
	if rec == nil || storage.ClassChange != schema.ClassChangeReplace || storage.StorageClassName == nil {
		return "", 0
	}
	members := 0
	for _, claim := range claims {
		_, member := rec.Members[naming.MemberOfClaim(c.Metadata.Name, claim.Name, rec.Claims())]
		if !member || claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil {
			continue
		}
		if is := claim.Spec.StorageClassName; is != nil && *is == *storage.StorageClassName {
			return "", 0
		}
		members++
	}
	if members == 0 {
		return "", 0
	}
	return *storage.StorageClassName, members
}

// Trial is what is known of the class that volumes are to change to; nothing is asked while none is.
func (r Reader) Trial(
	ctx context.Context, c desired.Cluster, rec *record.Record, claims []*corev1.PersistentVolumeClaim,
) (state.Trial, error) {
	class, members := movesTo(c, rec, claims)
	if class == "" {
		return state.Trial{}, nil
	}
	live, err := r.Kube.StorageV1().StorageClasses().Get(ctx, class, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return state.Trial{Problem: fmt.Sprintf("StorageClass %s does not exist", class)}, nil
	case apierrors.IsForbidden(err): // the trial tells
	case err != nil:
		return state.Trial{}, fmt.Errorf("read StorageClass %s: %w", class, err)
	case live.Provisioner == handMade:
		return r.available(ctx, c, class, members)
	}
	size := c.Spec.Storage.Size
	name := jobs.TrialName(c.Metadata.Name, class, size.Value())
	job, err := r.Jobs.Read(ctx, jobs.OfTrial(c), name)
	switch {
	case errors.Is(err, jobs.ErrForeign):
		return state.Trial{Problem: err.Error()}, nil
	case err != nil || job == nil:
		return state.Trial{}, err
	}
	pods, err := r.Jobs.Pods(ctx, c.Metadata.Namespace, name)
	return trialOf(job, pods), err
}

// trialOf is how far the Job is.
func trialOf(job *batchv1.Job, pods []corev1.Pod) state.Trial {
	t := state.Trial{State: state.TrialRunning, Why: jobs.Said(pods), Job: job.Name, Since: job.CreationTimestamp.Time}
	switch end := jobs.Finished(job); {
	case end == nil:
	case end.Type == batchv1.JobComplete:
		t.State = state.TrialDone
	case end.Reason == batchv1.JobReasonDeadlineExceeded: // its pods are gone, and what they said
		t.State, t.Why = state.TrialFailed, fmt.Sprintf("no pod had it within %s", jobs.TrialTimeout)
	default:
		t.State, t.Why = state.TrialFailed, cmp.Or(t.Why, end.Message, end.Reason)
	}
	return t
}

// available wants volumes that people have made to be there for all members that change: a trial would use one up.
func (r Reader) available(ctx context.Context, c desired.Cluster, class string, members int) (state.Trial, error) {
	list, err := r.Kube.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return state.Trial{Problem: fmt.Sprintf("people make the volumes of class %s, and quorate may not list "+
			"PersistentVolumes to see whether there are any; grant list on persistentvolumes", class)}, nil
	case err != nil:
		return state.Trial{}, fmt.Errorf("list the PersistentVolumes: %w", err)
	}
	free := 0
	for _, v := range list.Items {
		size := v.Spec.Capacity[corev1.ResourceStorage]
		ofClass := v.Spec.StorageClassName == class && size.Cmp(c.Spec.Storage.Size) >= 0
		if ofClass && v.Status.Phase == corev1.VolumeAvailable {
			free++
		}
	}
	if free < members {
		return state.Trial{Problem: fmt.Sprintf("people make the volumes of class %s, and %d of the %d PersistentVolumes "+
			"that its members need are available", class, free, members)}, nil
	}
	return state.Trial{State: state.TrialDone}, nil
}
