package schema_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/schema"
)

func TestObjectURLPlace(t *testing.T) {
	for template, want := range map[string]string{
		"s3://backups/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?region=eu-west-1": "s3://backups/shop/",
		"s3://backups/etcd/{{ .Namespace }}/{{ .UID }}.db":                         "s3://backups/etcd/shop/",
		"s3://{{ .Namespace }}-backups/{{ .UID }}.db":                              "s3://shop-backups/",
		"s3://backups/{{ .Namespace }}-{{ .UID }}.db":                              "s3://backups/",
		"s3://backups/{{ .Name }}/{{ .Namespace }}/{{ .UID }}.db":                  "s3://backups/",
		"file:///var/backups/{{ .Namespace }}/{{ .UID }}.db?root=/var/backups":     "file:///var/backups/shop/",
		"s3://archive/{{ .Namespace }}/":                                           "s3://archive/shop/",
		"s3://archive/{{ .Namespace }}":                                            "s3://archive/shop/",
		"s3://archive":                                                             "s3://archive/",
		"file:///":                                                                 "file:///",
	} {
		if got, err := schema.ObjectURLPlace(template, "shop"); got != want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", template, got, err, want)
		}
	}
	for template, want := range map[string]string{
		"s3://{{ .Name }}/{{ .UID }}.db":              "the same for all backups",
		"s3://backups-{{ .Name }}/{{ .UID }}.db":      "the same for all backups",
		"s3://{{ printf .Namespace }}/":               "only {{ .Namespace }}",
		"s3://key:word@backups/{{ .Namespace }}/":     "must not be in the URL",
		"http://backups/{{ .Namespace }}/":            "the scheme must be",
		"s3://backups/{{ .Namespace }}/../{{ .UID }}": "the segment ..",
		"file://host/backups/{{ .Namespace }}/":       "an absolute path",
		"":                                            "the same for all backups",
	} {
		if got, err := schema.ObjectURLPlace(template, "shop"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v; want an error that says %q", template, got, err, want)
		}
	}
}

func TestWhatLiesInAPlace(t *testing.T) {
	const place = "s3://backups/shop/"
	for _, in := range []string{
		"s3://backups/shop/orders/1.db", "s3://backups/shop/1.db?region=eu-west-1", "s3://backups/shop/", "s3://backups/shop/orders/?region=eu-west-1", "s3://backups/shop/a%20b.db",
	} {
		if !schema.InObjectURLPlace(place, in) {
			t.Errorf("%s is not in %s", in, place)
		}
	}
	if !schema.InObjectURLPlace("s3://backups/a%20b/", "s3://backups/a%20b/1.db") {
		t.Error("an encoded name is another one")
	}
	for _, out := range []string{
		"s3://backups/pay/1.db", "s3://backups/shop-eu/1.db", "s3://backups/shop", "s3://other/shop/1.db", "gs://backups/shop/1.db", "s3://backups/",
		"s3://backups/shop/../pay/1.db", "s3://backups/shop/%2e%2e/pay/1.db", "s3://backups/shop//1.db", "s3://backups/shop/1.db#2", "s3://me@backups/shop/1.db", "s3:backups/shop/1.db", "%",
	} {
		if schema.InObjectURLPlace(place, out) {
			t.Errorf("%s is in %s", out, place)
		}
	}
}
