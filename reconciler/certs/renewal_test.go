package certs

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// 145, 148: a leaf of quorate's own is issued again from two thirds of its life on, also
// after its end, for as long as its authority can give it more.
func TestLeavesAreDueAtTwoThirdsOfTheirLife(t *testing.T) {
	const day = 24 * time.Hour
	c := clusterForCertificates()
	all, _ := issueCertificates(t, c, nil, certificateEpoch)
	leaves := []string{"orders-server", "orders-client", "orders-peer"}
	for name, test := range map[string]struct {
		after    time.Duration
		due      []string
		problems int
	}{
		"new":                         {0, nil, 0},
		"not yet two thirds":          {leafLifetime*2/3 - day, nil, 0},
		"two thirds":                  {leafLifetime * 2 / 3, leaves, 0},
		"over":                        {leafLifetime + day, leaves, 0},
		"issued by a clock ahead":     {-day, nil, 5},
		"the authorities are over":    {authorityLifetime + day, nil, 0}, // they ask for others instead
		"long before the authorities": {authorityLifetime - day, leaves, 0},
	} {
		t.Run(name, func(t *testing.T) {
			status := Check(c, "cluster.local", all, certificateEpoch.Add(test.after))
			if !slices.Equal(status.Due, test.due) || len(status.Problems) != test.problems {
				t.Errorf("due %q, problems %q", status.Due, status.Problems)
			}
			end := certificateEpoch.Add(authorityLifetime)
			if status.Ending.Secret != "orders-ca" || !status.Ending.At.Equal(end) || !status.Ending.Notice.Equal(end.Add(-30*day)) {
				t.Errorf("first that cannot be renewed: %+v", status.Ending)
			}
		})
	}
}

// A leaf that ends with its authority is not issued again and again as both grow old.
func TestALeafThatEndsWithItsAuthorityIsNotDue(t *testing.T) {
	c := clusterForCertificates()
	all, _ := issueCertificates(t, c, nil, certificateEpoch)
	late, renewals := certificateEpoch.Add(authorityLifetime-leafLifetime), 0
	for now := late; now.Before(certificateEpoch.Add(authorityLifetime)); now = now.Add(6 * time.Hour) {
		status := Check(c, "cluster.local", all, now)
		for _, name := range status.Due {
			renewals++
			for _, l := range Leaves(c, "cluster.local") {
				if l.Secret != name {
					continue
				}
				issued, err := Reissue(c, "cluster.local", name, all, now)
				if err != nil {
					t.Fatal(err)
				}
				all[name] = issued
			}
		}
	}
	if renewals != 3 {
		t.Errorf("%d renewals in the authority's last year, want one a leaf", renewals)
	}
	for _, name := range []string{"orders-server", "orders-client", "orders-peer"} {
		pair, err := tls.X509KeyPair(all[name].Data[corev1.TLSCertKey], all[name].Data[corev1.TLSPrivateKeyKey])
		if err != nil || pair.Leaf.NotAfter.Sub(certificateEpoch.Add(authorityLifetime)).Abs() > time.Second {
			t.Errorf("%s ends %s: %v", name, pair.Leaf.NotAfter, err)
		}
	}
}

// 148: a certificate that somebody else renews is reported when that should have been
// done: short lives, of which all is near the end, are no alarm.
func TestAProvidedCertificateIsReportedInTheLastSixthOfItsLife(t *testing.T) {
	for life, want := range map[time.Duration]time.Duration{
		6 * time.Hour:         time.Hour,
		90 * 24 * time.Hour:   15 * 24 * time.Hour,
		3650 * 24 * time.Hour: 30 * 24 * time.Hour,
	} {
		var status Status
		status.ends("their-server", &x509.Certificate{NotBefore: certificateEpoch, NotAfter: certificateEpoch.Add(life)})
		if got := status.Ending.At.Sub(status.Ending.Notice); got != want {
			t.Errorf("a life of %s: reported %s before its end, want %s", life, got, want)
		}
	}
}
