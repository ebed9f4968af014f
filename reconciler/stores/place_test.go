package stores_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
)

// placed is a directory with a backup of shop/orders, one of bank/users and one of nobody, and the place
// that Git gives to those of shop/orders.
func placed(t *testing.T) (dir string, place stores.Place) {
	t.Helper()
	dir = t.TempDir()
	for at, m := range map[string]backup.Manifest{
		"shop/orders/own.db":    {Namespace: "shop", Name: "orders"},
		"shop/orders/theirs.db": {Namespace: "bank", Name: "users"},
		"shop/orders/near.db":   {Namespace: "bank", Name: "orders"},
		"shop/orders/old.db":    {},
		"bank/users/theirs.db":  {Namespace: "bank", Name: "users"},
		"shop/orders2/own.db":   {Namespace: "shop", Name: "orders"},
		"shop/lying.db":         {Namespace: "shop", Name: "orders"},
	} {
		if _, err := (backup.Store{}).Save(t.Context(), "file://"+dir+"/"+at+"?root="+dir, bytes.NewReader(backuptest.Snapshot(4096)), m); err != nil {
			t.Fatal(err)
		}
	}
	place, err := stores.NewPlace("file://"+dir+"/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?root="+dir, schema.ObjectURLData{Namespace: "shop", Name: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	return dir, place
}

// claimed reads the backup that a record names, as those do that obey the record.
func claimed(t *testing.T, place stores.Place, objectURL string) (at string, m backup.Manifest, err error) {
	t.Helper()
	if at, err = place.At(objectURL); err != nil {
		return at, m, err
	}
	if m, err = (backup.Store{}).ReadManifest(t.Context(), at); err != nil {
		return at, m, err
	}
	return at, m, place.Owns(m)
}

// 470: what a record names is a backup of its object where it lies in the place that Git
// gives and its manifest says so; it is reached as Git says.
func TestWhatLiesInAPlace(t *testing.T) {
	dir, place := placed(t)
	for at, want := range map[string]bool{
		"/shop/orders/own.db?root=" + dir:                 true,
		"/shop/orders/own.db":                             true,
		"/shop/orders/own.db?root=/":                      true, // which is not used
		"/shop/orders/%6Fwn.db":                           true,
		"/shop/orders/theirs.db":                          false,
		"/shop/orders/near.db":                            false,
		"/shop/orders/old.db":                             false,
		"/bank/users/theirs.db?root=" + dir:               false,
		"/shop/orders/../../bank/users/theirs.db":         false,
		"/shop/orders/%2e%2e/%2e%2e/bank/users/theirs.db": false,
		"/shop/orders2/own.db":                            false,
		"/shop/lying.db":                                  false,
		"/shop/orders/../lying.db":                        false,
		"/shop/orders//own.db":                            false,
		"/shop/orders/own.db#x":                           false,
		"/shop/orders/":                                   false,
		"/shop/orders":                                    false,
		"":                                                false,
	} {
		got, m, err := claimed(t, place, "file://"+dir+at)
		if (err == nil) != want || err != nil && !errors.Is(err, stores.ErrForeign) {
			t.Errorf("%s: %v", at, err)
		}
		if want && (m.Name != "orders" || !strings.HasSuffix(got, "?root="+dir) || strings.Count(got, "?") != 1) {
			t.Errorf("%s: %s, %+v", at, got, m)
		}
	}
	for _, u := range []string{"s3://backups" + dir + "/shop/orders/own.db", "file://host" + dir + "/shop/orders/own.db", "file://user:hunter2@" + dir + "/shop/orders/own.db", "%", ""} {
		if _, _, err := claimed(t, place, u); !errors.Is(err, stores.ErrForeign) {
			t.Errorf("%s: %v", u, err)
		}
	}
	// The store itself is asked about what lies there.
	if _, _, err := claimed(t, place, "file://"+dir+"/shop/orders/none.db"); !errors.Is(err, backup.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// 471: a place gives the URLs that quorate makes there, and no others.
func TestWhatAPlaceGives(t *testing.T) {
	dir, place := placed(t)
	template := "file://" + dir + "/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?root=" + dir
	made, err := stores.NewURL(template, schema.ObjectURLData{Namespace: "shop", Name: "orders", Version: "3.6.16"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil || place.Gives(made) != nil {
		t.Errorf("%s: %v, %v", made, err, place.Gives(made))
	}
	for _, other := range []string{
		strings.Replace(made, "orders", "users", 1), strings.Replace(made, "shop", "bank", 1), strings.Replace(made, ".db", ".db.manifest.json", 1),
		strings.Replace(made, "?root="+dir, "", 1), made + "&endpoint=http://other", strings.Replace(made, "2026", "keep", 1), strings.Replace(made, "orders/", "orders/x/", 1), "",
	} {
		if err := place.Gives(other); !errors.Is(err, stores.ErrForeign) {
			t.Errorf("%s: %v", other, err)
		}
	}
	if err := (stores.Place{}).Gives(made); !errors.Is(err, stores.ErrForeign) {
		t.Errorf("no place gives it: %v", err)
	}
	if text := fmt.Sprint(place.Gives("s3://b/1.db?secret=hunter2")); strings.Contains(text, "hunter2") || !strings.Contains(text, "s3://b/1.db") || !strings.Contains(text, "file://"+dir+"/shop/orders/") {
		t.Errorf("it says %s", text)
	}
	if _, err := stores.NewPlace("", schema.ObjectURLData{Namespace: "shop", Name: "orders"}); err == nil || !strings.Contains(err.Error(), "shop/orders") {
		t.Errorf("no template: %v", err)
	}
}
