package state

import (
	"time"
)

// Fight is a field that another writer changes again and again after it was put back.
type Fight struct {
	// Manager is what changes it, by its name in Kubernetes, and Fields are what. No manager
	// is the admission of the API server: it changes what is applied before it is stored,
	// so that Fields, with their values, are what becomes of each apply.
	Manager, Fields string
	// Times is how often it was put back.
	Times int
	// Until is when it is put back next.
	Until time.Time
}

// ByAdmission reports whether it is the API server itself that changes what is applied.
func (f Fight) ByAdmission() bool { return f.Manager == "" }

// Refusal is an object that the API server does not take as quorate applies it, or that is
// not quorate's to apply.
type Refusal struct {
	// Problem is why, in the API server's words.
	Problem string
	// Since is when it was refused first. Until is when it is tried next.
	Since, Until time.Time
}

// Weight is what hangs on the fields by which an object differs.
type Weight int

// The weights, from light to heavy.
const (
	// WeightLight is of fields that no member's data or quorum hangs on.
	WeightLight Weight = iota
	// WeightMembers is of fields that members start with, find each other by, or are kept
	// by: none is restarted while they differ.
	WeightMembers
	// WeightAll is of fields of the StatefulSet that every decision rests on, such as the
	// number of pods.
	WeightAll
)
