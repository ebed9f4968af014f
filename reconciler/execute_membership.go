package reconciler

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/reconciler/plan"
)

// executeMembership carries out what changes who is a member.
func (r *Reconciler) executeMembership(ctx context.Context, v *view, action plan.Action) error {
	switch a := action.(type) {
	case plan.BeginJoin:
		return r.noteMembership(ctx, v, func(m *Record) bool { return m.beginJoin(a, r.now()) })
	case plan.AddLearner:
		return r.addLearner(ctx, v, a)
	case plan.PromoteMember:
		return r.promoteMember(ctx, v, a)
	case plan.EndJoin:
		return r.noteMembership(ctx, v, func(m *Record) bool { return m.endJoin(a) })
	case plan.DropLearner:
		return r.dropLearner(ctx, v, a)
	case plan.BeginLeave:
		return r.noteMembership(ctx, v, func(m *Record) bool { return m.beginLeave(a, r.now()) })
	case plan.CancelLeave:
		return r.cancelLeave(ctx, v, a)
	case plan.RemoveMember:
		return r.removeMember(ctx, v, a)
	case plan.EndLeave:
		return r.endLeave(ctx, v, a)
	case plan.EndReplace:
		return r.noteMembership(ctx, v, func(m *Record) bool { return m.endReplace(a) })
	case plan.ResizeSet:
		return r.resizeSet(ctx, v, a)
	case plan.DeletePod:
		return r.deleteIdlePod(ctx, v, a)
	case plan.DeleteVolume:
		return r.deleteVolume(ctx, v, a)
	default:
		return fmt.Errorf("%s changes no member", action)
	}
}

// noteMembership changes the live record, where change finds what it rests on;
// where it does not, it returns false and the record stays.
func (r *Reconciler) noteMembership(ctx context.Context, v *view, change func(*Record) bool) error {
	fits := true
	err := r.updateRecord(ctx, v, func(record *Record) {
		before := *record
		if fits = change(record); !fits {
			*record = before
		}
	})
	if !fits {
		return errChanged
	}
	return err
}

// liveRecord reads the record past the caches, for an action that rests on it.
func (r *Reconciler) liveRecord(ctx context.Context, v *view) (Record, error) {
	c := v.cluster.EtcdCluster
	live, err := r.kube.CoreV1().ConfigMaps(c.Metadata.Namespace).Get(ctx, RecordName(c), metav1.GetOptions{})
	if err != nil {
		return Record{}, fmt.Errorf("read the record: %w", err)
	}
	return ReadRecord(live)
}

// listing is a look at the members now, for an action that must not rest on an
// older one. Without a list of this very cluster there is no action.
func (r *Reconciler) listing(ctx context.Context, v *view, record Record) (plan.Round, error) {
	round := r.etcd.Round(ctx, v.cluster.Key(), v.endpoints, false)
	switch {
	case round.Problem != "":
		return round, fmt.Errorf("list the members: %s", round.Problem)
	case round.ClusterID != record.ClusterID:
		return round, fmt.Errorf("%w: %s is recorded and %s answers", ErrOtherCluster, record.ClusterID, round.ClusterID)
	}
	return round, nil
}

// voters are the endpoints of the members that the record lists, who may be asked
// for a change of the member list.
func (v *view) voters(record Record, except string) []Endpoint {
	return slices.DeleteFunc(slices.Clone(v.endpoints), func(e Endpoint) bool {
		return record.Members[e.Member] == "" || e.Member == except
	})
}

// addLearner has etcd add the member that the record says is joining, and writes
// its ID down. When the second is lost, the first finds the member by its address
// the next time.
func (r *Reconciler) addLearner(ctx context.Context, v *view, a plan.AddLearner) error {
	record, err := r.liveRecord(ctx, v)
	if err != nil {
		return err
	}
	j := record.Joining
	switch {
	case j == nil || j.Member != a.Member:
		return errChanged
	case j.ID != "":
		return nil
	}
	id, err := r.etcd.AddLearner(ctx, v.cluster.Key(), record.ClusterID, v.voters(record, ""), PeerURL(v.cluster.EtcdCluster, a.Member))
	if err != nil {
		return err
	}
	return r.noteMembership(ctx, v, func(m *Record) bool { return m.learnerIs(a.Member, id) })
}

// promoteMember writes down that the learner may be a voter, and has etcd make it
// one.
func (r *Reconciler) promoteMember(ctx context.Context, v *view, a plan.PromoteMember) error {
	if err := r.noteMembership(ctx, v, func(m *Record) bool { return m.promoting(a) }); err != nil {
		return err
	}
	record, err := r.liveRecord(ctx, v)
	if err != nil {
		return err
	}
	return r.etcd.PromoteMember(ctx, v.cluster.Key(), record.ClusterID, v.voters(record, ""), a.ID)
}

// dropLearner removes a learner, and never a voter: one that was promoted after
// all stays.
func (r *Reconciler) dropLearner(ctx context.Context, v *view, a plan.DropLearner) error {
	record, err := r.liveRecord(ctx, v)
	if err != nil {
		return err
	}
	if j := record.Joining; j != nil && j.Member == a.Member {
		url := PeerURL(v.cluster.EtcdCluster, a.Member)
		if err := r.etcd.RemoveLearner(ctx, v.cluster.Key(), record.ClusterID, v.voters(record, ""), a.ID, url); err != nil {
			return err
		}
	}
	return r.noteMembership(ctx, v, func(m *Record) bool { return m.dropLearner(a, r.now()) })
}

// removeMember removes the member that the record says is leaving, when those who
// stay are a quorum by what they say now.
func (r *Reconciler) removeMember(ctx context.Context, v *view, a plan.RemoveMember) error {
	record, err := r.liveRecord(ctx, v)
	if err != nil {
		return err
	}
	if l := record.Leaving; l == nil || l.Member != a.Member || l.ID != a.ID {
		return errChanged
	}
	round, err := r.listing(ctx, v, record)
	if err != nil {
		return fmt.Errorf("remove %s: %w", a.Member, err)
	}
	if danger := removalDanger(round, a.ID); danger != "" {
		return fmt.Errorf("remove %s: %s", a.Member, danger)
	}
	return r.etcd.RemoveMember(ctx, v.cluster.Key(), record.ClusterID, v.voters(record, a.Member), a.ID)
}

// removalDanger says why the members that stay would be no quorum without the
// one with the ID, or "". A learner does not count on either side.
func removalDanger(round plan.Round, id string) string {
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
	if need := voters/2 + 1; well < need {
		return fmt.Sprintf("of the %d voters that would stay only %d are well, and a quorum is %d", voters, well, need)
	}
	return ""
}

// cancelLeave keeps a member that etcd has not removed.
func (r *Reconciler) cancelLeave(ctx context.Context, v *view, a plan.CancelLeave) error {
	record, err := r.liveRecord(ctx, v)
	if err != nil {
		return err
	}
	round, err := r.listing(ctx, v, record)
	if err != nil {
		return fmt.Errorf("keep %s: %w", a.Member, err)
	}
	if !lists(round, a.ID) {
		return errChanged
	}
	return r.noteMembership(ctx, v, func(m *Record) bool { return m.cancelLeave(a) })
}

// endLeave takes a member off the record when etcd's list is without it.
func (r *Reconciler) endLeave(ctx context.Context, v *view, a plan.EndLeave) error {
	record, err := r.liveRecord(ctx, v)
	if err != nil {
		return err
	}
	round, err := r.listing(ctx, v, record)
	if err != nil {
		return fmt.Errorf("record that %s has left: %w", a.Member, err)
	}
	if lists(round, a.ID) {
		return errChanged
	}
	return r.noteMembership(ctx, v, func(m *Record) bool { return m.endLeave(a) })
}

// lists says whether the member list has the ID.
func lists(round plan.Round, id string) bool {
	return slices.ContainsFunc(round.Members, func(m plan.Member) bool { return m.ID == id })
}

// resizeSet sets the number of pods and the partition, and nothing else of what
// quorate wants of the StatefulSet: its template stays.
func (r *Reconciler) resizeSet(ctx context.Context, v *view, a plan.ResizeSet) error {
	if v.set == nil || string(v.set.UID) != a.SetUID {
		return errChanged
	}
	if n := replicasOf(v.set); n != a.From && n != a.To {
		return errChanged
	}
	keep, err := v.keepTemplate()
	if err != nil {
		return err
	}
	spec := *keep.Spec
	keep.Spec = spec.WithReplicas(a.To)
	return r.applySetAs(ctx, v, keep, a.Partition)
}

// deleteIdlePod deletes the pod of somebody who is no member.
func (r *Reconciler) deleteIdlePod(ctx context.Context, v *view, a plan.DeletePod) error {
	record, err := r.liveRecord(ctx, v)
	if err != nil {
		return err
	}
	if record.Members[a.Member] != "" && !record.Deleted {
		return errChanged
	}
	return r.deletePod(ctx, v, a.Member, a.PodUID)
}

// deletePod deletes exactly the pod that the decision was made on.
func (r *Reconciler) deletePod(ctx context.Context, v *view, name, podUID string) error {
	uid := types.UID(podUID)
	err := r.kube.CoreV1().Pods(v.cluster.Metadata.Namespace).Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	return nil
}

// deleteVolume deletes the claim of a member that was removed, when neither the
// record nor etcd's list has it any more, and strikes it off the retired ones.
func (r *Reconciler) deleteVolume(ctx context.Context, v *view, a plan.DeleteVolume) error {
	record, err := r.liveRecord(ctx, v)
	if err != nil {
		return err
	}
	if err := r.mayLoseVolume(ctx, v, record, a.Member); err != nil {
		return err
	}
	if err := r.foundOwn(ctx, v, a.Member); err != nil {
		return err
	}
	if err := r.deleteClaim(ctx, v, a, record.Formed()); err != nil {
		return err
	}
	return r.noteMembership(ctx, v, func(m *Record) bool {
		delete(m.Retired, a.Member)
		return true
	})
}

// mayLoseVolume says whether nobody needs a member's volume. In a cluster that is
// being deleted nobody does, by Git's word.
func (r *Reconciler) mayLoseVolume(ctx context.Context, v *view, record Record, member string) error {
	if record.Deleted && v.set == nil {
		return nil
	}
	joins := record.Joining != nil && record.Joining.Member == member && record.Joining.ID != ""
	if record.Members[member] != "" || joins {
		return errChanged
	}
	round, err := r.listing(ctx, v, record)
	if err != nil {
		return fmt.Errorf("delete the volume of %s: %w", member, err)
	}
	if lists(round, record.Retired[member]) {
		return fmt.Errorf("delete the volume of %s: etcd's list still has member %s", member, record.Retired[member])
	}
	return nil
}

// foundOwn says whether the pod of a member, where there is one, has found nobody
// else's data on its volume.
func (r *Reconciler) foundOwn(ctx context.Context, v *view, member string) error {
	live, err := foundOrNil(r.kube.CoreV1().Pods(v.cluster.Metadata.Namespace).Get(ctx, member, metav1.GetOptions{}))
	switch {
	case err != nil:
		return fmt.Errorf("read pod %s: %w", member, err)
	case live != nil && podDamage(live) == plan.DamageForeign:
		return fmt.Errorf("delete the volume of %s: its guard says that the data may be somebody else's: %s", member, podTrouble(live))
	}
	return nil
}

// deleteClaim deletes exactly the claim that the decision was made on, of a cluster
// that has formed only one that is known to hold what its members have left.
func (r *Reconciler) deleteClaim(ctx context.Context, v *view, a plan.DeleteVolume, formed bool) error {
	claims := r.kube.CoreV1().PersistentVolumeClaims(v.cluster.Metadata.Namespace)
	live, err := foundOrNil(claims.Get(ctx, a.Claim, metav1.GetOptions{}))
	switch {
	case err != nil:
		return fmt.Errorf("read the volume claim %s: %w", a.Claim, err)
	case live == nil:
		return nil
	case string(live.UID) != a.UID, a.Claim != v.claimName(a.Member), live.Labels[LabelCluster] != v.cluster.Metadata.Name:
		return errChanged
	case live.DeletionTimestamp != nil:
		return nil
	case formed && !v.volume(live).Own():
		return fmt.Errorf("delete the volume claim %s: nobody has seen a member of this cluster on it, so that its data may be somebody else's", a.Claim)
	}
	err = claims.Delete(ctx, a.Claim, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &live.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the volume claim %s: %w", a.Claim, err)
	}
	return nil
}
