package stores_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
)

// 192, 193: a pod reads a backup by a signed URL where there is one, else with what its
// destination gives to pods; where it gives nothing, that is said with what to do.
func TestWaysToReadABackup(t *testing.T) {
	const file, google = "file:///backups/shop/1.db", "gs://backups/1.db"
	reader := schema.PodAccess{ServiceAccountName: "reader"}
	for name, c := range map[string]struct {
		signs bool
		from  stores.Offered
		want  stores.Way
		err   string
	}{
		"it is signed":                 {true, stores.Offered{ObjectURL: google, Credentials: "s", Pod: reader}, stores.Way{}, ""},
		"with the Secret":              {false, stores.Offered{ObjectURL: google, Credentials: "s"}, stores.Way{Credentials: "s"}, ""},
		"as a ServiceAccount":          {false, stores.Offered{ObjectURL: google, Pod: reader}, stores.Way{ServiceAccount: "reader"}, ""},
		"on a volume":                  {false, stores.Offered{ObjectURL: file, Pod: schema.PodAccess{ClaimName: "backups"}}, stores.Way{Claim: "backups", Root: "/backups"}, ""},
		"on a volume mounted deeper":   {false, stores.Offered{ObjectURL: file + "?root=/backups/shop", Pod: schema.PodAccess{ClaimName: "backups"}}, stores.Way{Claim: "backups", Root: "/backups/shop"}, ""},
		"nothing for a file":           {false, stores.Offered{ObjectURL: file, Credentials: "s"}, stores.Way{}, "podAccess.claimName"},
		"nothing for a store":          {false, stores.Offered{ObjectURL: google}, stores.Way{}, "podAccess.serviceAccountName"},
		"a claim is of no use for one": {false, stores.Offered{ObjectURL: google, Pod: schema.PodAccess{ClaimName: "backups"}}, stores.Way{}, "credentials.secretName"},
	} {
		t.Run(name, func(t *testing.T) {
			all := stores.Stores{Sign: func(context.Context, backup.Store, string, time.Duration) (string, error) {
				if !c.signs {
					return "", errors.New("iam.serviceAccounts.signBlob was denied")
				}
				return "https://store/1.db?signature=x", nil
			}}
			way, signed, err := all.Way(t.Context(), backup.Store{}, c.from)
			if way != c.want || (signed != "") != c.signs {
				t.Errorf("%+v, %q, want %+v", way, signed, c.want)
			}
			if (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), "signBlob")) {
				t.Errorf("%v, want %q", err, c.err)
			}
		})
	}
}

// A pod without credentials can read the backup, and nothing else, by the URL that it is given; the URL does not hold
// the credentials.
func TestSignedURLOpensTheBackup(t *testing.T) {
	s, snapshot := backuptest.StartS3(t), backuptest.Snapshot(64<<10)
	store := backup.Store{Drivers: clouds.Drivers()}
	url := s.URL("c1.db")
	if _, err := store.Save(t.Context(), url, bytes.NewReader(snapshot), backup.Manifest{}); err != nil {
		t.Fatal(err)
	}
	way, signed, err := stores.Stores{}.Way(t.Context(), store, stores.Offered{ObjectURL: url})
	if err != nil || way != (stores.Way{}) || strings.Contains(signed, backuptest.Secret) {
		t.Fatalf("%+v, %v, or the secret is in the URL", way, err)
	}
	get := func(url string) (int, []byte) {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, text
	}
	if code, text := get(signed); code != http.StatusOK || !bytes.Equal(text, snapshot) {
		t.Errorf("the store answers %d with %d bytes", code, len(text))
	}
	plain, _, _ := strings.Cut(signed, "?")
	if code, _ := get(plain); code == http.StatusOK {
		t.Error("the test proves nothing: anybody can read the bucket")
	}
	other := strings.Replace(signed, "/c1.db?", "/c1.db"+backup.ManifestSuffix+"?", 1)
	if code, _ := get(other); code == http.StatusOK {
		t.Error("the URL opens another object as well")
	}
}
