package plan

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// 322: each run of the tests looks at histories that none has seen before, besides those
// that it always plays. They follow from one number, and a failure names the command
// that plays them again.
func TestFreshHistories(t *testing.T) {
	defer set("rapid.seed", strconv.FormatUint(rand.Uint64()|1, 10))() // 0 would let rapid choose one
	fresh := strconv.Itoa(histories(1000, 200))
	defer set("rapid.checks", fresh)()
	again := "go test ./reconciler/plan -count=1 -run '^TestFreshHistories$' -rapid.seed=" + flag.Lookup("rapid.seed").Value.String()
	t.Log("plays " + fresh + " histories; the same again: " + again)
	e := newEngine(table())
	rapid.Check(t, func(t *rapid.T) {
		h := drawn(t)
		if broken := e.play(h, anyStart, nil); broken != "" {
			t.Fatal(e.story(h, anyStart) + "\nplay it again: " + again)
		}
	})
}

// anyStart is one of all the worlds in which histories begin, the midst of something included.
func anyStart(d dice) world {
	starts := append(slices.Clone(beginnings), letGo, halfRolled, going, unheard, remembered)
	return starts[d.roll(len(starts))](d)
}

// beginnings are where the histories begin, one after the other.
var beginnings = []func(dice) world{
	startOf, mixed, startOf, shrinking, growing, startOf, repairing, storageStart, stepping,
	startOf, crowdedStart, downFrom(v37), newborn, sharedStart, downFrom(v37Early), swapped,
}
