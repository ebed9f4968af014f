package plan

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
)

// noonPlus is the simulation's time.
func noonPlus(clock int32) time.Time { return noon.Add(time.Duration(clock) * time.Second) }

// The names of the simulation, made once.
var (
	podNames    = namesOf("orders-", most)
	memberIDs   = append([]string{""}, namesOf("m", 127)...)
	podUIDs     = namesOf("pod-", 2000)
	templates   = namesOf("template-", len(variants))
	objectNames = namesOf("object-", 3)
)

func namesOf(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + strings.TrimPrefix(naming.Member("", int32(i)), "-")
	}
	return names
}

// lexicon holds texts that worlds refer to by number, so that they stay comparable:
// what backups are taken for, and hashes.
var lexicon = struct {
	sync.RWMutex
	texts []string
}{texts: []string{""}}

// wordOf is the number of a text.
func wordOf(text string) int8 {
	lexicon.Lock()
	defer lexicon.Unlock()
	i := slices.Index(lexicon.texts, text)
	if i < 0 {
		i = len(lexicon.texts)
		lexicon.texts = append(lexicon.texts, text)
	}
	return int8(i)
}

// word is the text of a number.
func word(n int8) string {
	lexicon.RLock()
	defer lexicon.RUnlock()
	return lexicon.texts[n]
}

// podUID is the name of a pod's UID.
func podUID(n int16) string { return podUIDs[int(n)%len(podUIDs)] }
