package e2e

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/test/lab"
)

// The value that a bad disk changes on one member, and what it becomes.
const (
	writtenValue = "what every member was told, and acknowledged"
	changedValue = "what no member was told, nor acknowledged by"
)

// TestCorruptAlarm changes a byte on the disk of one member, so that it holds other
// data than the others. etcd finds out and stops serving; quorate finds
// the one that differs, replaces it and ends the alarm (90).
func TestCorruptAlarm(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "corrupt")
	want := spec{
		version: "3.6.16", replicas: 3, backup: "Required",
		more: soonRepaired + "  etcd:\n    options: {corrupt-check-time: 3s}\n",
	}
	w.create(want)
	client, err := w.cluster.Dial(t.Context(), w.namespace, name)
	w.must(err)
	t.Cleanup(func() { _ = client.Close() })
	_, err = client.Put(t.Context(), "fact", writtenValue)
	w.must(err)
	// Many writes later, the place where the fact is stored is not written to.
	history := w.recordHistory("history/")
	w.eventually("some hundred writes", holdLimit, func(context.Context) (bool, error) { return history.Report().Writes >= 300, nil })
	w.must(w.cluster.MoveLeader(t.Context(), w.namespace, name, "orders-0"))
	pods, members := w.uids(), w.record().Members

	w.mark = w.daemon.Log.Mark()
	from := w.mark
	file := w.dataFile("orders-1", "snap/db")
	w.eventually("etcd to notice", rollLimit, func(ctx context.Context) (bool, error) {
		if err := replaceInFile(file, writtenValue, changedValue); err != nil {
			return false, err
		}
		alarms, err := client.AlarmList(ctx)
		return err == nil && slices.ContainsFunc(alarms.Alarms, func(a *etcdserverpb.AlarmMember) bool {
			return a.Alarm == etcdserverpb.AlarmType_CORRUPT
		}), err
	})
	w.expectRepaired("orders-1", members, nil) // no client can watch: the Service has no endpoint
	w.expectOrder(from, "back up", "remove orders-1 from the members", "promote orders-1", "disarm")
	for _, l := range w.lines(from, lab.Step("remove orders-1")) {
		if !strings.Contains(l.Reason, "orders-1 holds other data than the 2 others") {
			t.Errorf("the reason is %q", l.Reason)
		}
	}
	w.expectNoOther(pods, w.uids(), "orders-1")
	w.expectVersion(3, want.version)
	w.expectRecord(3)
	w.expectServing(3)
	w.expectEverywhere("fact", writtenValue)
	w.expectProgress(history)
	w.checkHistory(history)
}

// replaceInFile replaces every text in a file by another one of the same length,
// even while it is open.
func replaceInFile(file, old, with string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for at := 0; err == nil; {
		n := bytes.Index(text[at:], []byte(old))
		if n < 0 {
			break
		}
		at += n
		_, err = f.WriteAt([]byte(with), int64(at))
		at += len(old)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// expectEverywhere asks every member on its own for a key.
func (w *world) expectEverywhere(key, value string) {
	w.Helper()
	pods, err := w.cluster.Pods(w.Context(), w.namespace, name)
	w.must(err)
	for i := range pods {
		client, err := w.cluster.DialMember(w.Context(), &pods[i])
		w.must(err)
		answer, err := client.Get(w.Context(), key)
		w.must(err)
		if len(answer.Kvs) != 1 || string(answer.Kvs[0].Value) != value {
			w.Errorf("%s says that %s is %v", pods[i].Name, key, answer.Kvs)
		}
		_ = client.Close()
	}
}
