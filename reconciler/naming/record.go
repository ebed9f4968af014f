package naming

import (
	"github.com/quorate/quorate/reconciler/guard"
)

// The keys of a record's ConfigMap. The record is the truth; the others are
// made from it, in the form in which etcd's environment wants them.
const (
	KeyRecord         = guard.RecordFile
	KeyInitialCluster = "initial-cluster"
	KeyInitialState   = "initial-cluster-state"
	KeyInitialToken   = "initial-cluster-token"
)
