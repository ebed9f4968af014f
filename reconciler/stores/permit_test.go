package stores_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
)

// storesOf are those of a daemon, in whose namespace shop there are a Secret with keys,
// one that has a CA and no keys, and one whose keys are for something else.
func storesOf(t *testing.T, backupURL string) stores.Stores {
	t.Helper()
	another := clustertest.StoreSecret("another", backuptest.S3Secret())
	another.Labels = map[string]string{naming.LabelUse: "something-else"}
	kube := fake.NewClientset(another, clustertest.StoreSecret("keys", backuptest.S3Secret()), clustertest.StoreSecret("authority", map[string][]byte{"ca.crt": backuptest.NewCertificate(t).CA}))
	return stores.Stores{
		Kube: kube, Log: slog.New(slog.DiscardHandler), Drivers: clouds.Drivers(), Calls: &backup.Calls{}, BackupURL: backupURL, Insecure: true,
	}
}

// ways are all ways in which the daemon comes to a store by what Git says: a template for
// backups, and the URL of one, with a Secret or without.
func ways(ctx context.Context, s stores.Stores, template, secret string) map[string]func() error {
	one, now := strings.ReplaceAll(template, "{{ .UID }}", "1"), time.Now()
	to := schema.Destination{ObjectURLTemplate: template, Credentials: schema.CredentialsSpec{SecretName: secret}}
	cluster := desired.Cluster{}
	cluster.Metadata.Namespace, cluster.Metadata.Name, cluster.Spec.Backup.Destination = "shop", "orders", to
	named := desired.Restore{Source: schema.RestoreSource{ObjectURL: one, Credentials: to.Credentials}}
	newest := desired.Restore{Source: schema.RestoreSource{ClusterName: "orders"}, From: &desired.RestoreFrom{Cluster: "orders", Destination: to}}
	find := func(w desired.Restore) error {
		_, err := s.Find(ctx, "shop", w, "", now)
		return err
	}
	chooses := func(w desired.Restore) error {
		c := cluster
		c.Restore = &w
		_, err := s.Choose(ctx, c, now)
		return err
	}
	ask := func(store backup.Store, err error) error {
		if err == nil {
			_, err = store.ReadManifest(ctx, one)
		}
		return err
	}
	return map[string]func() error{
		"a restore of one":     func() error { return find(named) },
		"a restore of any":     func() error { return find(newest) },
		"a plan to restore":    func() error { return chooses(named) },
		"a plan to choose":     func() error { return chooses(newest) },
		"what was reached":     func() error { _, err := s.Reached(ctx, cluster); return err },
		"a cluster's backup":   func() error { return ask(s.OfCluster(ctx, cluster, one)) },
		"a backup or schedule": func() error { return ask(s.Open(ctx, "shop", to, one)) },
		"a recovery":           func() error { return ask(s.OpenWith(ctx, "shop", secret, one)) },
	}
}

// What reaches the attacker without the daemon's judgement, so that the tests below would
// notice if it did.
func TestTheAttackerWouldHearOfTheIdentity(t *testing.T) {
	a := backuptest.StartAttacker(t)
	for url := range a.Reached("1.db") {
		before := a.Asked()
		if _, err := (backup.Store{Drivers: clouds.Drivers()}).ReadManifest(t.Context(), url); err == nil || a.Asked() == before {
			t.Errorf("%s: nothing was asked, %v", url, err)
		}
	}
}

// A file does not say where the daemon's identity goes, also where it was never validated;
// nor with a Secret that has no identity in it, but a CA that would be trusted.
func TestNoFileSendsTheDaemonsIdentityElsewhere(t *testing.T) {
	a := backuptest.StartAttacker(t)
	s := storesOf(t, "s3://backups/{{ .UID }}.db?region=us-east-1")
	for template, parameter := range a.Steering("{{ .UID }}.db") {
		for _, secret := range []string{"", "authority"} {
			for way, do := range ways(t.Context(), s, template, secret) {
				err := do()
				backuptest.WantError(t, err, "is not used: the parameter "+parameter+" ")
				if a.Asked() > 0 {
					t.Fatalf("%s, %s with Secret %q: the attacker was asked (%v)", template, way, secret, err)
				}
			}
		}
	}
}

// 488: a file does not have every Secret of its namespace used, but those whose owner says so.
func TestASecretIsUsedWhereItsOwnerSaysSo(t *testing.T) {
	a := backuptest.StartAttacker(t)
	for way, do := range ways(t.Context(), storesOf(t, ""), "s3://backups/{{ .UID }}.db?region=us-east-1&endpoint=http://"+a.Address, "another") {
		backuptest.WantError(t, do(), "Secret shop/another", "kubectl -n shop label secret another quorate.dev/use=backups")
		if a.Asked() > 0 {
			t.Fatalf("%s: the attacker was asked", way)
		}
	}
}

// With a Secret's own keys a file says where these go, but never with what else is the
// daemon's, such as another role.
func TestASecretsKeysGoWhereItsFileSays(t *testing.T) {
	a := backuptest.StartAttacker(t)
	s := storesOf(t, "")
	const place = "s3://backups/{{ .UID }}.db?region=us-east-1"
	for _, do := range ways(t.Context(), s, place+"&endpoint=http://"+a.Address, "keys") {
		before := a.Asked()
		if err := do(); err == nil || a.Asked() == before {
			t.Errorf("nothing was asked: %v", err)
		}
	}
	before := a.Asked()
	for _, do := range ways(t.Context(), s, place+"&role=arn:aws:iam::123456789012:role/admin", "keys") {
		backuptest.WantError(t, do(), "is not used: the parameter role ")
	}
	if a.Asked() != before {
		t.Error("the role was asked for")
	}
}

// Without --insecure-stores nothing is sent without TLS, whoever says so.
func TestNothingIsSentWithoutTLS(t *testing.T) {
	a := backuptest.StartAttacker(t)
	template := "s3://backups/{{ .UID }}.db?region=us-east-1&endpoint=http://" + a.Address
	for backupURL, secret := range map[string]string{"": "keys", template: ""} {
		s := storesOf(t, backupURL)
		s.Insecure = false
		for _, do := range ways(t.Context(), s, template, secret) {
			backuptest.WantError(t, do(), "is not used: by its parameter endpoint it is reached without TLS", "--insecure-stores")
		}
	}
	if a.Asked() > 0 {
		t.Errorf("%d requests were sent", a.Asked())
	}
}

// The daemon's own place is where its flag says, and is so for each namespace that the
// flag names; a file may name a backup there as it is listed, without parameters.
func TestTheDaemonsOwnPlaceIsWhereItsFlagSays(t *testing.T) {
	a := backuptest.StartAttacker(t)
	query := "?region=us-east-1&endpoint=http://" + a.Address + "/{{ .Namespace }}"
	s := storesOf(t, "s3://backups/{{ .Namespace }}/{{ .UID }}.db"+query)
	for _, template := range []string{"s3://backups/shop/{{ .UID }}.db" + strings.ReplaceAll(query, "{{ .Namespace }}", "shop"), ""} {
		for way, do := range ways(t.Context(), s, template, "") {
			if template == "" && (way == "a cluster's backup" || way == "a backup or schedule" || way == "a recovery" || strings.Contains(way, "of one") || strings.Contains(way, "to restore")) {
				continue // these have the URL that was made of the flag
			}
			before := a.Asked()
			if err := do(); err == nil || a.Asked() == before {
				t.Errorf("%s: nothing was asked: %v", way, err)
			}
		}
	}
	before := a.Asked()
	for _, do := range ways(t.Context(), s, "s3://backups/shop/{{ .UID }}.db"+strings.ReplaceAll(query, "{{ .Namespace }}", "bank"), "") {
		backuptest.WantError(t, do(), "is not used: the parameter endpoint ")
	}
	if a.Asked() != before {
		t.Error("the place of another namespace was asked")
	}
	_, err := s.Find(t.Context(), "shop", desired.Restore{Source: schema.RestoreSource{ObjectURL: "s3://backups/shop/1.db"}}, "", time.Now())
	if err == nil || a.Asked() == before {
		t.Errorf("a backup without parameters: nothing was asked, %v", err)
	}
}

// The daemon's own credentials serve what the platform names, each namespace at its own part
// of it, and nothing that a file names beside that.
func TestTheDaemonsIdentityServesItsPlacesAlone(t *testing.T) {
	a := backuptest.StartAttacker(t)
	query := "?region=us-east-1&endpoint=http://" + a.Address
	apart := storesOf(t, "s3://backups/{{ .Namespace }}/{{ .UID }}.db"+query)
	for _, template := range []string{"s3://backups/bank/{{ .UID }}.db", "s3://backups/{{ .UID }}.db", "s3://backups/shop-eu/{{ .UID }}.db", "s3://others/shop/{{ .UID }}.db"} {
		for way, do := range ways(t.Context(), apart, template+query, "") {
			err := do()
			backuptest.WantError(t, err, "is not used: quorate's own credentials serve namespace shop at s3://backups/shop/", "--backup-place", "credentials.secretName")
			if a.Asked() > 0 {
				t.Fatalf("%s, %s: it was asked (%v)", template, way, err)
			}
		}
	}
	for _, do := range ways(t.Context(), storesOf(t, ""), "s3://backups/shop/{{ .UID }}.db?region=us-east-1", "") {
		backuptest.WantError(t, do(), "serve namespace shop nowhere")
	}
	more := apart
	more.More = []string{"s3://others/{{ .Namespace }}/"}
	for name, c := range map[string]struct {
		stores   stores.Stores
		template string
		secret   string
	}{
		"a place of --backup-place": {more, "s3://others/shop/{{ .UID }}.db", ""},
		"a Secret's own keys":       {apart, "s3://backups/bank/{{ .UID }}.db", "keys"},
	} {
		for way, do := range ways(t.Context(), c.stores, c.template+query, c.secret) {
			before := a.Asked()
			if err := do(); err == nil || a.Asked() == before {
				t.Errorf("%s, %s: nothing was asked: %v", name, way, err)
			}
		}
	}
}

// The disk of the daemon is its own: files there are backups where the platform says so, and
// no Secret changes that.
func TestFilesAreBackupsWhereThePlatformSaysSo(t *testing.T) {
	dir := t.TempDir()
	s := storesOf(t, "file://"+dir+"/{{ .Namespace }}/{{ .UID }}.db")
	for _, secret := range []string{"", "keys"} {
		for _, template := range []string{"file:///etc/{{ .UID }}.db", "FILE:///etc/{{ .UID }}.db", "file://" + dir + "/bank/{{ .UID }}.db"} {
			for _, do := range ways(t.Context(), s, template, secret) {
				backuptest.WantError(t, do(), "is not used: files of quorate's own disk are backups of namespace shop at file://"+dir+"/shop/", "--backup-place")
			}
		}
		store, err := s.OpenWith(t.Context(), "shop", secret, "file://"+dir+"/shop/1.db")
		if err == nil {
			_, err = store.ReadManifest(t.Context(), "file://"+dir+"/shop/1.db")
		}
		if !errors.Is(err, backup.ErrNotFound) {
			t.Errorf("with Secret %q: %v", secret, err)
		}
	}
}

// What a file leaves out is added for the bucket of --backup-url alone, and never for a Secret.
func TestParametersAreThoseOfTheDaemonsPlace(t *testing.T) {
	const query = "?region=x&endpoint=https://minio"
	s := storesOf(t, "s3://backups/{{ .UID }}.db"+query)
	for _, c := range []struct{ url, secret, want string }{
		{"s3://backups/shop/1.db", "", "s3://backups/shop/1.db" + query},
		{"s3://backups/shop/1.db", "keys", "s3://backups/shop/1.db"},
		{"s3://backups/shop/1.db?region=y", "", "s3://backups/shop/1.db?region=y"},
		{"s3://others/shop/1.db", "", "s3://others/shop/1.db"},
		{"gs://backups/shop/1.db", "", "gs://backups/shop/1.db"},
		{"file:///backups/1.db", "", "file:///backups/1.db"},
		{"", "", ""},
	} {
		if got := s.At("shop", c.secret, c.url); got != c.want {
			t.Errorf("%s with Secret %q is %s, want %s", c.url, c.secret, got, c.want)
		}
	}
	for _, backupURL := range []string{"", "s3://backups/{{ .UID }}.db", "file:///backups/{{ .UID }}.db?root=/backups", "s3://no-uid/x?region=y"} {
		if got := storesOf(t, backupURL).At("shop", "", "file:///backups/1.db"); got != "file:///backups/1.db" {
			t.Errorf("%s with --backup-url %q", got, backupURL)
		}
	}
}

// What an earlier quorate has noted is judged as well before it is tidied.
func TestWhatWasBegunElsewhereIsNotTidied(t *testing.T) {
	a := backuptest.StartAttacker(t)
	s := storesOf(t, "")
	log := &strings.Builder{}
	s.Log = slog.New(slog.NewTextHandler(log, nil))
	template := "s3://backups/{{ .UID }}.db?region=us-east-1&endpoint=http://" + a.Address
	place, err := stores.NewPlace(template, schema.ObjectURLData{Namespace: "shop", Name: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	s.Discard(t.Context(), place, "", "shop/orders", strings.Replace(template, "{{ .UID }}", "20260101T000000Z-0123ab", 1))
	if a.Asked() > 0 || !strings.Contains(log.String(), "incomplete backup may have left an object") {
		t.Errorf("%d requests: %s", a.Asked(), log)
	}
}
