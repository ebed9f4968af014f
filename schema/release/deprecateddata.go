package release

import "sync"

// deprecatedRow is a set of flags that etcd takes out.
type deprecatedRow struct {
	names []string
	// deprecated and removed are the first releases in which they are so. The
	// removal may lie in a minor that the catalogue does not know yet.
	deprecated, removed Version
	// instead is what to write, and "" where the gate or the newer name of the
	// flag tells it.
	instead string
	source  string
}

// deprecatedRows lists the flags that etcd took out since 3.3, and those that it
// is about to. A flag that went without a warning was deprecated when it was
// removed. snapshot-count is not among them: 3.6.0 to 3.6.7 called it deprecated
// and 3.6.8 took that back (PR 21163).
//
//nolint:gochecknoglobals // A table that is never written to.
var deprecatedRows = sync.OnceValue(func() []deprecatedRow {
	v32, v34, v35, v36, v37, v38 := Version{3, 2, 0}, Version{3, 4, 0}, Version{3, 5, 0}, Version{3, 6, 0}, Version{3, 7, 0}, Version{3, 8, 0}
	return []deprecatedRow{
		// 2.1 deprecated them, which is before the first line here.
		{[]string{"ca-file"}, v32, v34, "write trusted-ca-file", "CHANGELOG-3.4.md v3.4.0, PR 9470"},
		{[]string{"peer-ca-file"}, v32, v34, "write peer-trusted-ca-file", "CHANGELOG-3.4.md v3.4.0, PR 9470"},

		{[]string{"debug"}, v34, v35, "write log-level: debug", "CHANGELOG-3.5.md v3.5.0, PR 10947"},
		{[]string{"log-output"}, v34, v35, "write log-outputs", "upgrade guide 3.5; CHANGELOG-3.4.md v3.4.0, PR 9624"},
		{[]string{"log-package-levels"}, v34, v35, "write log-level for the whole process", "upgrade guide 3.5"},
		{[]string{"experimental-backend-bbolt-freelist-type"}, v35, v35, "", "CHANGELOG-3.5.md v3.5.0"},
		{[]string{"next-cluster-version-compatible"}, v35, v35, "it serves the way back from 3.5 only, leave it out", "CHANGELOG-3.4.md v3.4.31, PR 17330"},

		{[]string{"enable-v2", "experimental-enable-v2v3"}, v35, v36, "the v2 API is gone, leave it out", "CHANGELOG-3.5.md v3.5.0, PR 12940; CHANGELOG-3.6.md v3.6.0-rc.0"},
		{
			[]string{
				"proxy", "proxy-dial-timeout", "proxy-failure-wait", "proxy-read-timeout", "proxy-refresh-interval", "proxy-write-timeout",
			}, v35, v36, "", "etcdmain/config.go of v3.5.35; CHANGELOG-3.6.md v3.6.0-rc.0",
		},

		// The help of 3.6 puts them off to 3.8, and that of 3.7.3 still names them.
		{
			[]string{"discovery", "discovery-proxy"},
			v36, v37,
			"write discovery-endpoints and discovery-token", "CHANGELOG-3.6.md v3.6.0-rc.0; CHANGELOG-3.7.md v3.7.0-rc.0, PR 20109; measured",
		},
		{
			[]string{
				"experimental-bootstrap-defrag-threshold-megabytes", "experimental-compact-hash-check-enabled",
				"experimental-compact-hash-check-time", "experimental-compaction-batch-limit",
				"experimental-compaction-sleep-interval", "experimental-corrupt-check-time",
				"experimental-distributed-tracing-address", "experimental-distributed-tracing-instance-id",
				"experimental-distributed-tracing-sampling-rate", "experimental-distributed-tracing-service-name",
				"experimental-downgrade-check-time", "experimental-enable-distributed-tracing",
				"experimental-enable-lease-checkpoint", "experimental-enable-lease-checkpoint-persist",
				"experimental-initial-corrupt-check", "experimental-memory-mlock",
				"experimental-peer-skip-client-san-verification", "experimental-snapshot-catchup-entries",
				"experimental-stop-grpc-service-on-defrag", "experimental-txn-mode-write-with-shared-buffer",
				"experimental-warning-apply-duration", "experimental-warning-unary-request-duration",
				"experimental-watch-progress-notify-interval",
			}, v36, v37, "", "upgrade guides 3.6 and 3.7; CHANGELOG-3.7.md v3.7.0-rc.0, PR 19959",
		},

		{[]string{"max-snapshots"}, v36, v38, "", "CHANGELOG-3.6.md v3.6.8, PR 21161; CHANGELOG-3.7.md v3.7.0-rc.0, PR 21160"},
		{[]string{"v2-deprecation"}, v36, v38, "leave it out, etcd ignores every value but write-only-skip-check", "etcdmain/config.go of v3.6.16 and v3.7.3"},
	}
})

// valueRow is a value that a flag no longer takes, although it is still there.
type valueRow struct {
	name, value string
	goneIn      Version
	instead     string
	source      string
}

// valueRows are the removed values.
func valueRows() []valueRow {
	return []valueRow{
		{"logger", "capnslog", Version{3, 5, 0}, "write zap or leave it out", "CHANGELOG-3.5.md v3.5.0"},
		{"v2-deprecation", "not-yet", Version{3, 6, 0}, "leave it out", "measured"},
	}
}

// addedValueRow is a value that a flag takes only from one patch of each line on.
type addedValueRow struct {
	name, value string
	since       []safeRow
}

// addedValueRows are those that quorate lets be set.
func addedValueRows() []addedValueRow {
	return []addedValueRow{
		{"v2-deprecation", SkipV2Check, []safeRow{
			{Version{3, 5, 0}, Version{3, 5, 32}, "CHANGELOG-3.5.md v3.5.32, PR 21897"},
			{Version{3, 6, 0}, Version{3, 6, 13}, "CHANGELOG-3.6.md v3.6.13, PR 21850"},
		}},
	}
}

// SkipV2Check is the one value of v2-deprecation that changes what a member does: it starts on data of the v2 API, which
// the upgrade guide from 3.5 to 3.6 allows where nobody needs that data.
const SkipV2Check = "write-only-skip-check"

// clashRow is a flag that etcd does not take together with its successor.
type clashRow struct{ old, kept, source string }

// clashRows lists them.
func clashRows() []clashRow {
	return []clashRow{
		{"log-output", "log-outputs", "measured with 3.4.34"},
	}
}
