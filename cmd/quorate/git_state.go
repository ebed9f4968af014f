package main

import (
	"sync"

	"github.com/quorate/quorate/schema"
)

// gitState is what the poll lets others know of the repository.
type gitState struct {
	// commit in force; "" before there is one.
	commit string
	// problems are what is wrong in its files.
	problems []string
	// held says why nothing newer is followed, and heldCommit which commit that is
	// about; "" where nothing is held, or no commit is to blame.
	held, heldCommit string
}

// shownGit is the newest gitState.
type shownGit struct {
	mu  sync.Mutex
	now gitState
}

func (s *shownGit) get() gitState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *shownGit) change(edit func(g *gitState)) {
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
