package etcd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/record/recordtest"
	"github.com/quorate/quorate/reconciler/state"
)

// 411: a volume of a real member is known by what was noted before it stopped: it starts on its own, also after
// it was killed in the midst of writes, and not on a copy of an earlier time.
func TestAnOlderVolumeIsKnown(t *testing.T) {
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		s := startEtcd(t, version, 3, false)
		well := func(r state.Round) bool { return len(r.Members) == 3 && troubleOf(r) == "" }
		earlier := make([]string, len(s.Members))
		for i, m := range s.Members {
			m.Kill()
			earlier[i] = copied(s, m)
			m.Start()
			s.await("it to be back", well)
		}
		s.MustPut("key", "after")
		rec := record.Record{}
		for i, m := range s.Members { // one of them leads
			written := writeOn(s)
			rec = noted(s, rec, s.await("all to be well under load", well))
			m.Kill()
			written()
			rec = noted(s, rec, s.await("the others to go on", func(r state.Round) bool { return r.Problem == "" }))
			if err := guardAt(s, rec, m, m.Volume); err != nil {
				t.Errorf("its own: %v", err)
			}
			if err := guardAt(s, rec, m, earlier[i]); guard.ExitCode(err) != guard.ExitOlder {
				t.Errorf("the copy of before: %v", err)
			}
			m.Start()
			s.await("it to be back", well)
		}
	})
}

// copied is a copy of a member's volume.
func copied(s *etcdServers, m *etcdtest.Member) string {
	s.Helper()
	path := s.TempDir()
	if err := os.CopyFS(path, os.DirFS(m.Volume)); err != nil {
		s.Fatal(err)
	}
	return path
}

// writeOn writes until the returned function is called.
func writeOn(s *etcdServers) (done func()) {
	ctx, cancel := context.WithCancel(s.Context())
	c, ended := s.Members[0].Client(), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = c.Put(ctx, "key", fmt.Sprint(i)) // one that is killed may fail it
		}
	}()
	return func() { cancel(); <-ended }
}

// noted is the record of a cluster with what a round tells.
func noted(s *etcdServers, rec record.Record, r state.Round) record.Record {
	next := record.New("token")
	next.ClusterID, next.Floors = r.ClusterID, rec.Floors
	for _, m := range r.Members {
		next.Members[m.Name] = m.ID
	}
	next.NoteFloors(&r, time.Now())
	if len(next.Floors) != 3 {
		s.Errorf("noted %+v of %+v", next.Floors, r)
	}
	return next
}

// guardAt has the guard look at a volume of a member.
func guardAt(s *etcdServers, rec record.Record, m *etcdtest.Member, volume string) error {
	s.Helper()
	path := filepath.Join(s.TempDir(), guard.RecordFile)
	for file, text := range map[string]string{
		path:                                    recordtest.Stored(rec).Data[guard.RecordFile],
		filepath.Join(volume, guard.MarkerFile): fmt.Sprintf(`{"token":"token","member":%q}`, m.Name),
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	return guard.Check(path, volume, m.Name)
}
