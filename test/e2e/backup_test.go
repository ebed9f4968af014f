package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/lab"
)

// TestFailingBucketHoldsTheUpgrade breaks the store in one way after the other:
// the upgrade does not begin, however often it is tried, until everything is fixed.
func TestFailingBucketHoldsTheUpgrade(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "bucket")
	store, err := w.cluster.StartS3(t.Context())
	w.must(err)
	t.Cleanup(store.Close)
	w.options.BackupURL, w.options.Env = "", store.Credentials()
	want := spec{version: "3.5.21", replicas: 3, backup: "Required"}
	w.create(want)
	pods := w.watchPods()

	// 60: no place for backups is set.
	want.version = "3.5.35"
	w.commit("Upgrade", want)
	w.awaitHold("Refused", holdLimit, "needs a backup first", "objectURLTemplate")

	// 60: a bucket that does not exist.
	nowhere := want
	w.makeStoreSecret(store)
	nowhere.more = fmt.Sprintf("  backup:\n    destination:\n      credentials: {secretName: store}\n      objectURLTemplate: %q\n",
		strings.Replace(store.URLTemplate(), lab.Bucket, "nowhere", 1))
	w.commit("Send backups to a bucket that does not exist", nowhere)
	w.expectFailing("the bucket nowhere does not exist")

	// 60: credentials that the store does not know.
	w.must(w.daemon.Stop())
	w.options.BackupURL, w.options.Env["AWS_SECRET_ACCESS_KEY"] = store.URLTemplate(), "wrong"
	w.commit("Send backups to the default bucket", want)
	w.start()
	w.expectFailing("permission denied")
	w.must(w.daemon.Stop())

	// 60: a store that is away.
	w.options.Env = store.Credentials()
	store.Stop()
	w.start()
	w.expectFailing("the store cannot be reached")

	// 60: a bucket that takes nothing.
	w.must(store.SetWritable(false))
	w.must(store.Start())
	w.must(w.daemon.Restart()) // so that it waits no longer between two tries
	w.expectFailing("the store failed")

	w.expectRoll(pods)
	w.expectVersion(3, "3.5.21")
	if keys, err := store.Objects(); err != nil || len(keys) > 0 {
		t.Errorf("the store holds %q, %v", keys, err)
	}
	if n := w.events()["StartRoll"]; n > 0 {
		t.Error("a roll was started")
	}

	// Once fixed, it continues.
	w.must(store.SetWritable(true))
	w.awaitIdle("3.5.35", rollLimit)
	w.expectRoll(pods, "orders-2", "orders-1", "orders-0")
	if keys := w.backups(store); len(keys) != 1 {
		t.Errorf("backups %q, want one", keys)
	}
}

// expectFailing waits for a failure in these words, and for two more tries
// that fail.
func (w *world) expectFailing(sentence string) {
	w.Helper()
	line := w.await("a failure that says "+sentence, rollLimit, func(l lab.LogLine) bool {
		return l.Msg == "pass failed" && strings.Contains(l.Error, sentence)
	})
	if !strings.Contains(line.Error, "; ") {
		w.Errorf("the failure does not tell what to do: %s", line.Error)
	}
	before := w.metric("quorate_pass_failures_total")
	w.eventually("two more tries", rollLimit, func(context.Context) (bool, error) {
		return w.metric("quorate_pass_failures_total") >= before+2, nil
	})
	if rec := w.record(); rec.Backup != nil {
		w.Errorf("a backup is recorded: %+v", rec.Backup)
	}
}

// metric is the value of a series of this test's cluster, or of one without
// labels.
func (w *world) metric(series string) float64 {
	w.Helper()
	answer, err := http.Get(w.daemon.URL() + "/metrics")
	w.must(err)
	defer func() { _ = answer.Body.Close() }()
	scanner := bufio.NewScanner(answer.Body)
	for scanner.Scan() {
		line := scanner.Text()
		own := strings.HasPrefix(line, series+"{") && strings.Contains(line, `namespace="`+w.namespace+`"`)
		if own || strings.HasPrefix(line, series+" ") {
			value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
			w.must(err)
			return value
		}
	}
	w.must(scanner.Err())
	w.Fatalf("no series %s of %s", series, w.namespace)
	return 0
}
