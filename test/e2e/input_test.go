package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/test/lab"
)

// TestBadFiles commits one bad file after the other. Each is held with one
// sentence, and the cluster stays unchanged; the daemon reads other files all
// the same.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "files")
	good := spec{version: "3.5.35", replicas: 1}
	w.create(good)
	before, text := w.settled(), w.text(good)
	change := func(from, to string) map[string]string {
		if strings.Count(text, from) != 1 {
			t.Fatalf("%q is not once in the file", from)
		}
		return map[string]string{file: strings.Replace(text, from, to, 1)}
	}
	for _, tc := range []struct {
		name  string
		files map[string]string
		parts []string
	}{
		{"13: unknown field", change("  replicas: 1", "  replicas: 1\n  replica: 3"), []string{"spec.replica", file + ":"}},
		{"4: a number as version", change(`version: "3.5.35"`, "version: 3.10"), []string{"spec.version", "3.10", "in quotes"}},
		{"2: no members", change("replicas: 1", "replicas: 0"), []string{"spec.replicas"}},
		{"53: a minor skipped", change("3.5.35", "3.7.3"), []string{"cannot go from 3.5.35 to 3.7.3"}},
		{"53: a minor down", change("3.5.35", "3.4.34"), []string{"cannot go from 3.5.35 to 3.4.34"}},
		{"6: storage shrinks", change("256Mi", "128Mi"), []string{"spec.storage.size"}},
		{"585: plain text and users", map[string]string{file: text + "  tls: {mode: Disabled}\n  auth: {enabled: true, rootPasswordSecret: {name: root}}\n"}, []string{"spec.tls.mode", "with authentication on"}},
		{"14: not YAML", map[string]string{file: "apiVersion: {\n" + text}, []string{file + ":"}},
		{"23: two files with one cluster", map[string]string{"clusters/copy.yaml": strings.Replace(text, "3.5.35", "3.6.16", 1)}, []string{"copy.yaml", file}},
	} {
		ok := t.Run(tc.name, func(t *testing.T) {
			v := *w
			v.T = t
			v.commitFiles(tc.name, tc.files)
			hold := v.awaitHold("Refused", holdLimit, tc.parts...)
			if hold.Remedy == "" || strings.Contains(hold.Reason, "\n") {
				t.Errorf("not a sentence that tells what to do: %s", hold.Raw)
			}
			v.expectObjects(before)
			// Mended, the cluster is what Git says without anything to do.
			fixed := map[string]string{file: text}
			for path := range tc.files {
				if path != file {
					fixed[path] = ""
				}
			}
			v.commitFiles("Fix", fixed)
			v.awaitIdle(good.version, holdLimit)
			v.expectObjects(before)
		})
		if !ok {
			return // the next file would begin elsewhere
		}
	}
}

// TestGitGone takes away the file, the branch, the repository and the server:
// none of that is a request to delete, and the cluster keeps running.
func TestGitGone(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "git")
	front := w.startFront()
	want := spec{version: "3.5.35", replicas: 1}
	w.create(want)
	before := w.settled()

	for _, tc := range []struct {
		name, sentence string
		take, back     func() error
	}{
		{
			"132: the server is down", "connection refused",
			func() error { front.stop(); return nil },
			front.start,
		},
		{
			"133: the repository is gone", "answered 404",
			func() error { front.answer(http.StatusNotFound); return nil },
			func() error { front.answer(0); return nil },
		},
		{
			"133: the repository may no longer be read", "answered 401",
			func() error { front.answer(http.StatusUnauthorized); return nil },
			func() error { front.answer(0); return nil },
		},
		{
			"132, 133: the branch is gone", "no branch",
			func() error { return w.git.DeleteBranch(w.Context()) },
			func() error { _, err := w.git.Commit(w.Context(), "The branch is back", nil); return err },
		},
	} {
		ok := t.Run(tc.name, func(t *testing.T) {
			v := *w
			v.T, v.mark = t, w.daemon.Log.Mark()
			v.must(tc.take())
			v.await("an error about Git", holdLimit, func(l lab.LogLine) bool {
				return l.Msg == "fetch failed" && strings.Contains(l.Error, tc.sentence)
			})
			from := v.mark
			time.Sleep(quiet)
			if more := v.lines(from, func(lab.LogLine) bool { return true }); len(more) > 0 {
				t.Errorf("said more than once: %s", more[0].Raw)
			}
			if n := v.metric("quorate_git_consecutive_failures"); n < 2 {
				t.Errorf("%v failures in a row", n)
			}
			v.expectObjects(before)
			v.must(tc.back())
			v.eventually("Git to be read again", holdLimit, func(context.Context) (bool, error) {
				return v.metric("quorate_git_consecutive_failures") == 0, nil
			})
			v.expectObjects(before)
		})
		if !ok {
			return
		}
	}

	// 130: the file goes; the cluster is an orphan and stays.
	w.commitFiles("Remove the cluster", map[string]string{file: "", "clusters/README.md": "Nothing here.\n"})
	w.await("the orphan", holdLimit, func(l lab.LogLine) bool { return l.Msg == "cluster is not in Git any more" && l.Cluster == w.key() })
	time.Sleep(quiet)
	w.expectObjects(before)
	w.expectServing(1)

	// Back in Git it continues as if nothing had happened.
	w.commit("Bring it back", want)
	w.awaitIdle(want.version, holdLimit)
	w.expectObjects(before)
}
