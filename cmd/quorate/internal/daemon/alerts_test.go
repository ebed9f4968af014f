package daemon

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/test/needs"
)

// monitoring is where the rules and dashboards are.
const monitoring = root + "deploy/monitoring/"

// rule is an alert of rules.yaml.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	KeepFiring  string            `json:"keep_firing_for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type ruleFile struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

func readRules(t *testing.T) (all []rule) {
	t.Helper()
	text, err := os.ReadFile(monitoring + "rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file ruleFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// promtool runs Prometheus' own tool.
func promtool(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), needs.Program(t, "promtool"), args...).CombinedOutput()
	return string(out), err
}

// Prometheus accepts the rules.
func TestRulesAreValid(t *testing.T) {
	if out, err := promtool(t, "check", "rules", monitoring+"rules.yaml"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The rules for the operator are those for Prometheus.
func TestThePrometheusRuleIsGenerated(t *testing.T) {
	text, err := os.ReadFile(monitoring + "rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := yaml.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	object, err := yaml.Marshal(map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
		"metadata": map[string]any{"name": "quorate"}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, monitoring+"prometheusrule.yaml", "# Generated from rules.yaml; see there.\n"+string(object))
}

// alertCase is what Prometheus scrapes, a sample a minute, and how many alerts then fire.
type alertCase struct {
	alert, what string
	// series are the text forms with their values, as promtool expands them.
	series []string
	// fires has how many alerts fire, by the minute.
	fires map[int]int
}

// The phases of most cases: an hour without a fault, an hour with it, an hour without it.
const hourly = 60

// phases are the values of a series before, during and after the hour of the fault.
func phases(values ...string) string {
	for i, v := range values {
		more := hourly - 1 // which come after the first
		if v == "_" {
			more = hourly
		}
		values[i] = fmt.Sprintf("%sx%d", v, more)
	}
	return strings.Join(values, " ")
}

// onAndOff is 1 during the hour of the fault.
func onAndOff(series string) string { return series + " " + phases("0", "1", "0") }

// once fires at the end of the hour of the fault, and at the end of no other hour.
func once() map[int]int { return map[int]int{hourly - 1: 0, 2*hourly - 1: 1, 3*hourly - 1: 0} }

func never() map[int]int { return map[int]int{hourly - 1: 0, 2*hourly - 1: 0, 3*hourly - 1: 0} }

// from is when an alert fires that takes days.
func from(fires, clears int) map[int]int { return map[int]int{30: 0, fires: 1, clears: 0} }

const (
	orders = `etcd_namespace="shop",etcd_cluster="orders"`
	member = orders + `,pod="orders-0"`
)

// members is a series for each of three members: 1, except for the last ones during the fault.
func members(metric string, bad int, other string) (all []string) {
	for i := range 3 {
		during := "1"
		if i >= 3-bad {
			during = other
		}
		all = append(all, fmt.Sprintf("%s{%s,pod=\"orders-%d\"} %s", metric, orders, i, phases("1", during, "1")))
	}
	return all
}

// votes are a cluster's series of members that vote, with how many are healthy.
func votes(voting, quorum int, healthy string, more ...string) []string {
	return append([]string{
		fmt.Sprintf("quorate_cluster_voting_members{%s} %dx179", orders, voting), fmt.Sprintf("quorate_cluster_quorum_members{%s} %dx179", orders, quorum),
		`quorate_cluster_healthy_voting_members{` + orders + `} ` + healthy,
	}, more...)
}

func alertCases() []alertCase {
	row := func(alert, what string, fires map[int]int, series ...string) alertCase {
		return alertCase{alert, what, series, fires}
	}
	up := slices.Concat(members("up", 0, "1"), members("etcd_server_has_leader", 0, "1"))
	with := func(more []string, series ...string) []string { return append(slices.Clone(more), series...) }
	return []alertCase{
		row("QuorateAbsent", "it was killed", once(), `quorate_build_info{version="1"} `+phases("1", "_", "1")),
		row("QuorateNotLeading", "nobody has the lease", once(), `quorate_leader{pod="a"} `+phases("1", "0", "0"), `quorate_leader{pod="b"} `+phases("0", "0", "1")),
		row("QuorateShardsUnheld", "no daemon takes them", once(), `quorate_shards_unheld{pod="a"} `+phases("0", "2", "0"), `quorate_shards_unheld{pod="b"} `+phases("0", "3", "0")),
		row("QuorateShardsUnheld", "one is cut off", never(), `quorate_shards_unheld{pod="a"} `+phases("0", "2", "0"), `quorate_shards_unheld{pod="b"} `+phases("0", "0", "0")),
		row("QuorateClockSkew", "it is ahead", once(), `quorate_clock_skew_seconds{pod="a"} `+phases("0", "600", "0")),
		row("QuorateClockSkew", "it is behind", once(), `quorate_clock_skew_seconds{pod="a"} `+phases("0", "-61", "0")),
		row("QuorateClockSkew", "clocks differ a little", never(), `quorate_clock_skew_seconds{pod="a"} `+phases("0", "60", "-60")),
		row("QuorateStarved", "its limit is used up", map[int]int{59: 0, 70: 0, 90: 1, 119: 1, 150: 0}, `quorate_starved_seconds_total{pod="a"} 0x59 0+30x60 1800x119`, `quorate_starved_seconds_total{pod="b"} 0x239`),
		row("QuorateStarved", "a start takes a few minutes", never(), `quorate_starved_seconds_total{pod="a"} 0x59 0+30x8 240x171`),
		row("QuorateStarved", "a little", never(), `quorate_starved_seconds_total{pod="a"} 0+15x239`),
		row("QuoratePassesFailing", "a cluster", once(), `quorate_pass_consecutive_failures{`+orders+`} `+phases("0", "5", "0")),
		row("QuoratePassesFailing", "a backup", once(), `quorate_backup_pass_consecutive_failures{`+orders+`,schedule="",backup="before-sale"} `+phases("0", "5", "0")),
		row("QuoratePassesFailing", "two failures are a blip", never(), `quorate_pass_consecutive_failures{`+orders+`} `+phases("0", "2", "0")),
		row("QuorateNotObserving", "one cluster waits", once(), `quorate_oldest_look_seconds{pod="a"} `+phases("30", "960", "30"), `quorate_oldest_look_seconds{pod="b"} 0x179`),
		row("QuorateNotObserving", "those on hold are observed every five minutes", never(), `quorate_oldest_look_seconds{pod="a"} `+phases("30", "330", "30")),
		row("QuorateGitStale", "no read succeeds", once(), `quorate_git_last_success_timestamp_seconds{instance="a",pod="a"} 0+60x59 3540x59 7200+60x59`, `quorate_leader{instance="a",pod="a"} 1x179`, `quorate_git_interval_seconds{instance="a",pod="a"} 30x179`),
		row("QuorateGitStale", "it is read once an hour", never(), `quorate_git_last_success_timestamp_seconds{instance="a",pod="a"} 0+60x59 3540x59 7200+60x59`, `quorate_leader{instance="a",pod="a"} 1x179`, `quorate_git_interval_seconds{instance="a",pod="a"} 3600x179`),
		row("QuorateGitStale", "the one that waits reads nothing", never(), `quorate_git_last_success_timestamp_seconds{instance="b",pod="b"} 0x179`, `quorate_leader{instance="b",pod="b"} 0x179`, `quorate_git_interval_seconds{instance="b",pod="b"} 30x179`),
		row("QuorateGitHeld", "a signature", once(), onAndOff(`quorate_git_held{reason="signature"}`)),
		row("QuorateFileInvalid", "a file", once(), onAndOff(`quorate_git_file_errors`)),
		row("QuorateStatusPushFailing", "the branch is protected", once(), `quorate_status_consecutive_failures `+phases("0", "9", "0")),
		row("QuorateOrphan", "a file is gone", once(), onAndOff(`quorate_orphans`)),

		row("QuorateServingCertificateExpiring", "one process does not take the new one up", map[int]int{59: 0, 178: 1, 239: 0},
			`quorate_serving_certificate_expiry_timestamp_seconds{pod="a"} 9999999x59 90000x119 9999999x59`, `quorate_serving_certificate_expiry_timestamp_seconds{pod="b"} 9999999x239`),
		row("QuorateServingCertificateExpiring", "it is replaced within the hour", map[int]int{59: 0, 100: 0, 119: 0, 239: 0}, `quorate_serving_certificate_expiry_timestamp_seconds{pod="a"} 9999999x59 90000x49 9999999x129`),

		row("QuorateDrift", "it was put back at once", map[int]int{59: 0, 62: 1, 69: 1, 80: 0}, `quorate_drift_corrections_total{`+orders+`,kind="Service"} 0x59 1x119`),
		row("QuorateDrift", "it was put back by a daemon that was restarted", map[int]int{59: 0, 62: 1, 80: 0},
			`quorate_drift_corrections_total{`+orders+`,kind="Service",pod="a"} 3x59 _x119`, `quorate_drift_corrections_total{`+orders+`,kind="Service",pod="b"} _x59 0 1x119`),
		row("QuorateDrift", "it stays", once(), `quorate_cluster_drift_since_timestamp_seconds{`+orders+`} `+phases("_", "3600", "_")),
		row("QuorateDriftFight", "an autoscaler", once(), onAndOff(`quorate_cluster_drift_fights{`+orders+`}`)),
		row("QuoratePlanHeld", "by kind", once(), onAndOff(`quorate_cluster_hold{`+orders+`,kind="Refused"}`), `quorate_cluster_hold{`+orders+`,kind="Stopped"} 0x179`),
		row("QuoratePlanHeld", "what is awaited comes", never(), onAndOff(`quorate_cluster_hold{`+orders+`,kind="Waiting"}`)),
		row("QuorateActionStuck", "a restart", once(), `quorate_cluster_action_started_timestamp_seconds{`+orders+`,action="RestartMember"} `+phases("_", "3600", "_")),
		row("QuorateActionStuck", "a backup may take hours", never(), `quorate_cluster_action_started_timestamp_seconds{`+orders+`,action="TakeBackup"} `+phases("_", "3600", "_")),
		row("QuorateActionStuck", "a backup that never ends", from(450, 480), `quorate_cluster_action_started_timestamp_seconds{`+orders+`,action="TakeBackup"} _x59 3600x400 _x60`),
		row("QuorateRollStuck", "a third member does not follow", from(190, 260),
			`quorate_cluster_updated_members{`+orders+`} 0x59 1x149 3x100`, `quorate_cluster_roll_started_timestamp_seconds{`+orders+`} _x59 3600x149 _x100`, `quorate_cluster_hold{`+orders+`,kind="Waiting"} 0x310`),
		row("QuorateRollStuck", "it waits for its window", map[int]int{30: 0, 190: 0, 260: 0},
			`quorate_cluster_updated_members{`+orders+`} 0x59 1x149 3x100`, `quorate_cluster_roll_started_timestamp_seconds{`+orders+`} _x59 3600x149 _x100`, `quorate_cluster_hold{`+orders+`,kind="Waiting"} 1x310`),
		row("QuorateRollStuck", "quorate is restarted while a slow one moves", map[int]int{150: 0, 158: 0, 170: 0, 178: 0, 195: 1},
			`quorate_cluster_updated_members{`+orders+`,pod="a"} 0x59 1x59 2x29 stale`, `quorate_cluster_updated_members{`+orders+`,pod="b"} _x151 2x60`,
			`quorate_cluster_roll_started_timestamp_seconds{`+orders+`,pod="a"} _x60 3600x89 stale`, `quorate_cluster_roll_started_timestamp_seconds{`+orders+`,pod="b"} _x151 3600x60`),
		row("QuorateMemberUnhealthy", "one is missing", once(), `quorate_cluster_desired_members{`+orders+`} 3x179`, `quorate_cluster_healthy_members{`+orders+`} `+phases("3", "2", "3")),
		row("QuorateMemberUnhealthy", "those that Git adds wait for their turn", never(), `quorate_cluster_desired_members{`+orders+`} `+phases("3", "5", "5"), `quorate_cluster_healthy_members{`+orders+`} `+phases("3", "3", "5"),
			`quorate_cluster_hold{`+orders+`,kind="Waiting"} `+phases("0", "1", "0")),
		row("QuorateMemberUnhealthy", "one does not answer while quorate waits", once(), `quorate_cluster_voting_members{`+orders+`} 3x179`, `quorate_cluster_healthy_voting_members{`+orders+`} `+phases("3", "2", "3"),
			`quorate_cluster_hold{`+orders+`,kind="Waiting"} 1x179`),
		row("QuorateQuorumAtRisk", "two of three", once(), `quorate_cluster_voting_members{`+orders+`} 3x179`, `quorate_cluster_quorum_members{`+orders+`} 2x179`, `quorate_cluster_healthy_voting_members{`+orders+`} `+phases("3", "2", "3")),
		row("QuorateQuorumAtRisk", "a cluster of one is so by choice", never(), `quorate_cluster_voting_members{`+orders+`} 1x179`, `quorate_cluster_quorum_members{`+orders+`} 1x179`, `quorate_cluster_healthy_voting_members{`+orders+`} 1x179`),
		row("QuorateQuorumAtRisk", "a rollout that moves, as scrapes see it", never(), votes(3, 2, phases("3", "2", "3"),
			`quorate_cluster_updated_members{`+orders+`} 0x59 1+1x59 60x59`, `quorate_cluster_roll_started_timestamp_seconds{`+orders+`} `+phases("_", "3600", "_"))...),
		row("QuorateQuorumAtRisk", "a rollout that stands still", once(), votes(3, 2, phases("3", "2", "3"),
			`quorate_cluster_updated_members{`+orders+`} 0x59 1x119`, `quorate_cluster_roll_started_timestamp_seconds{`+orders+`} `+phases("_", "3600", "_"))...),
		row("QuorateQuorumLost", "one of three", once(), votes(3, 2, phases("3", "1", "3"))...),
		row("QuorateQuorumLost", "quorate cannot reach the members", never(), append(votes(3, 2, phases("3", "0", "3")), `quorate_cluster_hold{`+orders+`,kind="Unreachable"} `+phases("0", "1", "0"))...),
		row("QuoratePlanHeld", "quorate cannot reach the members", once(), onAndOff(`quorate_cluster_hold{`+orders+`,kind="Unreachable"}`)),
		row("QuorateQuorumLost", "the only member is away", once(), votes(1, 1, phases("1", "0", "1"))...),
		row("QuorateQuorumLost", "the only member restarts", map[int]int{59: 0, 61: 0, 62: 0, 63: 0, 64: 0, 66: 0, 70: 0}, votes(1, 1, "1x59 0x3 1x20")...),
		row("QuorateQuorumLost", "a cluster wakes up", map[int]int{59: 0, 62: 0, 65: 0, 68: 0, 75: 0}, `quorate_cluster_desired_members{`+orders+`} 0x59 3x40`,
			`quorate_cluster_voting_members{`+orders+`} 0x59 3x40`, `quorate_cluster_quorum_members{`+orders+`} 0x59 2x40`, `quorate_cluster_healthy_voting_members{`+orders+`} 0x65 3x40`),
		row("QuorateQuorumLost", "a cluster does not wake up", map[int]int{59: 0, 68: 0, 90: 1}, `quorate_cluster_desired_members{`+orders+`} 0x59 3x40`,
			`quorate_cluster_voting_members{`+orders+`} 0x59 3x40`, `quorate_cluster_quorum_members{`+orders+`} 0x59 2x40`, `quorate_cluster_healthy_voting_members{`+orders+`} 0x100`),
		row("QuorateQuorumLost", "a restart of quorate does not end it", map[int]int{59: 0, 80: 1, 101: 1, 103: 1, 110: 1, 140: 0},
			`quorate_cluster_voting_members{`+orders+`,pod="a"} 3x99 stale`, `quorate_cluster_quorum_members{`+orders+`,pod="a"} 2x99 stale`, `quorate_cluster_healthy_voting_members{`+orders+`,pod="a"} 3x59 1x39 stale`,
			`quorate_cluster_voting_members{`+orders+`,pod="b"} _x103 3x60`, `quorate_cluster_quorum_members{`+orders+`,pod="b"} _x103 2x60`, `quorate_cluster_healthy_voting_members{`+orders+`,pod="b"} _x103 1x20 3x40`),
		row("QuorateQuorumLost", "a cluster that sleeps needs none", never(), `quorate_cluster_voting_members{`+orders+`} `+phases("3", "0", "3"), `quorate_cluster_quorum_members{`+orders+`} `+phases("2", "0", "2"), `quorate_cluster_healthy_voting_members{`+orders+`} `+phases("3", "0", "3")),
		row("QuorateVersionMixed", "half an upgrade", from(230, 300), `quorate_member_info{`+orders+`,member="orders-0",version="3.6.16",state="Healthy",role="leader"} 1x320`,
			`quorate_member_info{`+orders+`,member="orders-1",version="3.6.16",state="Healthy",role="follower"} 1x59 _x180 1x80`, `quorate_member_info{`+orders+`,member="orders-1",version="3.6.12",state="Healthy",role="follower"} _x59 1x180 _x80`),
		row("QuorateDatabaseNearQuota", "at 70 % for information", once(), `quorate_member_database_bytes{`+orders+`,member="orders-0"} `+phases("10", "70", "10"), `quorate_member_quota_bytes{`+orders+`,member="orders-0"} 100x179`),
		row("QuorateDatabaseNearQuota", "at 80 % a warning, too", map[int]int{59: 0, 119: 2, 179: 0}, `quorate_member_database_bytes{`+orders+`,member="orders-0"} `+phases("10", "80", "10"), `quorate_member_quota_bytes{`+orders+`,member="orders-0"} 100x179`),
		row("QuorateDatabaseNearQuota", "at 90 % critical", map[int]int{59: 0, 119: 3, 179: 0}, `quorate_member_database_bytes{`+orders+`,member="orders-0"} `+phases("10", "90", "10"), `quorate_member_quota_bytes{`+orders+`,member="orders-0"} 100x179`),
		row("QuorateAlarm", "no space", once(), onAndOff(`quorate_member_alarm{`+orders+`,member="orders-0",alarm="NOSPACE"}`)),
		row("QuorateCertificateExpiring", "in a day", map[int]int{59: 0, 178: 1, 239: 0}, `quorate_certificate_expiry_timestamp_seconds{`+orders+`} 9999999x59 90000x119 9999999x59`),
		row("QuorateSuspended", "a cluster", from(1530, 1600), `quorate_cluster_mode{`+orders+`,mode="Observe"} 0x59 1x1499 0x100`),
		row("QuorateSuspended", "a schedule", from(1530, 1600), `quorate_backup_suspended{`+orders+`,schedule="nightly"} 0x59 1x1499 0x100`),
		row("QuorateEndOfLife", "an old minor", from(1530, 1600), `quorate_cluster_release_supported{`+orders+`} 1x59 0x1499 1x100`),

		row("QuorateBackupOverdue", "also where there was never one", once(), onAndOff(`quorate_backup_overdue{`+orders+`,schedule="nightly"}`), `quorate_backup_last_success_timestamp_seconds{`+orders+`,schedule="nightly"} 0x179`),
		row("QuorateBackupOverdue", "the cluster sleeps", never(), onAndOff(`quorate_backup_overdue{`+orders+`,schedule="nightly"}`), `quorate_cluster_desired_members{`+orders+`} `+phases("3", "0", "3")),
		row("QuorateBackupFailing", "a schedule", once(), `quorate_backup_consecutive_failures{`+orders+`,schedule="nightly",backup=""} `+phases("0", "2", "0")),
		row("QuorateBackupShrunk", "from 100 to 40", once(), `quorate_backup_last_success_size_bytes{`+orders+`,schedule="nightly"} `+phases("100", "40", "90")),
		row("QuorateBackupShrunk", "as much is gone from the database", once(), `quorate_backup_last_success_size_bytes{`+orders+`,schedule="nightly"} `+phases("100", "40", "90"), `quorate_member_database_in_use_bytes{`+orders+`,member="orders-0"} `+phases("90", "30", "80")),
		row("QuorateBackupShrunk", "a defragmentation", never(), `quorate_backup_last_success_size_bytes{`+orders+`,schedule="nightly"} `+phases("100", "40", "40"), `quorate_member_database_in_use_bytes{`+orders+`,member="orders-0"} 35x179`),
		row("QuorateDrillFailed", "a backup is bad", once(), onAndOff(`quorate_backup_drill_failed{`+orders+`,schedule="nightly"}`)),
		row("QuorateDrillOverdue", "nobody gets to it", from(450, 520), `quorate_backup_drill_due_timestamp_seconds{`+orders+`,schedule="nightly"} _x59 3600x420 _x60`),

		row("EtcdMemberDown", "one", once(), members("up", 1, "0")...),
		row("EtcdInsufficientMembers", "two are down", once(), append(members("up", 2, "0"), members("etcd_server_has_leader", 2, "_")...)...),
		row("EtcdInsufficientMembers", "no member has a leader", once(), append(members("up", 0, "1"), members("etcd_server_has_leader", 3, "0")...)...),
		row("EtcdInsufficientMembers", "one is down", never(), append(members("up", 1, "0"), members("etcd_server_has_leader", 1, "_")...)...),
		row("EtcdNoLeader", "one is cut off", once(), members("etcd_server_has_leader", 1, "0")...),
		row("EtcdLeaderChangesOften", "each minute", once(), `etcd_server_leader_changes_seen_total{`+member+`} 1x59 1+1x59 60x59`),
		row("EtcdReadsFailing", "although there is a leader", once(), with(up, `grpc_server_handled_total{`+member+`,grpc_method="Range",grpc_code="Unavailable"} 0x59 0+60x59 3540x59`, `grpc_server_handled_total{`+member+`,grpc_method="Range",grpc_code="OK"} 0+600x179`)...),
		row("EtcdReadsFailing", "a member without a leader has an alert of its own", never(), append(append(members("up", 0, "1"), members("etcd_server_has_leader", 3, "0")...),
			`grpc_server_handled_total{`+member+`,grpc_method="Range",grpc_code="Unavailable"} 0x59 0+60x59 3540x59`, `grpc_server_handled_total{`+member+`,grpc_method="Range",grpc_code="OK"} 0+600x179`)...),
		row("EtcdReadsFailing", "writes are apart", never(), with(up, `grpc_server_handled_total{`+member+`,grpc_method="Put",grpc_code="Unavailable"} 0x59 0+60x59 3540x59`, `grpc_server_handled_total{`+member+`,grpc_method="Range",grpc_code="OK"} 0+600x179`)...),
		row("EtcdWritesFailing", "no space", once(), with(up, `grpc_server_handled_total{`+member+`,grpc_method="Put",grpc_code="ResourceExhausted"} 0x59 0+60x59 3540x59`, `grpc_server_handled_total{`+member+`,grpc_method="Put",grpc_code="OK"} 0+600x179`)...),
		row("EtcdReadsSlow", "the leader is slow", once(), with(up, `etcd_server_slow_read_indexes_total{`+member+`} 0x59 0+60x59 3540x59`)...),
		row("EtcdWritesSlow", "large transactions", once(), with(up, `etcd_server_slow_apply_total{`+member+`} 0x59 0+60x59 3540x59`)...),
		row("EtcdProposalsFailing", "although there is a leader", once(), with(up, `etcd_server_proposals_failed_total{`+member+`} 0x59 0+60x59 3540x59`)...),
		row("EtcdProposalsPending", "they pile up", once(), `etcd_server_proposals_pending{`+member+`} `+phases("0", "100", "0")),
		row("EtcdPeerSlow", "between zones", once(), `etcd_network_peer_round_trip_time_seconds_bucket{`+member+`,To="b1",le="0.1"} 0+60x59 3540x59 3540+60x59`, `etcd_network_peer_round_trip_time_seconds_bucket{`+member+`,To="b1",le="1"} 0+60x179`, `etcd_network_peer_round_trip_time_seconds_bucket{`+member+`,To="b1",le="+Inf"} 0+60x179`),
		row("EtcdFsyncSlow", "a warning", once(), `etcd_disk_wal_fsync_duration_seconds_bucket{`+member+`,le="0.5"} 0+60x59 3540x59 3540+60x59`, `etcd_disk_wal_fsync_duration_seconds_bucket{`+member+`,le="1"} 0+60x179`, `etcd_disk_wal_fsync_duration_seconds_bucket{`+member+`,le="+Inf"} 0+60x179`),
		row("EtcdFsyncSlow", "critical as well", map[int]int{59: 0, 119: 2, 179: 0}, `etcd_disk_wal_fsync_duration_seconds_bucket{`+member+`,le="0.1"} 0+60x59 3540x59 3540+60x59`, `etcd_disk_wal_fsync_duration_seconds_bucket{`+member+`,le="1"} 0+60x59 3540x59 3540+60x59`, `etcd_disk_wal_fsync_duration_seconds_bucket{`+member+`,le="4"} 0+60x179`, `etcd_disk_wal_fsync_duration_seconds_bucket{`+member+`,le="+Inf"} 0+60x179`),
		row("EtcdCommitSlow", "a slow disk", once(), `etcd_disk_backend_commit_duration_seconds_bucket{`+member+`,le="0.25"} 0+60x59 3540x59 3540+60x59`, `etcd_disk_backend_commit_duration_seconds_bucket{`+member+`,le="1"} 0+60x179`, `etcd_disk_backend_commit_duration_seconds_bucket{`+member+`,le="+Inf"} 0+60x179`),
		row("EtcdDatabaseGrowing", "it will be full", map[int]int{59: 0, 359: 1, 700: 0}, `etcd_mvcc_db_total_size_in_bytes{`+member+`} 10x59 10+0.2x300 70x400`, `etcd_server_quota_backend_bytes{`+member+`} 100x800`),
		row("EtcdDatabaseGrowing", "the pod restarts with another address", map[int]int{59: 0, 299: 1, 330: 1},
			`etcd_mvcc_db_total_size_in_bytes{`+member+`,instance="1"} 10x59 10+0.2x240 stale`, `etcd_server_quota_backend_bytes{`+member+`,instance="1"} 100x300 stale`,
			`etcd_mvcc_db_total_size_in_bytes{`+member+`,instance="2"} _x303 58+0.2x100`, `etcd_server_quota_backend_bytes{`+member+`,instance="2"} _x303 100x100`),
		row("EtcdDatabaseGrowing", "a new member has got its data", map[int]int{70: 0, 90: 0, 119: 0, 150: 0, 185: 0, 240: 0}, `etcd_mvcc_db_total_size_in_bytes{`+member+`} _x60 1 70x200`, `etcd_server_quota_backend_bytes{`+member+`} _x60 100x201`),
		row("EtcdDatabaseFull", "nobody has looked", once(), `etcd_mvcc_db_total_size_in_bytes{`+member+`} `+phases("10", "96", "10"), `etcd_server_quota_backend_bytes{`+member+`} 100x179`),
		row("EtcdDatabaseFragmented", "three quarters are free", map[int]int{59: 0, 178: 1, 239: 0}, `etcd_mvcc_db_total_size_in_bytes{`+member+`} 4000000000x239`, `etcd_mvcc_db_total_size_in_use_in_bytes{`+member+`} 3000000000x59 1000000000x119 3000000000x59`),
	}
}

// 254: each alert fires where it should, does not before, and clears. One process of promtool tries all cases,
// because it takes longer to start than for most of them.
func TestEachAlertFiresAndClears(t *testing.T) {
	rules := readRules(t)
	args := []string{"test", "rules"}
	for _, c := range alertCases() {
		// The other rules would only take their time.
		own := slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return r.Alert != c.alert })
		args = append(args, writeYAML(t, "tests.yaml", map[string]any{
			"rule_files": []string{writeYAML(t, "rules.yaml", map[string]any{
				"groups": []any{map[string]any{"name": c.alert, "rules": own}},
			})},
			"evaluation_interval": "1m", "tests": []any{c.test()},
		}))
	}
	output, err := promtool(t, args...)
	results, failed := promtoolResults(output), false
	for i, c := range alertCases() {
		t.Run(c.alert+"/"+c.what, func(t *testing.T) {
			if result := strings.TrimSpace(results[args[i+2]]); result != "SUCCESS" {
				failed = true
				t.Errorf("promtool: %s", result)
			}
		})
	}
	if err != nil && !failed {
		t.Errorf("promtool: %v\n%s", err, output)
	}
}

// promtoolResults returns what "promtool test rules" has printed about each of its files: SUCCESS, or FAILED and why.
func promtoolResults(output string) map[string]string {
	results := map[string]string{}
	for _, section := range strings.Split(output, "Unit Testing:")[1:] {
		file, result, _ := strings.Cut(section, "\n")
		results[strings.TrimSpace(file)] = result
	}
	return results
}

// Each case has a result of its own, also where promtool ends in the midst.
func TestPromtoolResultsAreReadPerFile(t *testing.T) {
	got := promtoolResults("Unit Testing:  /a.yaml\n  SUCCESS\n\n" +
		"Unit Testing:  /b.yaml\n  FAILED:\n    expr: \"x\"\n\nUnit Testing:  /c.yaml\n")
	for file, want := range map[string]string{
		"/a.yaml": "SUCCESS", "/b.yaml": "FAILED:\n    expr: \"x\"", "/c.yaml": "", "/d.yaml": "",
	} {
		if strings.TrimSpace(got[file]) != want {
			t.Errorf("%s: %q, want %q", file, got[file], want)
		}
	}
}

// test is the case as promtool reads it.
func (c alertCase) test() map[string]any {
	var input, want []any
	for _, s := range c.series {
		at := strings.IndexByte(s, ' ')
		if brace := strings.LastIndexByte(s, '}'); brace > 0 {
			at = brace + 1
		}
		input = append(input, map[string]string{"series": s[:at], "values": s[at+1:]})
	}
	for _, minute := range slices.Sorted(maps.Keys(c.fires)) {
		want = append(want, map[string]any{
			"eval_time": fmt.Sprintf("%dm", minute), "expr": fmt.Sprintf(`count(ALERTS{alertname=%q,alertstate="firing"}) or vector(0)`, c.alert),
			"exp_samples": []any{map[string]any{"labels": "{}", "value": c.fires[minute]}},
		})
	}
	return map[string]any{"name": c.what, "interval": "1m", "input_series": input, "promql_expr_test": want}
}

// writeYAML writes a file that goes with the test.
func writeYAML(t *testing.T, name string, content any) (path string) {
	t.Helper()
	text, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// 252: no alert that rests on quorate's own series ends because quorate is restarted.
func TestAlertsOutliveARestart(t *testing.T) {
	for _, r := range readRules(t) {
		if want := strings.HasPrefix(r.Alert, "Quorate") && r.Alert != "QuorateAbsent"; (r.KeepFiring != "") != want {
			t.Errorf("%s: keep_firing_for is %q", r.Alert, r.KeepFiring)
		}
	}
}

// Each alert has a case in which it fires and clears.
func TestEachAlertHasACase(t *testing.T) {
	fires := map[string]bool{}
	for _, c := range alertCases() {
		for _, n := range c.fires {
			fires[c.alert] = fires[c.alert] || n > 0
		}
	}
	for _, r := range readRules(t) {
		if !fires[r.Alert] {
			t.Errorf("%s: no case in which it fires", r.Alert)
		}
	}
}

// The page on the status counts the rules.
func TestTheStatusPageCountsTheRules(t *testing.T) {
	text, err := os.ReadFile(root + "docs/status.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("has %d such rules", len(readRules(t))); !strings.Contains(string(text), want) {
		t.Errorf("docs/status.md does not say %q", want)
	}
}

// Each alert links to its runbook, which has commands.
func TestEachAlertHasARunbook(t *testing.T) {
	sections := runbookSections(t)
	known := map[string]bool{}
	for _, r := range readRules(t) {
		known[r.Alert] = true
		if want := "https://github.com/quorate/quorate/blob/main/docs/alerts.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		if len(commands(sections[r.Alert])) == 0 {
			t.Errorf("%s: docs/alerts.md has no section with commands", r.Alert)
		}
	}
	for name, body := range sections {
		if !known[name] && strings.HasPrefix(name, "Quorate") || strings.HasPrefix(name, "Etcd") && !known[name] {
			t.Errorf("docs/alerts.md has a section %s, which is not an alert", name)
		}
		for _, block := range commands(body) {
			check := exec.CommandContext(t.Context(), "bash", "-n")
			check.Stdin = strings.NewReader(block)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s\n%s", name, err, out, block)
			}
		}
	}
}

// commands are the blocks of a section that a shell runs.
func commands(section string) (blocks []string) {
	for _, found := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, found[1])
	}
	return blocks
}
