package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/lab"
)

// TestFleet upgrades two clusters with one commit: the lower wave first. Then a
// second quorate follows the same files, and leaves alone what is not its own
// until a word in Git hands it over.
func TestFleet(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "fleet")
	canary := w.namespace + "/canary"
	files := func(version, more string) map[string]string {
		return map[string]string{
			"clusters/orders.yaml": w.text(spec{version: version, replicas: 1, more: "    wave: 1\n" + more}),
			"clusters/canary.yaml": w.text(spec{name: "canary", version: version, replicas: 1}),
		}
	}
	w.commitFiles("Add a fleet", files("3.6.12", ""))
	w.start()
	for _, key := range []string{canary, w.key()} {
		w.mark = 0
		w.await(key, createLimit, lab.Idle(key, "3.6.12"))
	}

	w.commitFiles("Upgrade the fleet", files("3.6.16", ""))
	from := w.mark
	w.awaitDone(changeLimit)
	var order []string
	for _, l := range w.lines(from, lab.Done()) {
		if strings.HasPrefix(l.Action, "start the roll") || strings.HasPrefix(l.Action, "record that 3.6.16") {
			order = append(order, l.Cluster+": "+l.Action)
		}
	}
	want := []string{
		canary + ": start the roll 3.6.12 → 3.6.16", canary + ": record that 3.6.16 is applied",
		w.key() + ": start the roll 3.6.12 → 3.6.16", w.key() + ": record that 3.6.16 is applied",
	}
	if strings.Join(order, "\n") != strings.Join(want, "\n") {
		t.Errorf("the order was\n%s", strings.Join(order, "\n"))
	}

	options, owner := w.options, fmt.Sprintf("%s@%s:clusters#default/1", w.git.URL(), lab.Branch)
	options.Args, options.LogFile = []string{"--instance=other"}, filepath.Join(shared.dir, "fleet-other.log")
	other, err := lab.StartDaemon(t.Context(), options)
	w.must(err)
	t.Cleanup(other.Kill)
	_, _, err = other.WaitFor(t.Context(), 0, holdLimit, lab.Hold("the cluster belongs to "+owner, "#other"))
	w.must(err)

	w.commitFiles("Hand orders over", files("3.6.16", fmt.Sprintf("  takeOver: %q\n", owner)))
	_, _, err = other.WaitFor(t.Context(), 0, holdLimit, lab.Done("take the cluster over from "+owner))
	w.must(err)
	w.await("142: the former owner to let go", holdLimit, func(l lab.LogLine) bool {
		return lab.Hold("belongs to", "#other/2", "#default")(l) && l.Cluster == w.key()
	})
	w.expectVersion(1, "3.6.16")
}
