package plan

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// freshHistories is how many histories that were never played each run of the tests plays.
const freshHistories = "1000"

// 322: each run of the tests looks at histories that none has seen before, besides those
// that it always plays. They follow from one number, and a failure names the command
// that plays them again.
func TestFreshHistories(t *testing.T) {
	defer set("rapid.seed", strconv.FormatUint(rand.Uint64()|1, 10))() // 0 would let rapid choose one
	defer set("rapid.checks", freshHistories)()
	again := "go test ./reconciler/plan -count=1 -run '^TestFreshHistories$' -rapid.seed=" + flag.Lookup("rapid.seed").Value.String()
	t.Log("plays " + freshHistories + " histories; the same again: " + again)
	e := newEngine(table())
	rapid.Check(t, func(t *rapid.T) {
		h := drawn(t)
		if broken := e.play(h, startOf, nil); broken != "" {
			t.Fatal(e.story(h, startOf) + "\nplay it again: " + again)
		}
	})
}
