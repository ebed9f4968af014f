package backup

import (
	"bytes"
	"crypto/x509"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob/fileblob"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/driver"
)

// A Secret that says anything about an account is never made up for by the process's
// own credentials.
func TestEnvironment(t *testing.T) {
	type secret = map[string][]byte
	for name, c := range map[string]struct {
		secret secret
		want   bool
	}{
		"none":              {nil, true},
		"a CA alone":        {secret{driver.KeyCA: nil}, true},
		"empty":             {secret{}, false},
		"a key":             {secret{"access-key-id": nil}, false},
		"a CA and a key":    {secret{driver.KeyCA: nil, "access-key-id": nil}, false},
		"of another kind":   {secret{"x": nil}, false},
		"of other two keys": {secret{"x": nil, "y": nil}, false},
	} {
		if got := (Store{Drivers: drivers, Credentials: c.secret}).FromEnvironment(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A CA that a restore is given comes before the Secret's, and the system's are
// trusted beside it.
func TestAuthority(t *testing.T) {
	own, given := backuptest.NewCertificate(t).CA, backuptest.NewCertificate(t).CA
	st := Store{Drivers: drivers, Credentials: map[string][]byte{driver.KeyCA: own}}
	if string(st.Authority()) != string(own) {
		t.Error("the Secret's is not taken")
	}
	if st.CA = given; string(st.Authority()) != string(given) {
		t.Error("the one that was given is not taken")
	}
	want, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	want.AppendCertsFromPEM(own)
	if !Trusting(own).TLSClientConfig.RootCAs.Equal(want) {
		t.Error("other certificates are trusted than the system's and the given one")
	}
}

// The URL's own region comes before that of the Secret, which stands in for none.
func TestRegion(t *testing.T) {
	file := map[string][]byte{
		"credentials": []byte("[default]\naws_access_key_id = a\naws_secret_access_key = b\n"),
		"config":      []byte("[default]\nregion = eu-west-1\n"),
	}
	wantRegion(t, Store{Drivers: drivers, Credentials: file}, "", "eu-west-1")
	wantRegion(t, Store{Drivers: drivers, Credentials: file}, "region=us-east-2", "us-east-2")
}

// wantRegion opens a bucket, and looks at the client.
func wantRegion(t *testing.T, st Store, query, want string) {
	t.Helper()
	s, _, err := st.open(t.Context(), "test", "s3://backups/x.db?"+query, asking)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	var client *s3.Client
	if !s.bucket.As(&client) || client.Options().Region != want {
		t.Errorf("%q: %s", query, client.Options().Region)
	}
}

// Without a Secret the profile of the process's own files counts.
func TestOwnProfile(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("[profile backups]\nregion = eu-west-3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", config)
	wantRegion(t, Store{Drivers: drivers}, "profile=backups", "eu-west-3")
}

// A root that is a file is no directory to write into.
func TestRootThatIsAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Store{Drivers: drivers}.Verify(t.Context(), "file://"+file+"/x.db?root="+url.QueryEscape(file))
	backuptest.WantError(t, err, "the directory "+file+" does not exist")
}

// What comes with the end of a stream is not lost, and a stream that fails is told.
func TestUploadReader(t *testing.T) {
	failed := 0
	u := &uploadReader{r: iotest.DataErrReader(strings.NewReader("snapshot")), fail: func() { failed++ }}
	if text, err := io.ReadAll(u); string(text) != "snapshot" || err != nil || failed != 0 {
		t.Errorf("%q, %v, failed %d times", text, err, failed)
	}
	u = &uploadReader{r: iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("snapshot"))), fail: func() { failed++ }}
	if text, err := io.ReadAll(u); string(text) != "s" || !errors.Is(err, iotest.ErrTimeout) || failed != 1 {
		t.Errorf("%q, %v, failed %d times", text, err, failed)
	}
}

// A store that was reached by connections of its own closes them.
func TestCloseEndsConnections(t *testing.T) {
	bucket, err := fileblob.OpenBucket(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := false
	closing := &driver.Bucket{Bucket: bucket, CloseIdle: func() { ended = true }}
	(&object{bucket: closing, ended: func() {}}).close()
	if !ended {
		t.Error("they are left open")
	}
}

// A change is asked for once where nobody is in its way.
func TestAnnotateOnce(t *testing.T) {
	dir := t.TempDir()
	at := "file://" + dir + "/x.db?root=" + dir
	if _, err := (Store{Drivers: drivers}).Save(t.Context(), at, bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest()); err != nil {
		t.Fatal(err)
	}
	asked := 0
	if err := (Store{Drivers: drivers}).Annotate(t.Context(), at, func(*Manifest) { asked++ }); err != nil || asked != 1 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}
