package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// ClusterStatus is a cluster as one pass shows it, without what the pass has measured: two
// passes between which nothing has happened give the same bytes.
func ClusterStatus(v *observe.View, p decision.Plan) schema.Status {
	phase, reason, message := phaseOf(p)
	m := v.Cluster.Metadata
	s := schema.NewStatus(schema.KindCluster, m.Namespace, m.Name, phase, reason, message)
	s.Observed = v.Cluster.Commit
	s.Status.Commit, s.Status.Accepted = commitOf(v)
	members := membersOf(v)
	s.Status.Cluster = &schema.ClusterStatus{
		Version:  versionStatus(v.Cluster.Spec.Version, members),
		Replicas: replicasStatus(v.Cluster.Spec.Replicas, members),
		Rollout:  rolloutStatus(v),
		Members:  members,
		Drift:    driftStatus(v, p),
		Hold:     holdStatus(p.Hold),
		Plan:     planStatus(p.Steps),

		Maintenance: windowsOf(v.Cluster.Spec.Maintenance),
	}
	for _, w := range p.Warnings {
		s.Status.Cluster.Warnings = append(s.Status.Cluster.Warnings, w.Text)
	}
	if v.Record != nil && v.Record.Backup != nil {
		s.Status.Cluster.Backups = []schema.BackupStatus{backupStatus(*v.Record.Backup)}
	}
	return s
}

// phaseOf returns how far the cluster is, why, and what about it.
func phaseOf(p decision.Plan) (phase schema.Phase, reason, message string) {
	switch h := p.Hold; {
	case h == nil && len(p.Steps) == 0:
		return schema.PhaseReady, "Idle", "the cluster is what Git says"
	case h == nil:
		return schema.PhaseReconciling, p.Steps[0].Action.Kind(), p.Steps[0].Steady()
	case h.Kind == decision.Waiting || h.Kind == decision.Confirm:
		return schema.PhaseReconciling, string(h.Kind), h.Steady()
	default:
		return schema.PhaseStalled, string(h.Kind), h.Steady()
	}
}

// commitOf is the one that declares what the cluster is or will become, and why it was let
// in. One that only changes others, or whose file cannot be read, brought nothing.
func commitOf(v *observe.View) (commit string, accepted schema.Acceptance) {
	if v.Record != nil && v.Record.Applied != nil && (v.Applied() || len(v.Cluster.Problems) > 0) {
		return v.Record.Applied.Commit, v.Record.Applied.Accepted
	}
	return v.Cluster.Commit, v.Cluster.Accepted
}

// membersOf are those of the last pass, and those of the record that it did not see.
func membersOf(v *observe.View) []schema.MemberStatus {
	var list []schema.MemberStatus
	seen := map[string]bool{}
	if n := len(v.Observed.Rounds); n > 0 {
		for _, m := range v.Observed.Rounds[n-1].Members {
			seen[m.Name] = true
			list = append(list, memberStatus(m))
		}
	}
	if v.Record != nil {
		for _, name := range slices.Sorted(maps.Keys(v.Record.Members)) {
			if !seen[name] {
				list = append(list, schema.MemberStatus{Name: name, ID: v.Record.Members[name], Health: schema.HealthUnknown})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b schema.MemberStatus) int { return naming.CompareMembers(a.Name, b.Name) })
	return list
}

func memberStatus(m state.Member) schema.MemberStatus {
	s := schema.MemberStatus{Name: m.Name, ID: m.ID, Version: m.Version, Health: schema.HealthHealthy}
	if m.Problem != "" || len(m.Errors) > 0 {
		s.Health = schema.HealthUnhealthy
	}
	switch {
	case m.Learner:
		s.Role = schema.RoleLearner
	case m.ID != "":
		s.Role, s.Leader = schema.RoleVoter, m.Leader == m.ID
	}
	return s
}

func versionStatus(wanted string, members []schema.MemberStatus) schema.VersionStatus {
	s := schema.VersionStatus{Wanted: wanted}
	var lowest, highest release.Version
	for _, m := range members {
		reported, err := release.Parse(m.Version)
		if err != nil {
			continue // it reports none
		}
		if s.Lowest == "" || release.Compare(reported, lowest) < 0 {
			lowest, s.Lowest = reported, m.Version
		}
		if s.Highest == "" || release.Compare(reported, highest) > 0 {
			highest, s.Highest = reported, m.Version
		}
	}
	return s
}

func replicasStatus(wanted int32, members []schema.MemberStatus) schema.ReplicasStatus {
	s := schema.ReplicasStatus{Wanted: wanted}
	for _, m := range members {
		if m.ID != "" && m.Role != schema.RoleLearner {
			s.Members++
		}
		if m.Health == schema.HealthHealthy {
			s.Healthy++
		}
	}
	return s
}

// rolloutStatus is how far a rollout is; nil where there is none.
func rolloutStatus(v *observe.View) *schema.RolloutStatus {
	if !rolls(v) {
		return nil
	}
	return &schema.RolloutStatus{Done: int32(upToDate(v)), Members: int32(len(v.Observed.Pods))}
}

// windowsOf puts the maintenance windows into words.
func windowsOf(list []schema.MaintenanceWindow) []string {
	var words []string
	for _, w := range list {
		words = append(words, fmt.Sprintf("%s for %s, %s", w.Schedule, w.Duration.Duration, cmp.Or(w.TimeZone, "UTC")))
	}
	return words
}

func holdStatus(h *decision.Hold) *schema.HoldStatus {
	if h == nil {
		return nil
	}
	return &schema.HoldStatus{Kind: string(h.Kind), Rule: h.Rule, Message: h.Message, Do: h.Do}
}

func planStatus(steps []decision.Step) []schema.StepStatus {
	list := make([]schema.StepStatus, len(steps))
	for i, s := range steps {
		list[i] = schema.StepStatus{Action: s.Action.String(), Reason: s.Reason, Undo: s.Undo.Text}
	}
	return list
}

func backupStatus(b record.Backup) schema.BackupStatus {
	return schema.BackupStatus{
		For: b.For, URL: desired.WithoutQuery(b.URL), Time: b.TakenAt.UTC().Format(time.RFC3339),
		ClusterID: b.ClusterID, Revision: b.Revision, Size: b.Size, SHA256: b.SHA256,
	}
}

// OrphanStatus is a cluster that no file names.
func OrphanStatus(namespace, name string) schema.Status {
	return schema.NewStatus(schema.KindCluster, namespace, name, schema.PhaseStalled, "Orphaned",
		orphanMessage+"; "+orphanDo)
}

// RestoreStatus is the restore that makes a cluster.
func RestoreStatus(v *observe.View, p decision.Plan, w desired.Restore) schema.Status {
	phase, reason, message := phaseOf(p)
	s := schema.RestoreStatus{Cluster: v.Cluster.Key(), Source: desired.SourceText(w.Source)}
	if begins := v.Desired.Restore; begins != nil && begins.Name == w.Name {
		s.Backup = begins.Chosen.Text
	}
	if v.Record != nil && v.Record.Restored != nil && v.Record.Restored.Name == w.Name {
		s.Backup = v.Record.Restored.Chosen
	}
	if v.Record != nil && v.Record.Restored != nil && v.Record.Restored.Name == w.Name && !v.Record.Restored.At.IsZero() {
		done := v.Record.Restored
		phase, reason, message = schema.PhaseReady, "Restored", "the cluster began with "+desired.WithoutQuery(done.Object)
		s.Time = done.At.UTC().Format(time.RFC3339)
	}
	status := schema.NewStatus(schema.KindRestore, v.Cluster.Metadata.Namespace, w.Name, phase, reason, message)
	status.Observed, status.Status.Restore = v.Cluster.Commit, &s
	status.Status.Commit, status.Status.Accepted = commitOf(v)
	return status
}
