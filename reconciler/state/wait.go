package state

import (
	"time"
)

// MinRequeue is how long to wait before observing again something that just moved.
const MinRequeue = 100 * time.Millisecond
