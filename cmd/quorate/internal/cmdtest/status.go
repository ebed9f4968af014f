package cmdtest

import "github.com/quorate/quorate/schema"

// Cluster returns the status of a cluster.
func Cluster(name string, phase schema.Phase, reason, message string) schema.Status {
	s := schema.NewStatus(schema.KindCluster, "shop", name, phase, reason, message)
	s.Status.Cluster = &schema.ClusterStatus{
		Version:  schema.VersionStatus{Wanted: "3.6.16", Lowest: "3.5.21", Highest: "3.6.16"},
		Replicas: schema.ReplicasStatus{Wanted: 3, Members: 3, Healthy: 2},
		Backups:  []schema.BackupStatus{{For: "3.6.16", URL: "s3://backups/a.db", Time: "2026-03-01T02:00:11Z"}},
	}
	return s
}

// Ready returns the status of a cluster that is as Git declares it.
func Ready(name string) schema.Status {
	return Cluster(name, schema.PhaseReady, "Idle", "the cluster is what Git says")
}

// Changed returns the status of a cluster that a commit has changed, with so many of
// its members done.
func Changed(commit, name string, phase schema.Phase, done int) schema.Status {
	s := Cluster(name, phase, "Because", "it is so")
	s.Status.Commit, s.Observed = commit, commit
	for i := range 3 {
		version := "3.5.21"
		if i < done {
			version = "3.6.16"
		}
		s.Status.Cluster.Members = append(s.Status.Cluster.Members, schema.MemberStatus{Version: version, Health: schema.HealthHealthy})
	}
	return s
}
