package state

import "time"

// Trial is what is known of the storage class that members are to change to: a volume of it is made, for nobody, before
// a member gives its own up for one.
type Trial struct {
	State TrialState
	// Problem is why the class can make no volumes, whatever is tried; "" where none is known.
	Problem string
	// Why is what the volume, or the pod that mounts it, waits for, and Job the name of the Job that tries.
	Why, Job string
	Since    time.Time
}

// TrialState is how far a trial is.
type TrialState string

// The states of a trial.
const (
	TrialNone    TrialState = ""
	TrialRunning TrialState = "running"
	TrialDone    TrialState = "done"
	TrialFailed  TrialState = "failed"
)
