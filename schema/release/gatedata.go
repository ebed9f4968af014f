package release

import "sync"

// featureGatesFlag lists feature gates, from 3.6 on.
const featureGatesFlag = "feature-gates"

// gateRow is a feature gate and the flag that it was before 3.6.
type gateRow struct {
	Gate
	// flag is "" for a gate that never was a flag.
	flag string
	// since is the first release with the gate.
	since  Version
	source string
}

// gateRows are the feature gates, sorted by name. None has changed its stage or
// its default so far. The sources are files of etcd at v3.6.16 and v3.7.3.
//
//nolint:gochecknoglobals // A table that is never written to.
var gateRows = sync.OnceValue(func() []gateRow {
	v36, v37 := Version{3, 6, 0}, Version{3, 7, 0}
	const (
		features = "server/features/etcd_features.go"
		all      = "pkg/featuregate/feature_gate.go"
	)
	return []gateRow{
		{Gate{"AllAlpha", Alpha, false}, "", v36, all},
		{Gate{"AllBeta", Beta, false}, "", v36, all},
		{Gate{"CompactHashCheck", Alpha, false}, "experimental-compact-hash-check-enabled", v36, features + ", PR 14120"},
		{Gate{"FastLeaseKeepAlive", Beta, true}, "", v37, features + ", PR 20589"},
		{Gate{"InitialCorruptCheck", Alpha, false}, "experimental-initial-corrupt-check", v36, features + ", PR 10524"},
		{Gate{"LeaseCheckpoint", Alpha, false}, "experimental-enable-lease-checkpoint", v36, features + ", PR 13508"},
		{Gate{"LeaseCheckpointPersist", Alpha, false}, "experimental-enable-lease-checkpoint-persist", v36, features + ", PR 13508"},
		{Gate{"PriorityRequest", Alpha, false}, "", v37, features + ", PR 20492"},
		{Gate{"SetMemberLocalAddr", Alpha, false}, "", v36, features + ", PR 17661"},
		{Gate{"StopGRPCServiceOnDefrag", Alpha, false}, "experimental-stop-grpc-service-on-defrag", v36, features + ", PR 18279"},
		{Gate{"TxnModeWriteWithSharedBuffer", Beta, true}, "experimental-txn-mode-write-with-shared-buffer", v36, features + ", PR 12896"},
	}
})
