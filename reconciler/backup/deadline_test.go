package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// waiting is a snapshot that stops after some bytes until ctx ends.
type waiting struct {
	ctx  context.Context
	some io.Reader
}

func (w waiting) Read(p []byte) (int, error) {
	if n, err := w.some.Read(p); err == nil {
		return n, nil
	}
	<-w.ctx.Done()
	return 0, w.ctx.Err()
}

// pausing is a snapshot of which some bytes come after each pause.
type pausing struct {
	pause time.Duration
	from  io.Reader
}

func (p pausing) Read(b []byte) (int, error) {
	time.Sleep(p.pause)
	return p.from.Read(b[:min(len(b), 1000)])
}

// 173: a store that accepts and says nothing ends no call by itself: each has an end of
// its own, and says so.
func TestEveryCallToASilentStoreEnds(t *testing.T) {
	mute := backuptest.StartMute(t)
	st := Store{Drivers: drivers, Credentials: backuptest.S3Secret(), Calls: &Calls{Stall: 300 * time.Millisecond}}
	url, ctx := mute.URL("1.db"), t.Context()
	var group sync.WaitGroup
	for op, call := range map[string]func() error{
		"list":     func() error { _, err := st.List(ctx, url); return err },
		"manifest": func() error { _, err := st.ReadManifest(ctx, url); return err },
		"reach":    func() error { return st.Reach(ctx, url) },
		"verify":   func() error { _, err := st.Verify(ctx, url); return err },
		"open":     func() error { _, _, err := st.Open(ctx, url); return err },
		"remove":   func() error { return st.Remove(ctx, url) },
		"discard":  func() error { return st.Discard(ctx, url) },
		"annotate": func() error { return st.Annotate(ctx, url, func(*Manifest) {}) },
		"save": func() error {
			_, err := st.Save(ctx, url, bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest())
			return err
		},
	} {
		group.Go(func() {
			err := call()
			backuptest.WantError(t, err, "s3://backups/", "did not answer in time: nothing moved for 300ms")
			if !errors.Is(err, ErrSilent) || errors.Is(err, ErrNotFound) {
				t.Errorf("%s: %v", op, err)
			}
		})
	}
	group.Wait()
	for mute.Asked() == 0 { // a slow machine may not have come to a connection yet
		if _, err := st.ReadManifest(ctx, url); !errors.Is(err, ErrSilent) {
			t.Fatal(err)
		}
	}
	if st.Calls.Known(url).Answers || !st.Calls.Known(url).Stalls {
		t.Error("nobody knows that it says nothing")
	}
	if ctx.Err() != nil {
		t.Error(ctx.Err())
	}
}

// 173: a store that answers and then takes nothing gets no more time than one that never
// answers, leaves nothing, and is known until it has taken a backup.
func TestAStoreThatTakesNothingIsKnown(t *testing.T) {
	s := backuptest.StartS3(t)
	p := behind(t, s.Address, s.URL, backuptest.Certificate{})
	p.store.Credentials, p.store.Calls = backuptest.S3Secret(), &Calls{Stall: 5 * time.Second}
	url := p.url("a.db")
	p.proxy.Set(backuptest.Uploads(backuptest.Silence))
	ctx, end := p.store.Calls.Watch(t.Context(), nil)
	defer end()
	_, err := p.store.Save(ctx, url, bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest())
	backuptest.WantError(t, err, "did not answer in time: nothing moved for 5s")
	if !p.store.Calls.Known(url).Stalls {
		t.Error("it is forgotten")
	}
	p.proxy.Set(nil)
	if err := p.store.Reach(t.Context(), url); err != nil || !p.store.Calls.Known(url).Answers || !p.store.Calls.Known(url).Stalls {
		t.Errorf("it answers: %v", err)
	}
	if keys := p.keys(t); len(keys) != 0 {
		t.Errorf("it left %q", keys)
	}
	if _, err := p.store.Save(t.Context(), url, bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest()); err != nil || p.store.Calls.Known(url).Stalls {
		t.Errorf("it takes backups: %v", err)
	}
}

// 175: a backup lasts as long as it moves, and no longer; the error says who was waited
// for.
func TestABackupLastsAsLongAsItMoves(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		calls, quiet := &Calls{}, 0
		ctx, end := calls.Watch(t.Context(), func() { quiet++ })
		st, began := Store{Drivers: drivers, Calls: calls}, time.Now()
		url := func(name string) string { return "file://" + dir + "/" + name + "?root=" + dir }
		slow := pausing{DefaultStall - time.Second, bytes.NewReader(backuptest.Snapshot(64 << 10))}
		if _, err := st.Save(ctx, url("slow.db"), slow, manifestForTest()); err != nil || time.Since(began) < 5*time.Hour {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		end()
		time.Sleep(time.Hour)
		if quiet == 0 {
			t.Error("nobody was told that it was quiet")
		}
		began = time.Now()
		ctx, end = calls.Watch(t.Context(), nil)
		defer end()
		stuck := waiting{ctx, bytes.NewReader(backuptest.Snapshot(4096))}
		_, err := st.Save(ctx, url("stuck.db"), stuck, manifestForTest())
		backuptest.WantError(t, err, "the snapshot stream broke after 4128 bytes: the member sent nothing for 5m0s")
		if took := time.Since(began); took != DefaultStall || calls.Known(url("stuck.db")).Stalls {
			t.Errorf("it took %s; the store is blamed: %t", took, calls.Known(url("stuck.db")).Stalls)
		}
		if list, err := st.List(t.Context(), url("any")); err != nil || len(list) != 1 {
			t.Errorf("%d backups, %v", len(list), err)
		}
	})
}

// 175: what trickles has an end as well.
func TestABackupThatTricklesEnds(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		slow := pausing{4 * time.Minute, bytes.NewReader(backuptest.Snapshot(512 << 10))}
		_, err := Store{Drivers: drivers}.Save(t.Context(), "file://"+dir+"/1.db?root="+dir, slow, manifestForTest())
		if took := time.Since(began); err == nil || took > Timeout+5*time.Minute {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// 173: no more calls pile up at one store than it has places, and others have their own.
func TestCallsToOneStoreAreBounded(t *testing.T) {
	mute, dir := backuptest.StartMute(t), t.TempDir()
	st := Store{Drivers: drivers, Credentials: backuptest.S3Secret(), Calls: &Calls{Stall: time.Second}}
	var group sync.WaitGroup
	for range 3 * callsAtOnce {
		group.Go(func() {
			if _, err := st.ReadManifest(t.Context(), mute.URL("1.db")); !errors.Is(err, ErrSilent) {
				t.Error(err)
			}
		})
	}
	if _, err := st.List(t.Context(), "file://"+dir+"/x?root="+dir); err != nil {
		t.Error(err)
	}
	group.Wait()
	if n := mute.Most(); n > 2*callsAtOnce { // those that were closed may be noticed late
		t.Errorf("%d connections at once", n)
	}
}

// A call that waits until others to the same store have ended is not told that the store is silent,
// while that answers them.
func TestWaitingForAPlaceIsNoSilenceOfTheStore(t *testing.T) {
	for name, answers := range map[string]bool{"it answers": true, "it is silent": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const url = "s3://backups/1.db"
				st := Store{Drivers: drivers, Calls: &Calls{}}
				to, err := parseURL("", url)
				if err != nil {
					t.Fatal(err)
				}
				var leaves []func()
				for range callsAtOnce {
					busy := &object{store: st, target: to, op: "list"}
					if _, err := busy.bound(t.Context(), false); err != nil {
						t.Fatal(err)
					}
					leaves = append(leaves, busy.ended)
				}
				go func() {
					for range 30 {
						time.Sleep(10 * time.Second)
						if answers {
							(&object{store: st, target: to}).answered()
						}
					}
					for _, leave := range leaves {
						leave()
					}
				}()
				waits := &object{store: st, target: to, op: "read the manifest of"}
				_, err = waits.bound(t.Context(), false)
				if errors.Is(err, ErrSilent) == answers || st.Calls.Known(url).Stalls == answers {
					t.Errorf("error %v, known is %+v", err, st.Calls.Known(url))
				}
				waits.ended()
				time.Sleep(10 * time.Minute)
			})
		})
	}
}

// Who asks for nothing gets the defaults.
func TestCallsHaveDefaults(t *testing.T) {
	var none *Calls
	none.Wait(t.Context())()
	if none.StallTime() != DefaultStall || (&Calls{}).StallTime() != DefaultStall || none.Known("s3://a/b").Stalls || none.Known("no URL").Answers {
		t.Error("there are other defaults")
	}
	if err := Explain(t.Context(), io.ErrUnexpectedEOF); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
