package slots

import (
	"testing"
	"time"
)

// 496: a namespace with a thousand backups that ask each second, and one with a few that ask
// every five: as soon as both wait, they have the places in turn.
func TestNamespacesHavePlacesInTurn(t *testing.T) {
	turns := &Turns{Grace: 15 * time.Second}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	places := map[string]int{}
	left := 3
	for second := range 120 {
		now = now.Add(time.Second)
		asking := []string{"many"}
		if left > 0 && second%5 == 0 && second >= 30 {
			asking = []string{"many", "many", "many", "few"}
		}
		free := true
		for _, namespace := range asking {
			if mine := turns.Mine(namespace, now); mine && free {
				turns.Served(namespace, now)
				places[namespace]++
				free = false
				if namespace == "few" {
					left--
				}
			}
		}
	}
	if places["few"] != 3 || left != 0 {
		t.Errorf("of 120 places the one with few had %d", places["few"])
	}
	if places["many"] < 90 {
		t.Errorf("of 120 places the one with many had %d: a turn is kept for too long", places["many"])
	}
}

// A namespace that asks no more keeps no other one waiting for longer than the grace.
func TestATurnLapses(t *testing.T) {
	turns := &Turns{Grace: 15 * time.Second}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	turns.Mine("many", now)
	turns.Served("many", now)
	turns.Mine("gone", now)
	if turns.Mine("many", now.Add(15*time.Second)) {
		t.Error("it goes before one that waits")
	}
	if !turns.Mine("many", now.Add(16*time.Second)) {
		t.Error("it waits for one that does not ask any more")
	}
}
