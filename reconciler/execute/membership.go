package execute

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// listing is the member list read now, for an action that must not rest on an
// older one. Without a list of this very cluster there is no action.
func (e *Executor) listing(ctx context.Context, v *observe.View, rec record.Record) (state.Round, error) {
	round := e.Members.Round(ctx, v.Cluster.Key(), v.Endpoints, false)
	switch {
	case round.Problem != "":
		return round, fmt.Errorf("list the members: %s", round.Problem)
	case round.ClusterID != rec.ClusterID:
		return round, fmt.Errorf("%w: %s is recorded and %s answers", etcd.ErrOtherCluster, rec.ClusterID, round.ClusterID)
	}
	return round, nil
}

// addLearner has etcd add the member that the record says is joining, and writes
// its ID down. When the second is lost, the first finds the member by its address
// the next time.
func (e *Executor) addLearner(ctx context.Context, v *observe.View, a action.AddLearner) error {
	rec, err := e.Records.Get(ctx, v.Cluster.EtcdCluster)
	if err != nil {
		return err
	}
	j := rec.Joining
	switch {
	case j == nil || j.Member != a.Member:
		return state.ErrChanged
	case j.ID != "":
		return nil
	}
	id, err := e.Members.AddLearner(ctx, v.Cluster.Key(), rec.ClusterID, v.Voters(rec, ""), naming.PeerURL(v.Cluster.EtcdCluster, a.Member))
	if err != nil {
		return err
	}
	return e.noteIf(ctx, v, func(m *record.Record) bool { return m.LearnerIs(a.Member, id) })
}

// promoteMember records that the learner may be a voter, and has etcd make it
// one.
func (e *Executor) promoteMember(ctx context.Context, v *observe.View, a action.PromoteMember) error {
	rec, err := e.updateIf(ctx, v, func(m *record.Record) bool { return m.Promoting(a) })
	if err != nil {
		return err
	}
	return e.Members.PromoteMember(ctx, v.Cluster.Key(), rec.ClusterID, v.Voters(rec, ""), a.ID)
}

// DropLearner removes a learner, and never a voter: one that was promoted after
// all stays. What a lost cluster may have left on its volume is noted on the claim before
// the record lets the volume go, and never again: a person may have taken that off since.
func (e *Executor) dropLearner(ctx context.Context, v *observe.View, a action.DropLearner) error {
	rec, err := e.Records.Get(ctx, v.Cluster.EtcdCluster)
	if err != nil {
		return err
	}
	if j := rec.Joining; j != nil && j.Member == a.Member {
		url := naming.PeerURL(v.Cluster.EtcdCluster, a.Member)
		if err := e.Members.RemoveLearner(ctx, v.Cluster.Key(), rec.ClusterID, v.Voters(rec, ""), a.ID, url); err != nil {
			return err
		}
		if a.Keeps != "" {
			claim := v.ClaimName(a.Member)
			safe, err := markKept(ctx, e, v, claim, a.Keeps)
			if err != nil {
				return fmt.Errorf("note on volume claim %s what a recovery may keep there: %w", claim, err)
			}
			a.Retire = a.Retire && safe
		}
	}
	return e.noteIf(ctx, v, func(m *record.Record) bool { return m.DropLearner(a, e.Now()) })
}

// removeMember removes the member that the record says is leaving, when those that
// stay are a quorum by what they say now.
func (e *Executor) removeMember(ctx context.Context, v *observe.View, a action.RemoveMember) error {
	rec, err := e.Records.Get(ctx, v.Cluster.EtcdCluster)
	if err != nil {
		return err
	}
	l := rec.Leaving
	if l == nil || l.Member != a.Member || l.ID != a.ID {
		return state.ErrChanged
	}
	round, err := e.listing(ctx, v, rec)
	if err != nil {
		return fmt.Errorf("remove %s: %w", a.Member, err)
	}
	if danger := removalDanger(round, a.ID); danger != "" {
		return fmt.Errorf("remove %s: %s", a.Member, danger)
	}
	if l.Replace && !l.Serving && serves(v.Observed.Round(), &round, a.ID) {
		return fmt.Errorf("remove %s, which was taken for lost and serves: %w", a.Member, state.ErrChanged)
	}
	return e.Members.RemoveMember(ctx, v.Cluster.Key(), rec.ClusterID, v.Voters(rec, a.Member), a.ID)
}

// serves reports whether a member answers now, or may have been heard by the leader since
// the round that the decision was made on.
func serves(decided, now *state.Round, id string) bool {
	m, then := now.ByID(id), decided.ByID(id)
	if m == nil {
		return false
	}
	return m.Problem == "" || then == nil || now.HeardBy == "" || now.HeardBy != decided.HeardBy || m.Heard != then.Heard
}

// removalDanger returns why the members that stay would be no quorum without the
// one with the ID, or "". A learner does not count on either side.
func removalDanger(round state.Round, id string) string {
	voters, well := 0, 0
	for _, m := range round.Members {
		switch {
		case m.ID == id:
			continue
		case m.Learner:
			return fmt.Sprintf("%s is a learner, and the list changes one member at a time", m.ID)
		}
		voters++
		if m.Problem == "" && m.Leader != "" {
			well++
		}
	}
	if need := state.Quorum(voters); well < need {
		return fmt.Sprintf("of the %d voters that would stay only %d are well, and a quorum is %d", voters, well, need)
	}
	return ""
}

// CancelLeave keeps a member that etcd has not removed.
func (e *Executor) cancelLeave(ctx context.Context, v *observe.View, a action.CancelLeave) error {
	rec, err := e.Records.Get(ctx, v.Cluster.EtcdCluster)
	if err != nil {
		return err
	}
	round, err := e.listing(ctx, v, rec)
	if err != nil {
		return fmt.Errorf("keep %s: %w", a.Member, err)
	}
	if !lists(round, a.ID) {
		return state.ErrChanged
	}
	return e.noteIf(ctx, v, func(m *record.Record) bool { return m.CancelLeave(a) })
}

// EndLeave takes a member off the record when etcd's list is without it.
func (e *Executor) endLeave(ctx context.Context, v *observe.View, a action.EndLeave) error {
	rec, err := e.Records.Get(ctx, v.Cluster.EtcdCluster)
	if err != nil {
		return err
	}
	round, err := e.listing(ctx, v, rec)
	if err != nil {
		return fmt.Errorf("record that %s has left: %w", a.Member, err)
	}
	if lists(round, a.ID) {
		return state.ErrChanged
	}
	return e.noteIf(ctx, v, func(m *record.Record) bool { return m.EndLeave(a) })
}

// lists reports whether the member list has the ID.
func lists(round state.Round, id string) bool {
	return slices.ContainsFunc(round.Members, func(m state.Member) bool { return m.ID == id })
}

// resizeSet sets the number of pods and the partition, and nothing else of what
// quorate wants of the StatefulSet: its template stays.
func (e *Executor) resizeSet(ctx context.Context, v *observe.View, a action.ResizeSet) error {
	if v.Set == nil || string(v.Set.UID) != a.SetUID {
		return state.ErrChanged
	}
	if n := observe.Replicas(v.Set); n != a.From && n != a.To {
		return state.ErrChanged
	}
	keep, err := v.KeepTemplate()
	if err != nil {
		return err
	}
	return e.applySetAs(ctx, v, keep, a.To, a.Partition)
}

// deleteIdlePod deletes a pod that is no member's.
func (e *Executor) deleteIdlePod(ctx context.Context, v *observe.View, a action.DeletePod) error {
	rec, err := e.Records.Get(ctx, v.Cluster.EtcdCluster)
	if err != nil {
		return err
	}
	if rec.Members[a.Member] != "" && !rec.Deleted {
		return state.ErrChanged
	}
	return e.deletePod(ctx, v, a.Member, a.PodUID)
}

// DeletePod deletes exactly the pod that the decision was made on.
func (e *Executor) deletePod(ctx context.Context, v *observe.View, name, podUID string) error {
	uid := types.UID(podUID)
	err := e.Kube.CoreV1().Pods(v.Cluster.Metadata.Namespace).Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	return nil
}

// deleteVolume deletes the claim of a member that was removed, when neither the
// record nor etcd's list has it any more, and removes it from the retired ones.
func (e *Executor) deleteVolume(ctx context.Context, v *observe.View, a action.DeleteVolume) error {
	rec, err := e.Records.Get(ctx, v.Cluster.EtcdCluster)
	if err != nil {
		return err
	}
	if err := e.mayLoseVolume(ctx, v, rec, a.Member); err != nil {
		return err
	}
	if err := e.foundOwn(ctx, v, a.Member); err != nil {
		return err
	}
	if err := e.deleteClaim(ctx, v, a, rec); err != nil {
		return err
	}
	return e.note(ctx, v, func(m *record.Record) { delete(m.Retired, a.Member) })
}

// mayLoseVolume reports, as an error, why a member's volume may not be deleted. In a cluster
// that Git deletes, every volume may, and so may a claim without one where none ever formed.
func (e *Executor) mayLoseVolume(ctx context.Context, v *observe.View, rec record.Record, member string) error {
	if (rec.Deleted || !rec.Formed()) && v.Set == nil {
		return nil
	}
	joins := rec.Joining != nil && rec.Joining.Member == member && rec.Joining.ID != ""
	if rec.Members[member] != "" || joins {
		return state.ErrChanged
	}
	round, err := e.listing(ctx, v, rec)
	if err != nil {
		return fmt.Errorf("delete the volume of %s: %w", member, err)
	}
	if lists(round, rec.Retired[member]) {
		return fmt.Errorf("delete the volume of %s: etcd's list still has member %s", member, rec.Retired[member])
	}
	return nil
}

// foundOwn returns an error where the pod of a member has found another cluster's data on its
// volume.
func (e *Executor) foundOwn(ctx context.Context, v *observe.View, member string) error {
	live, err := kube.FoundOrNil(e.Kube.CoreV1().Pods(v.Cluster.Metadata.Namespace).Get(ctx, member, metav1.GetOptions{}))
	switch {
	case err != nil:
		return fmt.Errorf("read pod %s: %w", member, err)
	case live != nil && pods.Damage(live) == state.DamageForeign:
		return fmt.Errorf("delete the volume of %s: its guard reports that the data may be foreign: %s", member, pods.Trouble(live))
	}
	return nil
}

// deleteClaim deletes exactly the claim that the decision was made on, of a cluster
// that has formed only one that is known to hold what its members have left.
func (e *Executor) deleteClaim(ctx context.Context, v *observe.View, a action.DeleteVolume, rec record.Record) error {
	claims := e.Kube.CoreV1().PersistentVolumeClaims(v.Cluster.Metadata.Namespace)
	live, err := kube.FoundOrNil(claims.Get(ctx, a.Claim, metav1.GetOptions{}))
	switch {
	case err != nil:
		return fmt.Errorf("read the volume claim %s: %w", a.Claim, err)
	case live == nil:
		return nil
	case string(live.UID) != a.UID, a.Claim != v.ClaimName(a.Member), live.Labels[naming.LabelCluster] != v.Cluster.Metadata.Name:
		return state.ErrChanged
	case live.DeletionTimestamp != nil:
		return nil
	case !rec.Formed() && !rec.Deleted && live.Status.Phase == corev1.ClaimBound:
		return state.ErrChanged // there is a volume by now
	case live.Annotations[naming.AnnotationKeeps] != "" && !rec.Deleted && live.Status.Phase == corev1.ClaimBound:
		return state.ErrChanged // a recovery keeps something there
	case rec.Formed() && !v.Volume(live).Own():
		return fmt.Errorf("delete the volume claim %s: no member of this cluster was seen on it, so its data may be foreign", a.Claim)
	}
	err = claims.Delete(ctx, a.Claim, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &live.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the volume claim %s: %w", a.Claim, err)
	}
	return nil
}
