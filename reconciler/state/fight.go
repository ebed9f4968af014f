package state

import (
	"time"
)

// Fight is a field that another manager changes again and again after it was put back.
type Fight struct {
	// Manager is what changes it, by its name in Kubernetes, and Fields are what.
	Manager, Fields string
	// Times is how often it was put back.
	Times int
	// Until is when it is put back next.
	Until time.Time
}
