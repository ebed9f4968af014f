package schema

import (
	"fmt"
	"strings"
	"testing"
)

// steering are URLs by which a file would choose where the daemon's identity goes, or
// which one that is, with the parameter that does it.
var steering = map[string]string{
	"s3://b/UID.db?endpoint=https://attacker.example":                         "endpoint",
	"s3://b/UID.db?region=eu-west-1&endpoint=https://attacker.example":        "endpoint",
	"s3://b/UID.db?%65ndpoint=https://attacker.example":                       "endpoint",
	"s3://b/UID.db?use_path_style=true&endpoint=https://10.0.0.1:9000/x":      "endpoint",
	"s3://b/UID.db?hostname_immutable=true":                                   "hostname_immutable",
	"s3://b/UID.db?profile=admin":                                             "profile",
	"s3://b/UID.db?disable_https=true":                                        "disable_https",
	"s3://b/UID.db?region=eu-west-1&role=arn:aws:iam::1:role/admin":           "role",
	"gs://b/UID.db?universe_domain=attacker.example":                          "universe_domain",
	"gs://b/UID.db?endpoint=https://attacker.example/storage/v1/":             "endpoint",
	"gs://b/UID.db?private_key_path=/var/run/secrets/x":                       "private_key_path",
	"azblob://c/UID.db?domain=attacker.example":                               "domain",
	"AZBLOB://c/UID.db?domain=attacker.example":                               "domain",
	"azblob://c/UID.db?cdn=true&domain=attacker.example":                      "cdn",
	"azblob://c/UID.db?localemu=true&domain=attacker.example":                 "localemu",
	"azblob://c/UID.db?protocol=http":                                         "protocol",
	"azblob://c/UID.db?storage_account=attacker.example/x%3F":                 "storage_account",
	"azblob://c/UID.db?storage_account=other":                                 "storage_account",
	"s3://b/UID.db?kmskeyid=x&fips=true&endpoint=https://s3.attacker.example": "endpoint",
}

// No field that has an object URL lets a file steer the daemon's identity.
func TestAFileDoesNotSteerTheDaemonsIdentity(t *testing.T) {
	for url, param := range steering {
		template, object := strings.Replace(url, "UID", "{{ .UID }}", 1), strings.Replace(url, "UID", "1", 1)
		for field, text := range map[string]string{
			"spec.backup.destination.objectURLTemplate": clusterText("orders", `backup: {destination: {objectURLTemplate: "`+template+`"}}`),
			"spec.destination.objectURLTemplate":        backupText(`source: {clusterURL: "https://etcd:2379"}`, `destination: {objectURLTemplate: "`+template+`"}`),
			"spec.recovery.objectURL":                   clusterText("orders", `recovery: {clusterID: c1, objectURL: "`+object+`"}`),
			"spec.source.objectURL":                     restoreText("again", `source: {objectURL: "`+object+`"}`),
			"spec.clusterTemplate.backup.destination.objectURLTemplate": strings.Replace(restoreText("again", "source: {objectURL: s3://b/x.db}"),
				"storage: {", `backup: {destination: {objectURLTemplate: "`+template+`"}}, storage: {`, 1),
			"spec.backupTemplate.destination.objectURLTemplate": strings.Replace(scheduleOfURL(), "s3://b/{{ .UID }}", template, 1),
			"spec.verify.again": strings.Replace(scheduleOfURL(), "spec:\n", "spec:\n  verify: {restore: Always, again: \""+object+"\"}\n", 1),
		} {
			problems := one(text).Problems
			if len(problems) != 1 || problems[0].Warning || problems[0].Field != field || !strings.Contains(problems[0].Message, "the parameter "+param+" ") {
				t.Errorf("%s at %s:\n%s", url, field, lines(problems))
			}
		}
	}
}

// With a Secret of its own a file says where these credentials go; what would use an identity
// or a file of the daemon stays refused.
func TestASecretMayGoWhereItsFileSays(t *testing.T) {
	for url, param := range steering {
		err := CheckStoreAccess(strings.Replace(url, "UID", "1", 1), true, "")
		if daemons := param == "role" || param == "private_key_path"; (err != nil) != daemons {
			t.Errorf("%s: %v", url, err)
		}
	}
	for name, text := range map[string]string{
		"a cluster":  clusterText("orders", `backup: {destination: {objectURLTemplate: "s3://b/{{ .UID }}?endpoint=https://minio", credentials: {secretName: s3}}}`),
		"a recovery": clusterText("orders", `recovery: {clusterID: c1, objectURL: "s3://b/1?endpoint=https://minio"}`, "backup: {destination: {credentials: {secretName: s3}}}"),
		"a restore":  restoreText("again", `source: {objectURL: "s3://b/1?endpoint=https://minio", credentials: {secretName: s3}}`),
		"a drill of what its cluster's file may name the Secret for": strings.Replace(scheduleText("nightly", "orders", ""),
			"spec:\n", "spec:\n  verify: {restore: Always, again: \"s3://b/1?endpoint=https://minio\"}\n", 1) + "---\n" + clusterText("orders"),
	} {
		if problems := one(text).Problems; len(problems) > 0 {
			t.Errorf("%s:\n%s", name, lines(problems))
		}
	}
}

// What the daemon's --backup-url says holds for exactly its parameters, whatever the object.
func TestTheDaemonsOwnPlaceMayBeNamed(t *testing.T) {
	const own = "s3://b/shop/any.db?endpoint=https://minio&region=x&use_path_style=true"
	for _, c := range []struct {
		url, daemons string
		allowed      bool
	}{
		{"s3://b/shop/1.db?endpoint=https://minio&region=x&use_path_style=true", own, true},
		{"s3://b/shop/1.db?region=y&endpoint=https%3A%2F%2Fminio", own, true},
		{"s3://b/shop/1.db", own, true},
		{"s3://b/shop/1.db?endpoint=https://minio:1", own, false},
		{"s3://b/shop/1.db?endpoint=https://minio&profile=admin", own, false},
		{"s3://b/shop/1.db?endpoint=https://minio&role=arn:aws:iam::1:role/x", own, false},
		{"gs://b/shop/1.db?endpoint=https://minio", own, false},
		{"s3://b/shop/1.db?endpoint=https://minio", "", false},
		{"s3://b/shop/1.db?endpoint=https://minio", own + "&role=arn:aws:iam::1:role/x", false},
		{"s3://b/1.db?region=x&role=arn:aws:iam::1:role/x", "s3://b/any.db?region=x&role=arn:aws:iam::1:role/x", true},
		{"azblob://c/1.db?domain=a&storage_account=b", "azblob://c/2.db?storage_account=b&domain=a", true},
	} {
		if err := CheckStoreAccess(c.url, false, c.daemons); (err == nil) != c.allowed {
			t.Errorf("%s, and the daemon's is %q: %v", c.url, c.daemons, err)
		}
	}
}

// A parameter that no opener knows is refused, and is named only where it can be no secret.
func TestUnknownParametersAreRefused(t *testing.T) {
	for url, want := range map[string]string{
		"s3://b/UID?regoin=eu-west-1":                  "parameter 1 after the ? is none that quorate takes for s3, did you mean region?: correct it or leave it out; there are accelerate, anonymous",
		"s3://b/UID?region=x&hunter2=1":                "parameter 2 after the ? is none",
		"s3://b/UID?Endpoint=https://attacker.example": "parameter 1 after the ? is none",
		"s3://b/UID?prefix=x":                          "the parameter prefix is none that quorate takes for s3",
		"s3://b/UID?domain=attacker.example":           "the parameter domain is none that quorate takes for s3",
		"azblob://c/UID?endpoint=https://x":            "the parameter endpoint is none that quorate takes for azblob",
		"file:///b/UID?create_dir=1":                   "the parameter create_dir is none that quorate takes for file: correct it or leave it out; there are root",
		"s3://b/UID?region=x&region=y":                 "the parameter region is there twice",
		"s3://b/UID?region=x.attacker.example/":        "the parameter region has letters",
		"s3://b/UID?endpoint=minio:9000":               "the parameter endpoint is a URL such as",
		"s3://b/UID?endpoint=ftp://minio":              "the parameter endpoint is a URL such as",
		"s3://b/UID?endpoint=https://":                 "the parameter endpoint is a URL such as",
		"s3://b/UID?endpoint=https://a:hunter2@minio":  "the parameter endpoint must not hold a user or password",
		"s3://b/UID?endpoint=https://minio:hunter2":    "the parameter endpoint is a URL such as",
	} {
		_, err := ExpandObjectURL(strings.Replace(url, "UID", "{{ .UID }}", 1), sample())
		accessErr := CheckStoreAccess(strings.Replace(url, "UID", "u1", 1), true, "")
		for _, got := range []string{fmt.Sprint(err), fmt.Sprint(accessErr)} {
			if !strings.Contains(got, want) || strings.Contains(got, "hunter2") {
				t.Errorf("%s: %s, want %s", url, got, want)
			}
		}
	}
	for _, url := range []string{"s3://u:hunter2@b/1", "s3://b/1#?endpoint=x", "s3://b/1?a;b", "https://b/1", "", "%"} {
		if err := CheckStoreAccess(url, true, url); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A store without TLS is warned of: only the daemon knows whether it may be used.
func TestAStoreWithoutTLSIsWarnedOf(t *testing.T) {
	for url, param := range map[string]string{
		"s3://b/UID?endpoint=http://minio:9000":              "endpoint",
		"s3://b/UID?endpoint=HTTP://minio:9000":              "endpoint",
		"s3://b/UID?endpoint=http%3A%2F%2Fminio":             "endpoint",
		"gs://b/UID?endpoint=http://storage.example":         "endpoint",
		"s3://b/UID?disable_https=1":                         "disable_https",
		"azblob://c/UID?protocol=http":                       "protocol",
		"s3://b/UID?endpoint=https://minio":                  "",
		"s3://b/UID?disable_https=false":                     "",
		"azblob://c/UID?protocol=https&domain=store.example": "",
		"s3://b/UID": "",
	} {
		want := ""
		if param != "" {
			want = "warning: spec.destination.objectURLTemplate: reaches the store without TLS by its parameter " + param
		}
		template := strings.Replace(url, "UID", "{{ .UID }}", 1)
		expectOne(t, one(backupText(`source: {clusterURL: "https://etcd:2379"}`, `destination: {objectURLTemplate: "`+template+`", credentials: {secretName: store}}`)).Problems, want)
		if got := UnencryptedParam(strings.Replace(url, "UID", "1", 1)); got != param {
			t.Errorf("%s: %q, want %q", url, got, param)
		}
	}
}
