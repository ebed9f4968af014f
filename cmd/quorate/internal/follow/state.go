package follow

import (
	"sync"

	"github.com/quorate/quorate/schema"
)

// State is what the poll lets others know of the repository.
type State struct {
	// commit in force; "" before there is one.
	Commit string
	// problems are what is wrong in its files.
	Problems []string
	// held says why nothing newer is followed, and heldCommit which commit that is
	// about; "" where nothing is held, or no commit is to blame.
	Held, HeldCommit string
}

// shownGit is the newest State.
type shownGit struct {
	mu  sync.Mutex
	now State
}

func (s *shownGit) get() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *shownGit) change(edit func(g *State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit(&s.now)
}

// texts are problems in words.
func texts(problems []schema.Problem) []string {
	list := make([]string, len(problems))
	for i, p := range problems {
		list[i] = p.String()
	}
	return list
}
