package follow

import (
	"sync"

	"github.com/quorate/quorate/schema"
)

// State is what a Poller knows of the repository.
type State struct {
	// Commit in force; "" before the first.
	Commit string
	// Problems of its files.
	Problems []string
	// Held is why no newer commit is accepted, and HeldCommit the commit that is held
	// for it; "" if nothing is held, or if no commit is the cause.
	Held, HeldCommit string
}

// sharedState is a State that goroutines share.
type sharedState struct {
	mu      sync.Mutex
	current State
}

func (s *sharedState) get() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

func (s *sharedState) update(edit func(g *State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit(&s.current)
}

// texts formats problems.
func texts(problems []schema.Problem) []string {
	list := make([]string, len(problems))
	for i, p := range problems {
		list[i] = p.String()
	}
	return list
}
