package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// answerCode is an answer of S3 with a code of its own.
func answerCode(status int, code string) backuptest.Fault {
	return func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
		return true
	}
}

// only makes a fault happen to the reading of the manifests of these keys.
func only(fault backuptest.Fault, keys ...string) backuptest.Fault {
	return func(w http.ResponseWriter, r *http.Request) bool {
		reads := r.Method == http.MethodGet && slices.ContainsFunc(keys, func(key string) bool { return strings.HasSuffix(r.URL.Path, "/"+key+ManifestSuffix) })
		return reads && fault(w, r)
	}
}

// 183: one manifest that cannot be read hides nothing but itself: the list has all
// others, and says which one is missing and why. A store that gives nothing out, or
// does not answer, is an error as before, and no list.
func TestOneUnreadableManifestHidesNothingElse(t *testing.T) {
	s := backuptest.StartS3(t)
	p := behind(t, s.Address, s.URL, backuptest.Certificate{})
	all := []string{"1.db", "2.db", "3.db"}
	for i, key := range all {
		p.save(t, key, backuptest.Snapshot(4096), func(m *Manifest) { m.Time = m.Time.Add(time.Duration(i) * time.Hour) })
	}
	archived := answerCode(http.StatusForbidden, "InvalidObjectState")
	for name, c := range map[string]struct {
		fault  backuptest.Fault
		listed int
		want   string
		whole  bool
	}{
		"nothing in the way":     {nil, 3, "", false},
		"one is archived":        {only(archived, "2.db"), 2, "2.db: it is archived and cannot be read at once", false},
		"all are archived":       {only(archived, all...), 0, "it is archived", false},
		"one is denied":          {only(backuptest.Answer(http.StatusForbidden), "1.db"), 2, "1.db: permission denied", false},
		"all but one are denied": {only(backuptest.Answer(http.StatusForbidden), "1.db", "3.db"), 1, "permission denied", false},
		"all are denied":         {only(backuptest.Answer(http.StatusForbidden), all...), 0, "permission denied", true},
		"the rest is archived": {func(w http.ResponseWriter, r *http.Request) bool {
			return only(archived, "1.db", "2.db")(w, r) || only(backuptest.Answer(http.StatusForbidden), "3.db")(w, r)
		}, 0, "permission denied", true},
		"one fails":         {only(backuptest.Answer(http.StatusInternalServerError), "3.db"), 2, "3.db: the store failed", false},
		"one is silent":     {only(backuptest.Silence, "3.db"), 0, "did not answer in time", true},
		"one drops":         {only(backuptest.Drop, "3.db"), 0, "the store ", true},
		"nothing is listed": {backuptest.Answer(http.StatusForbidden), 0, "permission denied", true},
	} {
		t.Run(name, func(t *testing.T) {
			p.proxy.Set(c.fault)
			defer p.proxy.Set(nil)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			list, err := p.store.List(ctx, p.url(""))
			broken := (*BrokenManifests)(nil)
			if errors.As(err, &broken) == (c.whole || c.want == "") || len(list) != c.listed {
				t.Fatalf("%d are listed, want %d: %v", len(list), c.listed, err)
			}
			if c.want != "" {
				backuptest.WantError(t, err, c.want)
			} else if err != nil {
				t.Fatal(err)
			}
			if broken != nil && len(list)+len(broken.Errors) != len(all) {
				t.Errorf("%d are listed, and %d are not", len(list), len(broken.Errors))
			}
			if !slices.IsSortedFunc(list, newestFirst) {
				t.Errorf("%v", list)
			}
		})
	}
}

// 184: a store that refuses to remove or to change one object is told from one that
// fails: the next object may go, and the refused one is tried again some day.
func TestRefusalsAreToldFromFailures(t *testing.T) {
	s := backuptest.StartS3(t)
	p := behind(t, s.Address, s.URL, backuptest.Certificate{})
	p.save(t, "good.db", backuptest.Snapshot(4096))
	writes := func(fault backuptest.Fault) backuptest.Fault {
		return func(w http.ResponseWriter, r *http.Request) bool {
			return r.Method != http.MethodGet && r.Method != http.MethodHead && fault(w, r)
		}
	}
	for name, c := range map[string]struct {
		fault backuptest.Fault
		want  bool
	}{
		"permission":       {writes(backuptest.Answer(http.StatusForbidden)), true},
		"a lock":           {writes(answerCode(http.StatusForbidden, "AccessDenied")), true},
		"a policy":         {writes(answerCode(http.StatusConflict, "BlobImmutableDueToPolicy")), true},
		"not that way":     {writes(answerCode(http.StatusMethodNotAllowed, "MethodNotAllowed")), true},
		"too many of them": {writes(answerCode(http.StatusTooManyRequests, "SlowDown")), false},
		"an outage":        {writes(backuptest.Answer(http.StatusInternalServerError)), false},
		"silence":          {writes(backuptest.Silence), false},
		"a broken line":    {writes(backuptest.Drop), false},
	} {
		p.proxy.Set(c.fault)
		for op, try := range map[string]func(ctx context.Context) error{
			"remove": func(ctx context.Context) error { return p.store.Remove(ctx, p.url("good.db")) },
			"annotate": func(ctx context.Context) error {
				return p.store.Annotate(ctx, p.url("good.db"), func(m *Manifest) { m.Drill.Result = name })
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			err := try(ctx)
			cancel()
			if err == nil || Refused(err) != c.want {
				t.Errorf("%s, %s: refused %t: %v", name, op, Refused(err), err)
			}
		}
		p.proxy.Set(nil)
		if _, err := p.store.Verify(t.Context(), p.url("good.db")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := p.store.Remove(t.Context(), p.url("gone.db"))
	if backuptest.WantError(t, err, "no backup is stored there"); Refused(err) {
		t.Error("what is not there is refused")
	}
}

// 184: a bucket with object lock takes backups, gives them out, and refuses to change
// or to remove one: nothing is lost by trying, and quorate knows it for a refusal.
func TestObjectLockRefuses(t *testing.T) {
	s := backuptest.StartS3(t)
	o, _, err := Store{Drivers: drivers}.open(t.Context(), "test", s.URL("x"), asking)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.close)
	var client *s3.Client
	if !o.bucket.As(&client) {
		t.Fatal("no S3 client")
	}
	bucket, day := "locked", int32(1)
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket, ObjectLockEnabledForBucket: new(true)}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutObjectLockConfiguration(t.Context(), &s3.PutObjectLockConfigurationInput{Bucket: &bucket, ObjectLockConfiguration: &types.ObjectLockConfiguration{
		ObjectLockEnabled: types.ObjectLockEnabledEnabled,
		Rule:              &types.ObjectLockRule{DefaultRetention: &types.DefaultRetention{Mode: types.ObjectLockRetentionModeCompliance, Days: &day}},
	}}); err != nil {
		t.Fatal(err)
	}
	p := place{store: Store{Drivers: drivers}, base: "s3://locked/", query: strings.TrimPrefix(s.URL(""), "s3://backups/")}
	saved := p.save(t, "good.db", backuptest.Snapshot(4096))
	before := p.keys(t)
	for op, err := range map[string]error{
		"remove":   p.store.Remove(t.Context(), p.url("good.db")),
		"annotate": p.store.Annotate(t.Context(), p.url("good.db"), func(m *Manifest) { m.Drill.Result = DrillPassed }),
	} {
		if backuptest.WantError(t, err, "locked/good.db", "the store keeps it as it is"); !Refused(err) {
			t.Errorf("%s: %v", op, err)
		}
	}
	if after := p.keys(t); !slices.Equal(after, before) || len(after) != 2 {
		t.Errorf("there was %q, and is %q", before, after)
	}
	if m, err := p.store.Verify(t.Context(), p.url("good.db")); err != nil || m.SHA256 != saved.SHA256 || m.Drill.Result != "" {
		t.Errorf("%+v, %v", m, err)
	}
}
