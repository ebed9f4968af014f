package scheduler_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/schema"
)

// locker is a schedule whose backups lie in a real S3 server that refuses what it is
// told to. Its clock is the machine's.
type locker struct {
	*testing.T
	api    *reconcilertest.FakeAPI
	events *eventrecord.FakeRecorder
	log    *bytes.Buffer
	s      *scheduler.Scheduler
	proxy  *backuptest.Faulty
	q      desired.Backup
	url    func(key string) string
	begin  time.Time
}

// startLocker has so many backups, one an hour until now.
func startLocker(t *testing.T, backups int, edits ...func(*schema.BackupScheduleSpec)) *locker {
	server := backuptest.StartS3(t)
	l := &locker{T: t, api: reconcilertest.NewFakeAPI(), events: eventrecord.NewFakeRecorder(100), log: &bytes.Buffer{}, proxy: backuptest.StartFaulty(t, server.Address, backuptest.Certificate{})}
	l.url = func(key string) string {
		return strings.ReplaceAll(server.URL("shop/orders/"+key), server.Address, l.proxy.Address)
	}
	r := reconciler.New(l.api, nil, l.events, report.NewMetrics(prometheus.NewRegistry()), slog.New(slog.NewJSONHandler(l.log, nil)), reconciler.Options{
		Render: reconcilertest.OrdersOptions(), BackupURL: l.url("{{ .UID }}.db"), Drivers: clouds.Drivers(), InsecureStores: true,
	})
	t.Cleanup(func() { r.Close() })
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.s, l.begin = r.Scheduler, time.Now().Add(-time.Duration(backups)*time.Hour).UTC()
	l.q = clustertest.Nightly(append(edits, func(s *schema.BackupScheduleSpec) {
		s.BackupTemplate.Destination.ObjectURLTemplate = strings.Replace(l.url("X"), "X", "{{ .UID }}.db", 1)
		s.Schedule = "0 0 29 2 *" // no new one during the test
	})...)
	l.pass() // makes the record
	for n := range backups {
		m := backup.Manifest{Namespace: "shop", Name: "orders", Schedule: l.q.Name(), ScheduleUID: string(l.live().UID), ClusterID: "feed", Time: l.time(n), Revision: int64(n + 1)}
		saved, err := backup.Store{Drivers: clouds.Drivers()}.Save(t.Context(), l.url(fmt.Sprint(n, ".db")), bytes.NewReader(backuptest.Snapshot(4096)), m)
		if err != nil {
			t.Fatal(err)
		}
		l.note(saved)
	}
	return l
}

// time is that of the nth backup.
func (l *locker) time(n int) time.Time { return l.begin.Add(time.Duration(n) * time.Hour) }

func (l *locker) pass() {
	l.Helper()
	if _, err := l.s.Pass(l.Context(), l.q); err != nil {
		l.Fatalf("%v\n%s", err, l.log)
	}
}

func (l *locker) record() scheduler.Record {
	l.Helper()
	rec, _, err := l.s.ReadRequest(l.Context(), l.q)
	if err != nil {
		l.Fatal(err)
	}
	return rec
}

func (l *locker) live() *metav1.ObjectMeta {
	l.Helper()
	cm, err := l.api.CoreV1().ConfigMaps("shop").Get(l.Context(), scheduler.RecordName(l.q), metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return &cm.ObjectMeta
}

// note writes into the record that this backup was taken just now.
func (l *locker) note(m backup.Manifest) {
	l.Helper()
	maps := l.api.CoreV1().ConfigMaps("shop")
	cm, err := maps.Get(l.Context(), scheduler.RecordName(l.q), metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	var rec map[string]any
	if err := json.Unmarshal([]byte(cm.Data[guard.RecordFile]), &rec); err != nil {
		l.Fatal(err)
	}
	now := time.Now().UTC()
	rec["last"] = map[string]any{"object": m.Object, "url": m.Object, "time": m.Time}
	rec["struck"], rec["ended"] = now, now
	text, err := json.Marshal(rec)
	if err != nil {
		l.Fatal(err)
	}
	cm.Data[guard.RecordFile] = string(text)
	if _, err := maps.Update(l.Context(), cm, metav1.UpdateOptions{}); err != nil {
		l.Fatal(err)
	}
}

// retain looks through the backups, as after the newest one.
func (l *locker) retain() {
	l.Helper()
	l.note(l.stored()[0])
	l.pass()
}

// stored are the backups in the store, newest first.
func (l *locker) stored() []backup.Manifest {
	l.Helper()
	list, err := backup.Store{Drivers: clouds.Drivers()}.List(l.Context(), l.url(""))
	if err != nil {
		l.Fatal(err)
	}
	return list
}

// want compares what is stored, oldest first.
func (l *locker) want(keys ...string) {
	l.Helper()
	var got []string
	for _, m := range slices.Backward(l.stored()) {
		got = append(got, strings.TrimPrefix(m.Object, "s3://backups/shop/orders/"))
	}
	if !slices.Equal(got, keys) {
		l.Errorf("%q are stored, want %q\n%s", got, keys, l.log)
	}
}

// told are the Events of a reason since it was asked last.
func (l *locker) told(reason string) (events []string) {
	for {
		select {
		case e := <-l.events.Events:
			if strings.Contains(e, " "+reason+" ") {
				events = append(events, e)
			}
		default:
			return events
		}
	}
}

// 184: what the store refuses to remove is in no other backup's way. It is told of once,
// tried again once after each backup, and counts for nothing in how many may go at
// once; when the lock ends, it goes.
func TestRefusedRemovalsStopNothing(t *testing.T) {
	l := startLocker(t, 9, func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(5)) })
	asked := 0
	l.proxy.Set(func(w http.ResponseWriter, r *http.Request) bool {
		locked := r.Method == http.MethodDelete && (strings.Contains(r.URL.Path, "/0.db") || strings.Contains(r.URL.Path, "/2.db"))
		if locked {
			asked++
			w.WriteHeader(http.StatusForbidden)
		}
		return locked
	})
	l.retain()
	l.want("0.db", "2.db", "4.db", "5.db", "6.db", "7.db", "8.db")
	if told := l.told("RetentionRefused"); len(told) != 1 || !strings.Contains(told[0], "2 backups") || asked != 2 {
		t.Errorf("told %q, asked %d times", told, asked)
	}
	l.retain()
	l.retain()
	if told := l.told("RetentionRefused"); len(told) > 0 || asked != 6 || len(l.record().Refused) != 2 {
		t.Errorf("told %q, asked %d times, %q", told, asked, l.record().Refused)
	}
	for range 5 {
		l.pass()
	}
	if asked != 6 {
		t.Errorf("asked %d times without a new backup", asked)
	}
	l.proxy.Set(nil)
	l.retain()
	l.want("4.db", "5.db", "6.db", "7.db", "8.db")
	if left := l.record().Refused; len(left) > 0 {
		t.Errorf("%q", left)
	}
}

// 184: a store that fails, rather than to refuse, ends the removal, and nothing more is asked of it.
func TestAFailingStoreEndsTheRemoval(t *testing.T) {
	l := startLocker(t, 4, func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(1)) })
	l.proxy.Set(func(w http.ResponseWriter, r *http.Request) bool {
		return r.Method == http.MethodDelete && backuptest.Answer(http.StatusNotImplemented)(w, r)
	})
	l.retain()
	l.want("0.db", "1.db", "2.db", "3.db")
	if told := l.told("RetentionFailed"); len(told) != 1 || strings.Count(l.log.String(), "removing backup") != 1 {
		t.Errorf("told %q\n%s", told, l.log)
	}
	l.proxy.Set(nil)
	l.retain()
	l.want("3.db")
}

// 183: a backup whose manifest is archived is neither counted nor removed, and keeps
// no other from being removed.
func TestRetentionBesideAnArchivedBackup(t *testing.T) {
	l := startLocker(t, 5, func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(2)) })
	newest := l.stored()[0]
	l.proxy.Set(func(w http.ResponseWriter, r *http.Request) bool {
		archived := r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/1.db")
		if archived {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, "<Error><Code>InvalidObjectState</Code></Error>")
		}
		return archived
	})
	l.note(newest)
	l.pass()
	l.proxy.Set(nil)
	l.want("1.db", "3.db", "4.db")
}

// 184: what a drill has found is kept in the record where the store refuses to note it,
// told of once, and known to retention: a condemned backup takes no good one's place. A
// store that is away is no refusal, and a verdict that can be written later is.
func TestVerdictsThatTheStoreRefuses(t *testing.T) {
	l := startLocker(t, 3, func(s *schema.BackupScheduleSpec) {
		s.Retention.KeepLast, s.Verify.Restore = new(int32(1)), schema.DrillNever
	})
	judge := func(n int, problem string) error {
		j := jobs.Judgement{Over: true, Ended: time.Now(), Result: jobs.DrillResult{Problem: problem}}
		return l.s.DrillJudged(t.Context(), l.q, l.url(fmt.Sprint(n, ".db")), l.time(n), j)
	}
	writes := func(fault backuptest.Fault) backuptest.Fault {
		return func(w http.ResponseWriter, r *http.Request) bool { return r.Method == http.MethodPut && fault(w, r) }
	}
	l.proxy.Set(writes(backuptest.Answer(http.StatusNotImplemented)))
	if err := judge(2, "the hash differs"); err == nil || len(l.record().Verdicts) > 0 {
		t.Fatalf("%v, %+v", err, l.record())
	}
	l.proxy.Set(writes(backuptest.Answer(http.StatusForbidden)))
	for _, n := range []int{2, 1} {
		if err := judge(n, "the hash differs"); err != nil {
			t.Fatal(err)
		}
	}
	if told := l.told("RestoreDrillNotStored"); len(told) != 1 || len(l.record().Verdicts) != 2 {
		t.Errorf("told %q, %+v", told, l.record().Verdicts)
	}
	l.retain() // the rule names the newest good one, and those that are as new
	l.want("0.db", "2.db")
	if kept := l.record().Verdicts; len(kept) != 1 {
		t.Errorf("of a backup that is gone there is %+v", kept)
	}
	l.proxy.Set(nil)
	if err := judge(2, ""); err != nil || len(l.record().Verdicts) > 0 || l.stored()[0].Drill.Result != backup.DrillPassed {
		t.Errorf("%v, %+v, %+v", err, l.record().Verdicts, l.stored()[0].Drill)
	}
}
