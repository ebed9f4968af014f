package schema

import (
	"net/url"
	"strings"
	"testing"
)

// sample is what a template is expanded with.
func sample() ObjectURLData {
	return ObjectURLData{Namespace: "shop", Name: "orders", Version: "3.6.16", UID: "u1"}
}

func TestExpandObjectURL(t *testing.T) {
	for template, want := range map[string]string{
		"s3://b/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?region=eu-west-1": "s3://b/shop/orders/u1.db?region=eu-west-1",
		"gs://b/{{.Version}}/{{.UID}}":                                       "gs://b/3.6.16/u1",
		"azblob://c/{{- .UID -}}":                                            "azblob://c/u1",
		"file:///backups/{{ .UID }}.db":                                      "file:///backups/u1.db",
		"s3://b/{{/* one a backup */}}{{ .UID }}?kmskeyid=alias":             "s3://b/u1?kmskeyid=alias",
		"s3://b/{{ .UID }}?endpoint=http://minio:9000&use_path_style=true":   "s3://b/u1?endpoint=http://minio:9000&use_path_style=true",
		"s3://{{ .Namespace }}/{{ .UID }}?awssdk=v2":                         "s3://shop/u1?awssdk=v2",
	} {
		t.Run("12 "+template, func(t *testing.T) {
			got, err := ExpandObjectURL(template, sample())
			if err != nil || got != want {
				t.Fatalf("got %q, %v", got, err)
			}
		})
	}
}

func TestExpandObjectURLRefuses(t *testing.T) {
	const secret = "hunter2"
	for _, c := range []struct{ name, template, want string }{
		{"12 nothing", "", "scheme"},
		{"12 no UID", "s3://b/{{ .Name }}", "must contain {{ .UID }}"},
		{"12 UID in the query only", "s3://b/x?kmskeyid={{ .UID }}", "must contain {{ .UID }}"},
		{"12 UID in the bucket only", "s3://{{ .UID }}/x", "must contain {{ .UID }}"},
		{"12 unknown function", "s3://b/{{ .UID | upper }}", "may be used"},
		{"12 built-in function", `s3://b/{{ printf "%s" .UID }}`, "may be used"},
		{"12 html escape", "s3://b/{{ html .UID }}", "may be used"},
		{"12 unknown field", "s3://b/{{ .Uid }}", "may be used"},
		{"12 condition", "s3://b/{{ if .UID }}x{{ end }}", "may be used"},
		{"12 variable", "s3://b/{{ $x := .UID }}", "may be used"},
		{"12 definition", `{{ define "x" }}{{ end }}s3://b/{{ .UID }}`, "may be used"},
		{"12 open brace", "s3://b/{{ .UID", "may be used"},
		{"12 other scheme", "https://b/{{ .UID }}", "the scheme must be"},
		{"12 scheme of tests", "mem://b/{{ .UID }}", "the scheme must be"},
		{"12 no bucket", "s3:///{{ .UID }}", "name the bucket"},
		{"12 file with host", "file://b/{{ .UID }}", "absolute path"},
		{"12 climbing", "file:///backups/../{{ .UID }}", "must not contain the segment .."},
		{"12 directory", "s3://b/{{ .UID }}/", "name the object"},
		{"12 fragment", "s3://b/{{ .UID }}#x", "after #"},
		{"12 long", "s3://b/{{ .UID }}" + strings.Repeat("x", 3000), "longer than"},
		{"15 password", "s3://user:" + secret + "@b/{{ .UID }}", "user or password"},
		{"15 password that is no URL", "s3://user:" + secret + "%zz@b/{{ .UID }}", "it is not a URL such as"},
		{"15 access key", "s3://b/{{ .UID }}?AWSAccessKeyId=" + secret, "looks like a secret"},
		{"15 secret key", "s3://b/{{ .UID }}?aws_secret_access_key=" + secret, "looks like a secret"},
		{"15 hidden key", "s3://b/{{ .UID }}?%74oken=" + secret, "looks like a secret"},
		{"15 signature", "azblob://b/{{ .UID }}?sv=2020&sig=" + secret, "looks like a secret"},
		{"15 signed request", "s3://b/{{ .UID }}?X-Amz-Signature=" + secret, "looks like a secret"},
		{"15 bad query", "s3://b/{{ .UID }}?token;=" + secret, "name=value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ExpandObjectURL(c.template, sample())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %q, %v, want %q", got, err, c.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Fatalf("the secret is in the message: %v", err)
			}
		})
	}
}

func TestExpandObjectURLRefusesValues(t *testing.T) {
	for _, uid := range []string{"", "a/b", "..", "a?b", "a b", "ä"} {
		d := sample()
		d.UID = uid
		if got, err := ExpandObjectURL("s3://b/{{ .UID }}", d); err == nil {
			t.Errorf("%q gives %q", uid, got)
		}
	}
}

func FuzzExpandObjectURL(f *testing.F) {
	f.Add("s3://b/{{ .Namespace }}/{{ .UID }}.db?region=x", "u1")
	f.Add("file:///{{ .UID }}", "..")
	f.Add("s3://u:p@b/{{ .UID }}", "a/b")
	f.Fuzz(func(t *testing.T, template, uid string) {
		d := sample()
		d.UID = uid
		const secret = "hunter2"
		half := len(template) / 2
		if _, err := ExpandObjectURL(template[:half]+secret+template[half:], d); err != nil && strings.Contains(err.Error(), secret) {
			t.Fatalf("%q: its content is repeated: %v", template, err)
		}
		got, err := ExpandObjectURL(template, d)
		if err != nil {
			return
		}
		d.UID += "0"
		if other, err := ExpandObjectURL(template, d); err == nil && other == got {
			t.Fatalf("%q gives one object for two backups", template)
		}
		u, err := url.Parse(got)
		if err != nil || u.User != nil || u.Path == "" || !strings.Contains(u.Path, uid) {
			t.Fatalf("%q with %q gives %q", template, uid, got)
		}
	})
}

func TestObjectURLDirectory(t *testing.T) {
	for template, want := range map[string]string{
		"s3://b/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?region=eu-west-1": "s3://b/shop/orders/?region=eu-west-1",
		"s3://b/{{ .Name }}/{{ .Version }}/{{ .UID }}.db":                    "s3://b/orders/",
		"s3://b/{{ .Name }}-{{ .UID }}.db":                                   "s3://b/",
		"s3://b/{{ .UID }}/{{ .Name }}.db":                                   "s3://b/",
		"s3://b-{{ .Version }}/x/{{ .UID }}":                                 "s3://b-3.6.16/x/",
		"file:///backups/{{ .Name }}/{{ .UID }}.db?root=/backups":            "file:///backups/orders/?root=/backups",
	} {
		t.Run(template, func(t *testing.T) {
			if got, err := ObjectURLDirectory(template, sample()); err != nil || got != want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if _, err := ObjectURLDirectory("s3://b/x", sample()); err == nil {
		t.Error("a template without a UID has a directory")
	}
}

func TestObjectURLPattern(t *testing.T) {
	const uid = "[0-9]{3}"
	for template, c := range map[string]struct{ gives, others []string }{
		"s3://b/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?region=x": {
			[]string{"s3://b/shop/orders/123.db?region=x"},
			[]string{
				"s3://b/shop/orders/123.db", "s3://b/shop/orders/123.db?region=y", "s3://b/shop/orders/123.db?region=x&endpoint=http://other",
				"s3://b/shop/orders/12.db?region=x", "s3://b/shop/orders/123.db.manifest.json?region=x", "s3://b/shop/users/123.db?region=x",
				"s3://b/bank/orders/123.db?region=x", "s3://c/shop/orders/123.db?region=x", "s3://b/shop/orders/x/../123.db?region=x",
				"s3://b/shop/orders/123xdb?region=x", "s3://b/shop/orders/123.db?region=x\n",
			},
		},
		"gs://b/{{ .Name }}/{{ .Version }}/{{ .UID }}": {
			[]string{"gs://b/orders/3.6.16/123", "gs://b/orders/3.7.0-rc.1/123"},
			[]string{"gs://b/orders/../123", "gs://b/orders/./123", "gs://b/orders/a/b/123", "gs://b/orders//123", "gs://b/orders/3.6.16/123/123"},
		},
		"gs://b/{{ .UID }}/{{ .UID }}": {[]string{"gs://b/123/123"}, []string{"gs://b/123", "gs://b/123/12"}},
	} {
		t.Run(template, func(t *testing.T) {
			pattern, err := ObjectURLPattern(template, sample(), uid)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range c.gives {
				if !pattern.MatchString(u) {
					t.Errorf("%s is none", u)
				}
			}
			for _, u := range c.others {
				if pattern.MatchString(u) {
					t.Errorf("%s is one", u)
				}
			}
		})
	}
	if _, err := ObjectURLPattern("s3://b/x", sample(), uid); err == nil {
		t.Error("a template without a UID gives URLs")
	}
}
