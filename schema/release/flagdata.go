package release

// flagGroup is a set of flags that came and went together. First holds the
// first release of each line that takes them: a flag that was brought to an
// older line in a patch is unknown to the patches before, and etcd exits with 2
// at a flag that it does not know.
type flagGroup struct {
	first []Version
	names []string
	// source tells where the first releases come from: the changelogs of their
	// lines, or a reading of the source at each tag.
	source string
}

// flagGroups lists every flag of etcd 3.2 to 3.7. "tags" are the flags registered
// in embed/config.go and etcdmain/config.go (server/embed, server/etcdmain from
// 3.5) at each release tag from v3.2.0 to v3.4.45, v3.5.35, v3.6.16 and v3.7.3.
// The whole is compared with the help of real binaries by test/release. Flags
// that etcd takes and ignores are left out, and so is "version".
func flagGroups() []flagGroup {
	return []flagGroup{
		{[]Version{{3, 2, 0}, {3, 3, 0}}, []string{
			"ca-file", "peer-ca-file",
		}, "tags; CHANGELOG-3.4.md v3.4.0, PR 9470"},
		{[]Version{{3, 2, 0}, {3, 3, 0}, {3, 4, 0}}, []string{
			"debug", "log-output", "log-package-levels",
		}, "tags; CHANGELOG-3.5.md v3.5.0"},
		{[]Version{{3, 2, 0}, {3, 3, 0}, {3, 4, 0}, {3, 5, 0}}, []string{
			"enable-v2", "proxy", "proxy-dial-timeout", "proxy-failure-wait", "proxy-read-timeout",
			"proxy-refresh-interval", "proxy-write-timeout",
		}, "tags; CHANGELOG-3.6.md v3.6.0-rc.0"},
		{[]Version{{3, 2, 0}, {3, 3, 0}, {3, 4, 0}, {3, 5, 0}, {3, 6, 0}}, []string{
			"discovery", "discovery-proxy",
		}, "tags; CHANGELOG-3.7.md v3.7.0-rc.0, PR 20109"},
		{[]Version{{3, 2, 0}, {3, 3, 0}, {3, 4, 0}, {3, 5, 0}, {3, 6, 0}, {3, 7, 0}}, []string{
			"advertise-client-urls", "auth-token", "auto-compaction-retention", "auto-tls", "cert-file",
			"client-cert-auth", "config-file", "cors", "data-dir", "discovery-fallback", "discovery-srv",
			"election-timeout", "enable-pprof", "force-new-cluster", "heartbeat-interval",
			"initial-advertise-peer-urls", "initial-cluster", "initial-cluster-state", "initial-cluster-token",
			"key-file", "listen-client-urls", "listen-peer-urls", "max-snapshots", "max-wals", "metrics",
			"name", "peer-auto-tls", "peer-cert-file", "peer-client-cert-auth", "peer-key-file",
			"peer-trusted-ca-file", "quota-backend-bytes", "snapshot-count", "strict-reconfig-check",
			"trusted-ca-file", "wal-dir",
		}, "tags"},
		{[]Version{{3, 2, 10}, {3, 3, 0}, {3, 4, 0}, {3, 5, 0}, {3, 6, 0}, {3, 7, 0}}, []string{
			"grpc-keepalive-interval", "grpc-keepalive-min-time", "grpc-keepalive-timeout", "max-request-bytes",
		}, "tags; CHANGELOG-3.3.md v3.3.0, PR 8535"},
		{[]Version{{3, 2, 19}, {3, 3, 4}, {3, 4, 0}, {3, 5, 0}, {3, 6, 0}, {3, 7, 0}}, []string{
			"initial-election-tick-advance",
		}, "CHANGELOG-3.2.md v3.2.19 and CHANGELOG-3.3.md v3.3.4, PR 9591"},
		{[]Version{{3, 2, 22}, {3, 3, 7}, {3, 4, 0}, {3, 5, 0}, {3, 6, 0}, {3, 7, 0}}, []string{
			"cipher-suites",
		}, "CHANGELOG-3.2.md v3.2.22 and CHANGELOG-3.3.md v3.3.7, PR 9801"},
		{[]Version{{3, 2, 28}, {3, 3, 16}, {3, 4, 0}, {3, 5, 0}, {3, 6, 0}}, []string{
			"experimental-peer-skip-client-san-verification",
		}, "CHANGELOG-3.2.md v3.2.28, PR 11195; CHANGELOG-3.3.md v3.3.16, PR 11196"},
		{[]Version{{3, 3, 0}, {3, 4, 0}, {3, 5, 0}}, []string{
			"experimental-enable-v2v3",
		}, "CHANGELOG-3.3.md v3.3.0, PR 8407"},
		{[]Version{{3, 3, 0}, {3, 4, 0}, {3, 5, 0}, {3, 6, 0}}, []string{
			"experimental-corrupt-check-time", "experimental-initial-corrupt-check",
		}, "CHANGELOG-3.3.md v3.3.0, PR 8420"},
		{[]Version{{3, 3, 0}, {3, 4, 0}, {3, 5, 0}, {3, 6, 0}, {3, 7, 0}}, []string{
			"auto-compaction-mode", "client-crl-file", "listen-metrics-urls", "max-txn-ops",
			"peer-cert-allowed-cn", "peer-crl-file",
		}, "tags; CHANGELOG-3.3.md v3.3.0"},
		{[]Version{{3, 3, 23}, {3, 4, 10}, {3, 5, 0}, {3, 6, 0}, {3, 7, 0}}, []string{
			"auth-token-ttl",
		}, "CHANGELOG-3.3.md v3.3.23 and CHANGELOG-3.4.md v3.4.10, PR 11980"},
		{[]Version{{3, 4, 0}}, []string{
			"experimental-backend-bbolt-freelist-type",
		}, "tags; CHANGELOG-3.5.md v3.5.0"},
		{[]Version{{3, 4, 0}, {3, 5, 0}, {3, 6, 0}}, []string{
			"experimental-compaction-batch-limit", "experimental-enable-lease-checkpoint",
		}, "tags; CHANGELOG-3.4.md v3.4.0, PR 11034"},
		{[]Version{{3, 4, 0}, {3, 5, 0}, {3, 6, 0}, {3, 7, 0}}, []string{
			"backend-batch-interval", "backend-batch-limit", "bcrypt-cost", "client-cert-allowed-hostname",
			"discovery-srv-name", "enable-grpc-gateway", "host-whitelist", "log-level", "log-outputs", "logger",
			"peer-cert-allowed-hostname", "pre-vote",
		}, "tags; CHANGELOG-3.4.md v3.4.0"},
		{[]Version{{3, 4, 10}, {3, 5, 0}, {3, 6, 0}, {3, 7, 0}}, []string{
			"unsafe-no-fsync",
		}, "CHANGELOG-3.4.md v3.4.10, PR 11946"},
		{[]Version{{3, 4, 11}, {3, 5, 0}, {3, 6, 0}}, []string{
			"experimental-watch-progress-notify-interval",
		}, "CHANGELOG-3.4.md v3.4.11, PR 12216"},
		{[]Version{{3, 4, 16}, {3, 5, 0}, {3, 6, 0}}, []string{
			"experimental-warning-apply-duration",
		}, "CHANGELOG-3.4.md v3.4.16, PR 12448"},
		{[]Version{{3, 4, 20}, {3, 5, 2}, {3, 6, 0}}, []string{
			"experimental-enable-lease-checkpoint-persist",
		}, "CHANGELOG-3.4.md v3.4.20, PR 14253; CHANGELOG-3.5.md v3.5.2, PR 13508"},
		{[]Version{{3, 4, 20}, {3, 5, 5}, {3, 6, 0}, {3, 7, 0}}, []string{
			"max-concurrent-streams",
		}, "CHANGELOG-3.4.md v3.4.20, PR 14251; CHANGELOG-3.5.md v3.5.5, PR 14219"},
		{[]Version{{3, 4, 25}, {3, 5, 8}, {3, 6, 0}, {3, 7, 0}}, []string{
			"listen-client-http-urls", "tls-max-version", "tls-min-version",
		}, "CHANGELOG-3.4.md v3.4.25, PR 15486 and 15620; CHANGELOG-3.5.md v3.5.8, PR 15483 and 15589"},
		{[]Version{{3, 4, 31}}, []string{
			"next-cluster-version-compatible",
		}, "CHANGELOG-3.4.md v3.4.31, PR 17330"},
		{[]Version{{3, 5, 0}, {3, 6, 0}}, []string{
			"experimental-bootstrap-defrag-threshold-megabytes", "experimental-distributed-tracing-address",
			"experimental-distributed-tracing-instance-id", "experimental-distributed-tracing-service-name",
			"experimental-downgrade-check-time", "experimental-enable-distributed-tracing",
			"experimental-memory-mlock", "experimental-txn-mode-write-with-shared-buffer",
		}, "tags; CHANGELOG-3.5.md v3.5.0"},
		{[]Version{{3, 5, 0}, {3, 6, 0}, {3, 7, 0}}, []string{
			"backend-bbolt-freelist-type", "client-cert-file", "client-key-file", "enable-log-rotation",
			"log-rotation-config-json", "peer-client-cert-file", "peer-client-key-file", "raft-read-timeout",
			"raft-write-timeout", "self-signed-cert-validity", "socket-reuse-address", "socket-reuse-port",
			"v2-deprecation",
		}, "tags; CHANGELOG-3.5.md v3.5.0"},
		{[]Version{{3, 5, 5}, {3, 6, 0}}, []string{
			"experimental-compact-hash-check-enabled", "experimental-compact-hash-check-time",
		}, "CHANGELOG-3.5.md v3.5.5, issue 14039"},
		{[]Version{{3, 5, 11}, {3, 6, 0}}, []string{
			"experimental-distributed-tracing-sampling-rate",
		}, "tags; CHANGELOG-3.5.md v3.5.11"},
		{[]Version{{3, 5, 14}, {3, 6, 0}}, []string{
			"experimental-snapshot-catchup-entries", "experimental-stop-grpc-service-on-defrag",
		}, "tags; CHANGELOG-3.5.md v3.5.14, PR 17914"},
		{[]Version{{3, 5, 16}, {3, 6, 0}}, []string{
			"experimental-compaction-sleep-interval",
		}, "CHANGELOG-3.5.md v3.5.16, PR 18514"},
		{[]Version{{3, 6, 0}}, []string{
			"experimental-warning-unary-request-duration",
		}, "CHANGELOG-3.6.md v3.6.0-rc.0, PR 14414"},
		{[]Version{{3, 6, 0}, {3, 7, 0}}, []string{
			"bootstrap-defrag-threshold-megabytes", "compact-hash-check-time", "compaction-batch-limit",
			"compaction-sleep-interval", "corrupt-check-time", "discovery-cacert", "discovery-cert",
			"discovery-dial-timeout", "discovery-endpoints", "discovery-insecure-skip-tls-verify",
			"discovery-insecure-transport", "discovery-keepalive-time", "discovery-keepalive-timeout",
			"discovery-key", "discovery-password", "discovery-request-timeout", "discovery-token",
			"discovery-user", "distributed-tracing-address", "distributed-tracing-instance-id",
			"distributed-tracing-sampling-rate", "distributed-tracing-service-name", "downgrade-check-time",
			"enable-distributed-tracing", "feature-gates", "log-format", "max-learners", "memory-mlock",
			"peer-skip-client-san-verification", "snapshot-catchup-entries", "warning-apply-duration",
			"warning-unary-request-duration", "watch-progress-notify-interval",
		}, "tags; upgrade guide 3.6"},
	}
}
