package starvation

import "time"

// Tock ends a tick.
var Tock = tock

// Lose has the process lose so much time.
func Lose(d time.Duration) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.lost += d
}
