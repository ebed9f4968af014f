package backup

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// 109: with a CA of its own.
func TestS3WithTLSAndASecretConforms(t *testing.T) {
	certificate := backuptest.NewCertificate(t)
	s := backuptest.StartS3TLS(t, certificate)
	conform(t, func(t *testing.T) place {
		p := s3Place(t, s)
		p.store.Credentials, p.store.CA = backuptest.S3Secret(), certificate.CA
		return p
	})
}

// Each way to write the Secret works, and each mistake is named, without a value.
func TestSecretsForS3(t *testing.T) {
	certificate := backuptest.NewCertificate(t)
	s := backuptest.StartS3TLS(t, certificate)
	const id, key = "aws_access_key_id = tester\n", "aws_secret_access_key=" + backuptest.Secret + "\n"
	query := strings.TrimPrefix(s.URL("k.db"), "s3://backups/k.db?")
	for name, tc := range map[string]struct {
		secret map[string]string
		query  string
		want   string
	}{
		"keys":           {secret: map[string]string{"access-key-id": "tester", "secret-access-key": backuptest.Secret}},
		"keys with line": {secret: map[string]string{"access-key-id": "tester\n", "secret-access-key": backuptest.Secret + "\r\n"}},
		"file":           {secret: map[string]string{"credentials": "# mine\n[default]\n" + id + key}},
		"file and region": {
			secret: map[string]string{"credentials": "[default]\n" + id + key, "config": "[default]\nregion = us-east-1\n"},
			query:  strings.ReplaceAll(query, "region=us-east-1&", ""),
		},
		"another profile": {
			secret: map[string]string{"credentials": "[default]\naws_access_key_id=nobody\n[backups]\n" + id + key, "config": "[profile backups]\nregion=us-east-1"},
			query:  query + "&profile=backups",
		},
		"no such profile":   {secret: map[string]string{"credentials": "[default]\n" + id + key}, query: query + "&profile=backups", want: "has no aws_access_key_id and aws_secret_access_key in the profile backups"},
		"a command":         {secret: map[string]string{"credentials": "[default]\ncredential_process = touch /tmp/x\n"}, want: "has no aws_access_key_id"},
		"only config":       {secret: map[string]string{"config": "[default]"}, want: "lacks the key credentials;"},
		"no secret":         {secret: map[string]string{"access-key-id": "tester"}, want: "lacks the key secret-access-key;"},
		"no ID":             {secret: map[string]string{"secret-access-key": backuptest.Secret}, want: "lacks the key access-key-id;"},
		"both":              {secret: map[string]string{"credentials": "[default]\n" + id + key, "access-key-id": "tester"}, want: "has both credentials and access-key-id"},
		"another's":         {secret: map[string]string{"access-key-id": "tester", "secret-access-key": "hunter2" + backuptest.Secret}, want: "check the store's credentials in the Secret"},
		"a role too":        {secret: map[string]string{"access-key-id": "tester", "secret-access-key": backuptest.Secret}, query: query + "&role=arn:aws:iam::1:role/x", want: "the parameter role"},
		"another kind":      {secret: map[string]string{"credentials.json": "{}"}, want: "lacks the key access-key-id"},
		"no CA":             {secret: map[string]string{"ca.crt": "", "access-key-id": "tester", "secret-access-key": "x"}, want: "not trusted"},
		"CA that is no PEM": {secret: map[string]string{"ca.crt": "nonsense", "access-key-id": "tester", "secret-access-key": "x"}, want: "key ca.crt of the Secret) has no certificate"},
		"another CA":        {secret: map[string]string{"ca.crt": string(backuptest.NewCertificate(t).CA), "access-key-id": "tester", "secret-access-key": "x"}, want: "certificate is not trusted"},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{"ca.crt": certificate.CA}
			for key, value := range tc.secret {
				data[key] = []byte(value)
			}
			if tc.query == "" {
				tc.query = query
			}
			url := "s3://backups/" + strings.ReplaceAll(name, " ", "-") + ".db?" + tc.query
			_, err := Store{Drivers: drivers, Credentials: data}.Save(t.Context(), url, bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest())
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			backuptest.WantError(t, err, "save backup s3://backups/", tc.want)
			if strings.Contains(err.Error(), backuptest.Secret) {
				t.Errorf("the error repeats the secret: %v", err)
			}
		})
	}
}

// 112: the keys are read with every operation: a Secret that was rotated works at once,
// and the daemon's environment is not touched.
func TestRotatedCredentials(t *testing.T) {
	certificate := backuptest.NewCertificate(t)
	s := backuptest.StartS3TLS(t, certificate)
	data := backuptest.S3Secret()
	data["ca.crt"] = certificate.CA
	old := maps.Clone(data)
	old["secret-access-key"] = []byte("rotated-away")
	_, err := Store{Drivers: drivers, Credentials: old}.List(t.Context(), s.URL(""))
	backuptest.WantError(t, err, "permission denied", "in the Secret")
	if _, err := (Store{Drivers: drivers, Credentials: data}).List(t.Context(), s.URL("")); err != nil {
		t.Error(err)
	}
	_, err = Store{Drivers: drivers, CA: certificate.CA, Credentials: map[string][]byte{}}.List(t.Context(), s.URL(""))
	backuptest.WantError(t, err, "lacks the key access-key-id")
	_, err = Store{Drivers: drivers, CA: certificate.CA}.List(t.Context(), s.URL(""))
	backuptest.WantError(t, err, "no credentials for the store were found")
}

// 110: and so does every other store.
func TestGoogleConforms(t *testing.T) {
	g := backuptest.StartGoogle(t, backuptest.NewCertificate(t))
	conform(t, func(t *testing.T) place {
		p := placeAt(t, g.URL)
		p.store.Credentials = g.Secret
		return p
	})
}

func TestAzureConforms(t *testing.T) {
	a := startAzure(t, backuptest.NewCertificate(t))
	conform(t, func(t *testing.T) place {
		p := placeAt(t, a.url)
		p.store.Credentials = a.secret
		return p
	})
}
