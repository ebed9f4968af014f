package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/test/lab"
)

// TestDamagedData kills every pod at once, and then damages what single members
// have on their disks, while clients write. Where all data is there nothing is
// done; a member whose data etcd cannot read is replaced.
func TestDamagedData(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "damage")
	want := spec{version: "3.5.35", replicas: 3, backup: "Required", more: soonRepaired}
	w.create(want)
	history, sizes := w.recordHistory("history/"), w.watchMembers()
	type damage struct {
		name, member string
		lose         func(w *world, member string)
	}
	cases := []damage{
		{"85: all pods at once", "", nil},
		{"79: the leader's database without its beginning", "orders-0", (*world).damageDatabase},
	}
	if *long {
		cases = append(cases,
			damage{"79: a log that is damaged in the middle", "orders-1", (*world).damageLog},
			damage{"80: the volume of another member", "orders-2", (*world).swapVolume},
		)
	}
	for _, tc := range cases {
		ok := t.Run(tc.name, func(t *testing.T) {
			v := *w
			v.T, v.mark = t, w.daemon.Log.Mark()
			v.must(v.cluster.MoveLeader(t.Context(), v.namespace, name, "orders-0"))
			pods, members := v.uids(), v.record().Members
			if tc.member == "" {
				v.killAllPods(pods)
				v.expectSizes(sizes, "3")
			} else {
				tc.lose(&v, tc.member)
				v.expectRepaired(tc.member, members, sizes)
				v.expectNoOther(pods, v.uids(), tc.member)
			}
			v.expectVersion(3, want.version)
			v.expectRecord(3)
			v.checkHistory(history)
			v.expectProgress(history)
		})
		if !ok {
			return // the next damage would meet another cluster
		}
	}
}

// killAllPods deletes every pod without a grace, as a power cut would, and wants
// them back on their volumes without any step of quorate's.
func (w *world) killAllPods(pods map[string]string) {
	w.Helper()
	from, before := w.mark, w.record()
	w.deleteAllPods()
	w.eventually("every pod to be back", rollLimit, func(ctx context.Context) (bool, error) {
		now, err := w.cluster.Pods(ctx, w.namespace, name)
		if err != nil || len(now) != len(pods) {
			return false, err
		}
		for i := range now {
			if pods[now[i].Name] == string(now[i].UID) || !lab.Ready(&now[i]) {
				return false, nil
			}
		}
		return true, nil
	})
	w.expectNothingDone(from, before.Members)
}

// deleteAllPods deletes the cluster's pods at once, without any grace.
func (w *world) deleteAllPods() {
	w.Helper()
	w.must(w.cluster.Client.CoreV1().Pods(w.namespace).DeleteCollection(w.Context(),
		metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{LabelSelector: clusterSelector}))
}

// expectNothingDone wants no step but a note of what was seen, and the same members,
// for longer than the grace that these tests give a lost member.
func (w *world) expectNothingDone(from int, members map[string]string) {
	w.Helper()
	time.Sleep(2 * quiet)
	w.expectNoStep(from)
	for member, id := range w.record().Members {
		if members[member] != id {
			w.Errorf("%s was %s and is %s", member, members[member], id)
		}
	}
}

// expectNoStep wants no step since a position but a note of whose data a volume holds,
// which may be of a moment before.
func (w *world) expectNoStep(from int) {
	w.Helper()
	for _, l := range w.lines(from, lab.Step()) {
		if !strings.HasPrefix(l.Action, "record whose data ") {
			w.Errorf("quorate acted: %s", l.Raw)
		}
	}
}

// dataFile waits until a member has a file of etcd's that matches, and returns the
// last of them by name.
func (w *world) dataFile(member, pattern string) string {
	w.Helper()
	if w.cluster.Sandbox == nil {
		w.Skip("only in the sandbox can a volume be reached")
	}
	volume, err := w.cluster.VolumePath(w.Context(), w.namespace, "data-"+member)
	w.must(err)
	found, err := filepath.Glob(filepath.Join(volume, guard.DataDir, "member", pattern))
	w.must(err)
	if len(found) == 0 {
		w.Fatalf("%s has no file %s", member, pattern)
	}
	return slices.Max(found)
}

// damageLog changes one byte in the middle of a record of a member's log, as a bad
// disk does, and restarts the member, which then reads it.
func (w *world) damageLog(member string) {
	w.Helper()
	file := w.dataFile(member, "wal/*.wal")
	const behind = 8 << 10
	var at int64
	w.eventually("the log to grow", holdLimit, func(context.Context) (bool, error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		at = recordBehind(text, behind)
		return at > 0, nil
	})
	w.overwrite(file, at, []byte{0xa5})
	w.deletePod(member)
}

// recordBehind is the middle of the data of the first record of a log that begins
// behind an offset, 0 where there is none yet. Each record is preceded by its
// length, in the lower 56 bits of eight bytes; where the highest bit is set, the
// three lowest of the highest byte tell how much padding follows it.
func recordBehind(log []byte, offset int) int64 {
	for at := 0; at+8 <= len(log); {
		header := binary.LittleEndian.Uint64(log[at:])
		size, padding := int(header&(1<<56-1)), 0
		if header>>63 == 1 {
			padding = int(header >> 56 & 7)
		}
		if size == 0 || at+8+size+padding > len(log) {
			return 0 // nothing was written here yet
		}
		if at > offset && size > 64 {
			return int64(at + 8 + size/2)
		}
		at += 8 + size + padding
	}
	return 0
}

// damageDatabase overwrites the two first pages of a member's database, without
// which its layout is unknown, while etcd does not run: it would write
// one of them again before it ends.
func (w *world) damageDatabase(member string) {
	w.Helper()
	file, putBack := w.blockDatabase(member)
	w.overwrite(file, 0, bytes.Repeat([]byte{0xa5}, 2*os.Getpagesize()))
	putBack()
}

// blockDatabase puts something else in the place of a member's database, waits
// until etcd has failed to start, and returns where the database is meanwhile.
func (w *world) blockDatabase(member string) (aside string, putBack func()) {
	w.Helper()
	file, before := w.dataFile(member, "snap/db"), w.uids()[member]
	aside = file + ".aside"
	w.must(os.Rename(file, aside))
	w.must(os.Mkdir(file, 0o755))
	w.deletePod(member)
	w.eventually(member+" to fail to start", rollLimit, func(ctx context.Context) (bool, error) {
		pod, err := w.cluster.Client.CoreV1().Pods(w.namespace).Get(ctx, member, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || (err == nil && string(pod.UID) == before) {
			return false, nil
		}
		return err == nil && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].RestartCount > 0, err
	})
	return aside, func() {
		w.Helper()
		w.must(os.Remove(file))
		w.must(os.Rename(aside, file))
	}
}

// swapVolume gives a member a copy of another member's log and of the mark of its
// volume, as a wrong snapshot or a wrong claim does. That may be the only copy of some data, so quorate
// touches nothing until a person has deleted the claim, as its hold says.
func (w *world) swapVolume(member string) {
	w.Helper()
	w.dataFile(member, "wal/*.wal") // where volumes cannot be reached, the test ends here
	from, err := w.cluster.VolumePath(w.Context(), w.namespace, "data-orders-1")
	w.must(err)
	to, err := w.cluster.VolumePath(w.Context(), w.namespace, "data-"+member)
	w.must(err)
	// The log says whose data it is. It is copied over the old one, because the disk
	// has no room for two.
	for _, name := range []string{guard.MarkerFile, filepath.Join(guard.DataDir, "member", "wal")} {
		text, err := exec.CommandContext(w.Context(), "cp", "--archive", filepath.Join(from, name), filepath.Join(to, filepath.Dir(name))).CombinedOutput()
		if err != nil {
			w.Fatalf("copy %s: %v: %s", name, err, text)
		}
	}
	w.deletePod(member)
	w.eventually("the guard to refuse "+member, rollLimit, func(ctx context.Context) (bool, error) {
		return strings.Contains(w.guardSaid(ctx, member), "belongs to member orders-1"), nil
	})
	members, mark := w.record().Members, w.mark
	hold := w.awaitHold("Unhealthy", rollLimit, "volume claim data-"+member, "belongs to member orders-1", "quorate never deletes", "delete the claim and its pod")
	w.Logf("quorate says: %s", hold.Hold())
	w.expectNothingDone(mark, members)
	w.loseVolume(member)
}

// overwrite changes bytes of a file, even while it is open.
func (w *world) overwrite(file string, at int64, text []byte) {
	w.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	w.must(err)
	_, err = f.WriteAt(text, at)
	w.must(err)
	w.must(f.Close())
}
