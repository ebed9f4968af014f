package backuptest

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// Attacker is a server of somebody who can write files and would like to have the
// daemon's identity. It refuses whatever it is asked.
type Attacker struct {
	// Address is where it listens.
	Address string

	asked atomic.Int64
}

// StartAttacker starts one that ends with the test, and puts an identity for every store
// into the environment, that of the daemon.
func StartAttacker(t *testing.T) *Attacker {
	t.Helper()
	a := &Attacker{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	a.Address = strings.TrimPrefix(server.URL, "http://")
	SetCredentials(t, "tester", Secret)
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL_STS": server.URL,
		"AZURE_STORAGE_ACCOUNT": "tester", "AZURE_STORAGE_KEY": base64.StdEncoding.EncodeToString([]byte(Secret)),
	} {
		t.Setenv(name, value)
	}
	return a
}

// Asked is how many requests have reached it.
func (a *Attacker) Asked() int { return int(a.asked.Load()) }

// Reached are URLs of a key, or templates of one, that lead the daemon's identity there,
// each with the parameter that does it.
func (a *Attacker) Reached(key string) map[string]string {
	return map[string]string{
		"s3://backups/" + key + "?region=us-east-1&endpoint=http://" + a.Address:                              "endpoint",
		"s3://backups/" + key + "?region=us-east-1&role=arn:aws:iam::123456789012:role/admin":                 "role",
		"azblob://backups/" + key + "?domain=" + a.Address + "&protocol=http":                                 "domain",
		"azblob://backups/" + key + "?cdn=true&domain=" + a.Address + "&protocol=http":                        "cdn",
		"azblob://backups/" + key + "?localemu=true&domain=" + a.Address + "&protocol=http":                   "localemu",
		"azblob://backups/" + key + "?storage_account=" + url.QueryEscape(a.Address+"/x?") + "&protocol=http": "storage_account",
	}
}

// Steering are those of Reached, and more that a file may not have without a Secret of
// its own.
func (a *Attacker) Steering(key string) map[string]string {
	all := a.Reached(key)
	for objectURL, parameter := range map[string]string{
		"gs://backups/" + key + "?universe_domain=" + a.Address:             "universe_domain",
		"gs://backups/" + key + "?endpoint=http://" + a.Address:             "endpoint",
		"gs://backups/" + key + "?private_key_path=/etc/passwd":             "private_key_path",
		"s3://backups/" + key + "?region=us-east-1&profile=admin":           "profile",
		"s3://backups/" + key + "?region=us-east-1&disable_https=true":      "disable_https",
		"azblob://backups/" + key + "?storage_account=another":              "storage_account",
		"azblob://backups/" + key + "?protocol=http":                        "protocol",
		"s3://backups/" + key + "?region=us-east-1&hostname_immutable=true": "hostname_immutable",
	} {
		all[objectURL] = parameter
	}
	return all
}
