package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// refuse is a store that refuses only the requests that are meant.
func refuse(meant func(*http.Request) bool) backuptest.Fault {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return meant(r) && backuptest.Answer(http.StatusForbidden)(w, r)
	}
}

func isManifest(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, ManifestSuffix) }

// Operations on an object of a place.
func saveAt(ctx context.Context, p place, key string) error {
	_, err := p.store.Save(ctx, p.url(key), bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest())
	return err
}

func openAt(ctx context.Context, p place, key string) error {
	r, _, err := p.store.Open(ctx, p.url(key))
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	_, err = io.Copy(io.Discard, r)
	return err
}

func discardAt(ctx context.Context, p place, key string) error {
	return p.store.Discard(ctx, p.url(key))
}

func removeAt(ctx context.Context, p place, key string) error {
	return p.store.Remove(ctx, p.url(key))
}

func listAt(ctx context.Context, p place, key string) error {
	_, err := p.store.List(ctx, p.url(key))
	return err
}

// One request of an operation is refused and every other one works: the operation
// fails, and neither destroys anything nor leaves half of it.
func TestRefusedRequestFailsTheOperation(t *testing.T) {
	s := backuptest.StartS3(t)
	reads := func(r *http.Request) bool { return r.Method == http.MethodGet && isManifest(r) }
	readsObject := func(r *http.Request) bool { return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".db") }
	for name, c := range map[string]struct {
		refused func(*http.Request) bool
		try     func(ctx context.Context, p place, key string) error
		key     string
		// gone is what is no longer stored, and want what else the error says.
		gone, want string
	}{
		"save: what is there already is not said": {
			refused: func(r *http.Request) bool { return r.Method == http.MethodHead }, try: saveAt, key: "new.db",
		},
		"save: the manifest is not taken": {
			refused: func(r *http.Request) bool { return r.Method == http.MethodPut && isManifest(r) }, try: saveAt, key: "new.db",
		},
		"save: what was stored is not given out": {refused: readsObject, try: saveAt, key: "new.db"},
		"open: the manifest is not given out":    {refused: isManifest, try: openAt, key: "good.db"},
		"open: the object is not given out":      {refused: readsObject, try: openAt, key: "good.db"},
		// Whether it is finished is unknown, and it may be a good backup.
		"discard: the manifest is not given out": {refused: isManifest, try: discardAt, key: "good.db"},
		"discard: the uploads are not listed": {
			refused: func(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Query().Has("uploads") }, try: discardAt, key: "half.db",
		},
		"discard: the upload is not ended": {
			refused: func(r *http.Request) bool { return r.Method == http.MethodDelete && r.URL.Query().Has("uploadId") }, try: discardAt, key: "half.db",
		},
		"discard: the object is not removed": {
			refused: func(r *http.Request) bool { return r.Method == http.MethodDelete && !r.URL.Query().Has("uploadId") }, try: discardAt, key: "half.db",
		},
		"remove: the manifest is not given out": {refused: reads, try: removeAt, key: "good.db"},
		"remove: the manifest is not deleted": {
			refused: func(r *http.Request) bool { return r.Method == http.MethodDelete && isManifest(r) }, try: removeAt, key: "good.db",
		},
		"remove: the object is not deleted": {
			refused: func(r *http.Request) bool { return r.Method == http.MethodDelete && !isManifest(r) }, try: removeAt, key: "good.db",
			gone: "good.db" + ManifestSuffix, want: "the manifest is deleted, and the object is not",
		},
		"list: a manifest is not given out": {refused: reads, try: listAt},
	} {
		t.Run(name, func(t *testing.T) {
			p := behind(t, s.Address, s.URL, backuptest.Certificate{})
			p.save(t, "good.db", backuptest.Snapshot(4096))
			if err := p.bucket(t).WriteAll(t.Context(), "half.db", []byte("half"), nil); err != nil {
				t.Fatal(err)
			}
			startUploads(t, p.place, "half.db")
			before := p.keys(t)
			p.proxy.Set(refuse(c.refused))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err := c.try(ctx, p.place, c.key)
			p.proxy.Set(nil)
			backuptest.WantError(t, err, cmp.Or(c.want, "permission denied"))
			if broken := (*BrokenManifests)(nil); errors.As(err, &broken) {
				t.Error("what was not given out counts as damaged")
			}
			want := slices.DeleteFunc(slices.Clone(before), func(key string) bool { return key == c.gone })
			if after := p.keys(t); !slices.Equal(after, want) {
				t.Errorf("there was %q, and is %q", before, after)
			}
		})
	}
}

// What a save that failed could not remove is told, with who has to.
func TestWhatCannotBeRemovedIsTold(t *testing.T) {
	s := backuptest.StartS3(t)
	p := behind(t, s.Address, s.URL, backuptest.Certificate{})
	p.proxy.Set(refuse(func(r *http.Request) bool {
		return r.Method == http.MethodPut && isManifest(r) || r.Method == http.MethodDelete && !r.URL.Query().Has("uploadId")
	}))
	backuptest.WantError(t, saveAt(t.Context(), p.place, "new.db"), "permission denied", "could not be deleted", "delete it by hand")
}

// A connection that breaks while a backup is read says nothing about the backup.
func TestBrokenReadIsNoDamage(t *testing.T) {
	s, data := backuptest.StartS3(t), backuptest.Snapshot(1<<20)
	p := behind(t, s.Address, s.URL, backuptest.Certificate{})
	p.save(t, "good.db", data)
	p.proxy.Set(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || isManifest(r) {
			return false
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		panic(http.ErrAbortHandler)
	})
	_, err := p.store.Verify(t.Context(), p.url("good.db"))
	if backuptest.WantError(t, err, "verify backup", "the store "); strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
	p.proxy.Set(nil)
	if _, err := p.store.Verify(t.Context(), p.url("good.db")); err != nil {
		t.Error(err)
	}
}

// A file that is written under the object's name goes, and no other one.
func TestDiscardRemovesDraftsOfTheObjectOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b*")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x.123.tmp", "x.db.123.tmp", "y.123.tmp", "x.123", "other.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url := "file://" + strings.ReplaceAll(dir, "[", "%5B") + "/x"
	if err := (Store{Drivers: drivers}).Discard(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if left := filesBelow(t, dir); !slices.Equal(left, []string{"other.tmp", "x.123", "x.db.123.tmp", "y.123.tmp"}) {
		t.Errorf("left are %q", left)
	}
	if err := os.MkdirAll(filepath.Join(dir, "x.124.tmp", "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	backuptest.WantError(t, (Store{Drivers: drivers}).Discard(t.Context(), url), "discard unfinished backup", "x")
}

// Each mistake in a Secret for Google and for Azure is named, and no value of it.
func TestSecretsForGoogleAndAzure(t *testing.T) {
	authority := string(backuptest.NewCertificate(t).CA)
	for name, c := range map[string]struct {
		url    string
		secret map[string]string
		want   string
	}{
		"google, another kind":      {"gs://backups/x.db", map[string]string{"account": backuptest.Secret}, "lacks the key credentials.json"},
		"google, a CA alone":        {"gs://backups/x.db", map[string]string{"ca.crt": authority}, "lacks the key credentials.json"},
		"google, CA that is no PEM": {"gs://backups/x.db", map[string]string{"ca.crt": backuptest.Secret}, "has no certificate in PEM"},
		"google, no JSON":           {"gs://backups/x.db", map[string]string{"credentials.json": backuptest.Secret}, "is not the key of a service account"},
		"azure, another kind":       {"azblob://backups/x.db", map[string]string{"credentials.json": backuptest.Secret}, "lacks the key account"},
		"azure, a CA alone":         {"azblob://backups/x.db", map[string]string{"ca.crt": authority}, "lacks the key account"},
		"azure, CA that is no PEM":  {"azblob://backups/x.db", map[string]string{"ca.crt": backuptest.Secret}, "has no certificate in PEM"},
		"azure, no key":             {"azblob://backups/x.db", map[string]string{"account": "quorate"}, "lacks the key key"},
		"azure, a key that is none": {"azblob://backups/x.db", map[string]string{"account": "quorate", "key": backuptest.Secret + "*"}, "is not an access key"},
		"S3, half a profile":        {"s3://backups/x.db?region=r", map[string]string{"credentials": "[default]\naws_access_key_id = a\n"}, "has no aws_access_key_id and aws_secret_access_key"},
		"S3, the other half":        {"s3://backups/x.db?region=r", map[string]string{"credentials": "[default]\naws_secret_access_key = " + backuptest.Secret}, "has no aws_access_key_id and aws_secret_access_key"},
		"S3, comments":              {"s3://backups/x.db?region=r", map[string]string{"credentials": "[default]\n#aws_access_key_id = a\n;aws_access_key_id = b\naws_secret_access_key = c\n"}, "has no aws_access_key_id and aws_secret_access_key"},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for key, value := range c.secret {
				data[key] = []byte(value)
			}
			_, err := Store{Drivers: drivers, Credentials: data}.ReadManifest(t.Context(), c.url)
			backuptest.WantError(t, err, "read backup manifest", c.want)
			if strings.Contains(err.Error(), backuptest.Secret) {
				t.Errorf("it repeats the value: %v", err)
			}
		})
	}
}

// Nothing is stored that nobody could read, or that another one could.
func TestRecipientsThatAreNone(t *testing.T) {
	good := newIdentity(t).Recipient().String()
	for name, recipients := range map[string][]string{
		"no key":             {"hunter2"},
		"a private key":      {newIdentity(t).String()},
		"one that is empty":  {good, ""},
		"a comment":          {good, "# nobody"},
		"two in one":         {good + "\n" + good},
		"a key and nonsense": {good, "hunter2"},
	} {
		dir := t.TempDir()
		_, err := Store{Drivers: drivers, Recipients: recipients}.Save(t.Context(), "file://"+dir+"/x.db", bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest())
		backuptest.WantError(t, err, "one of the encryption recipients is no public key of age")
		if left := filesBelow(t, dir); len(left) > 0 || strings.Contains(err.Error(), recipients[len(recipients)-1]) && recipients[len(recipients)-1] != "" {
			t.Errorf("%s: left are %q: %v", name, left, err)
		}
	}
}

// What is wrong with a private key is said before anything else.
func TestPrivateKeysThatDoNotFit(t *testing.T) {
	owner, dir := newIdentity(t), t.TempDir()
	url := "file://" + dir + "/x.db"
	store := Store{Drivers: drivers, Recipients: []string{owner.Recipient().String()}}
	if _, err := store.Save(t.Context(), url, bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest()); err != nil {
		t.Fatal(err)
	}
	for identity, want := range map[string]string{
		"AGE-SECRET-KEY-1HUNTER2": "none of age's; give the line that begins with AGE-SECRET-KEY-",
		newIdentity(t).String():   "not for the private key that was given; give the private key of ",
	} {
		store.Identity = identity
		_, _, err := store.Open(t.Context(), url)
		backuptest.WantError(t, err, want)
	}
}

// An object URL that is none is refused by every operation.
func TestEveryOperationRefusesWhatIsNoURL(t *testing.T) {
	const url = "mem://b/k.db"
	st, ctx := Store{Drivers: drivers}, t.Context()
	for op, try := range map[string]func() error{
		"verify":        func() error { _, err := st.Verify(ctx, url); return err },
		"open":          func() error { _, _, err := st.Open(ctx, url); return err },
		"read manifest": func() error { _, err := st.ReadManifest(ctx, url); return err },
		"sign":          func() error { _, err := st.Sign(ctx, url, time.Minute); return err },
		"list":          func() error { _, err := st.List(ctx, url); return err },
		"remove":        func() error { return st.Remove(ctx, url) },
		"annotate":      func() error { return st.Annotate(ctx, url, func(*Manifest) {}) },
		"discard":       func() error { return st.Discard(ctx, url) },
	} {
		err := try()
		if backuptest.WantError(t, err, "scheme"); t.Failed() {
			t.Fatalf("%s: %v", op, err)
		}
	}
	_, err := st.Sign(ctx, "file://"+t.TempDir()+"/x.db", time.Minute)
	backuptest.WantError(t, err, "offer backup", "gives out no URL")
}

// A manifest that cannot be quorate's is no manifest.
func TestManifestsThatMakeNoSense(t *testing.T) {
	dir := t.TempDir()
	url := "file://" + dir + "/x.db"
	sum := strings.Repeat("0", 64)
	for text, want := range map[string]string{
		"{":                                 "not valid JSON",
		`{"size":1,"sha256":"` + sum + `"}`: "lacks formatVersion, size or sha256",
		`{"formatVersion":1,"sha256":"` + sum + `"}`:                              "lacks formatVersion, size or sha256",
		`{"formatVersion":1,"size":-1,"sha256":"` + sum + `"}`:                    "lacks formatVersion, size or sha256",
		`{"formatVersion":1,"size":1}`:                                            "lacks formatVersion, size or sha256",
		`{"formatVersion":2,"size":1,"compression":"lz5","sha256":"` + sum + `"}`: `compressed by "lz5"`,
		`{"formatVersion":999,"size":1,"sha256":"` + sum + `"}`:                   "has format 999",
		strings.Repeat(" ", maxManifestBytes+1):                                   "larger than 1 MiB",
	} {
		if err := os.WriteFile(filepath.Join(dir, "x.db"+ManifestSuffix), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Store{Drivers: drivers}.ReadManifest(t.Context(), url)
		backuptest.WantError(t, err, want)
		backuptest.WantError(t, Store{Drivers: drivers}.Annotate(t.Context(), url, func(*Manifest) {}), want)
	}
}
