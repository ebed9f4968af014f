package certs

import (
	"crypto/tls"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// clusterOfClients gives two applications a certificate.
func clusterOfClients() schema.EtcdCluster {
	c := clusterForCertificates()
	c.Spec.TLS.Clients = []schema.TLSClient{
		{Name: "checkout", CommonName: "checkout"},
		{Name: "reports", CommonName: "reporting team", SecretName: "reports-etcd"},
	}
	return c
}

// withIssuedClients adds the applications' certificates to those of the cluster.
func withIssuedClients(t *testing.T, c schema.EtcdCluster, all map[string]*corev1.Secret, now time.Time) {
	t.Helper()
	for _, w := range CheckClients(c, all, now).Wanting {
		issued, err := IssueClient(c, w.Secret, all, now)
		if err != nil {
			t.Fatal(err)
		}
		all[w.Secret] = issued
	}
}

// 495: an application's certificate opens the port of clients, in its own name, and not
// that of the peers; and is no evidence of a member.
func TestClientsHaveCertificatesOfTheirOwn(t *testing.T) {
	c := clusterOfClients()
	all, _ := issueCertificates(t, c, nil, certificateEpoch)
	withIssuedClients(t, c, all, certificateEpoch)
	for secret, cn := range map[string]string{"orders-client-checkout": "checkout", "reports-etcd": "reporting team"} {
		s := all[secret]
		if s == nil || s.Type != corev1.SecretTypeTLS || s.Labels[naming.LabelCluster] != "orders" || s.Namespace != "shop" {
			t.Fatalf("%s: %+v", secret, s)
		}
		client := memberTLS(t, s, "orders-client.shop.svc")
		if cert := client.Certificates[0].Leaf; cert.Subject.CommonName != cn || cert.IsCA {
			t.Errorf("%s is for %q", secret, cert.Subject.CommonName)
		}
		if serverErr, clientErr := handshake(t, memberTLS(t, all["orders-server"], ""), client); serverErr != nil || clientErr != nil {
			t.Errorf("%s at the port of clients: %v, %v", secret, serverErr, clientErr)
		}
		client.ServerName = "orders-0.orders-peers.shop.svc"
		client.InsecureSkipVerify = true
		if serverErr, _ := handshake(t, memberTLS(t, all["orders-peer"], ""), client); serverErr == nil {
			t.Errorf("%s was let in at the port of peers", secret)
		}
		server := &tls.Config{Certificates: client.Certificates, MinVersion: tls.VersionTLS12}
		asking := memberTLS(t, all["orders-client"], "orders-client.shop.svc")
		if _, clientErr := handshake(t, server, asking); clientErr == nil {
			t.Errorf("%s passed for a member", secret)
		}
	}
	if found := CheckClients(c, all, certificateEpoch); len(found.Wanting)+len(found.Foreign) > 0 {
		t.Errorf("then: %+v", found)
	}
}

// 495: what is wrong with an application's certificate is said, and another one is issued
// for it; what is somebody else's Secret is left alone.
func TestCheckClients(t *testing.T) {
	other := clusterOfClients()
	others, _ := issueCertificates(t, other, nil, certificateEpoch)
	withIssuedClients(t, other, others, certificateEpoch)
	const secret = "orders-client-checkout"
	for name, test := range map[string]struct {
		change  func(c *schema.EtcdCluster, all map[string]*corev1.Secret)
		after   time.Duration
		wanting string
		foreign string
	}{
		"good":    {},
		"missing": {change: func(_ *schema.EtcdCluster, all map[string]*corev1.Secret) { delete(all, secret) }, wanting: secret + " is missing"},
		"without a key": {
			change:  func(_ *schema.EtcdCluster, all map[string]*corev1.Secret) { delete(all[secret].Data, "tls.key") },
			wanting: secret + " has no usable tls.crt and tls.key",
		},
		"without any data": {change: func(_ *schema.EtcdCluster, all map[string]*corev1.Secret) { all[secret].Data = nil }, wanting: secret + " has no usable"},
		"of another authority": {
			change:  func(_ *schema.EtcdCluster, all map[string]*corev1.Secret) { all[secret] = others[secret] },
			wanting: secret + " is not signed by orders-ca",
		},
		"that trusts another authority": {
			change: func(_ *schema.EtcdCluster, all map[string]*corev1.Secret) {
				all[secret].Data["ca.crt"] = others["orders-ca"].Data["ca.crt"]
			},
			wanting: secret + " does not trust its own authority",
		},
		"quorate's own certificate": {
			change: func(_ *schema.EtcdCluster, all map[string]*corev1.Secret) {
				all[secret].Data = all["orders-client"].Data
			},
			wanting: secret + ` names "root" and not "checkout"`,
		},
		"another common name in Git": {
			change:  func(c *schema.EtcdCluster, _ map[string]*corev1.Secret) { c.Spec.TLS.Clients[0].CommonName = "shop" },
			wanting: secret + ` names "checkout" and not "shop"`,
		},
		"not yet two thirds":   {after: leafLifetime*2/3 - 24*time.Hour},
		"two thirds of a life": {after: leafLifetime * 2 / 3, wanting: secret + " is past two thirds of its life"},
		"over":                 {after: leafLifetime + 24*time.Hour, wanting: secret + " is past two thirds of its life"},
		"from a clock ahead":   {after: -24 * time.Hour, wanting: secret + " is not valid before"},
		"without the authority": {change: func(_ *schema.EtcdCluster, all map[string]*corev1.Secret) {
			delete(all, "orders-ca")
			delete(all, secret)
		}},
		"with an authority that cannot be read": {change: func(_ *schema.EtcdCluster, all map[string]*corev1.Secret) {
			all["orders-ca"].Data["ca.crt"] = []byte("no PEM")
			delete(all, secret)
		}},
		"of another application": {
			change: func(_ *schema.EtcdCluster, all map[string]*corev1.Secret) {
				all[secret].Labels[naming.LabelClient] = "reports"
			},
			foreign: "the Secret " + secret + ", in which checkout is to find its certificate, is not quorate's",
		},
		"of another cluster": {
			change: func(_ *schema.EtcdCluster, all map[string]*corev1.Secret) {
				all[secret].Labels[naming.LabelCluster] = "other"
			},
			foreign: secret,
		},
		"somebody's": {
			change:  func(_ *schema.EtcdCluster, all map[string]*corev1.Secret) { all[secret].Labels = nil },
			foreign: secret,
		},
		"somebody's of another type": {
			change:  func(_ *schema.EtcdCluster, all map[string]*corev1.Secret) { all[secret].Type = corev1.SecretTypeOpaque },
			foreign: secret,
		},
		"where others make the certificates": {change: func(c *schema.EtcdCluster, all map[string]*corev1.Secret) {
			c.Spec.TLS.Mode = schema.TLSSecrets
			delete(all, secret)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := clusterOfClients()
			all, _ := issueCertificates(t, c, nil, certificateEpoch)
			withIssuedClients(t, c, all, certificateEpoch)
			if test.change != nil {
				test.change(&c, all)
			}
			now := certificateEpoch.Add(test.after)
			found := CheckClients(c, all, now)
			var wanting, foreign string
			if at := slices.IndexFunc(found.Wanting, func(w Wanting) bool { return w.Secret == secret }); at >= 0 {
				wanting = secret + " " + found.Wanting[at].Why
			}
			if len(found.Foreign) > 0 {
				foreign = found.Foreign[0]
			}
			if !strings.Contains(wanting, test.wanting) || (test.wanting == "") != (wanting == "") {
				t.Errorf("wanting %q, want %q", wanting, test.wanting)
			}
			if !strings.Contains(foreign, test.foreign) || (test.foreign == "") != (foreign == "") {
				t.Errorf("foreign %q, want %q", foreign, test.foreign)
			}
			if test.after >= 0 {
				withIssuedClients(t, c, all, now)
				if again := CheckClients(c, all, now); len(again.Wanting) > 0 {
					t.Errorf("issued, and wanting again: %+v", again.Wanting)
				}
			}
		})
	}
}

// What is missing or wrong of an application is no matter of the members' certificates.
func TestClientsHoldNothing(t *testing.T) {
	c := clusterOfClients()
	all, _ := issueCertificates(t, c, nil, certificateEpoch)
	damaged := maps.Clone(all)
	damaged["orders-client-checkout"] = all["orders-ca"]
	for _, secrets := range []map[string]*corev1.Secret{all, damaged} {
		if status := Check(c, "cluster.local", secrets, certificateEpoch); len(status.Missing)+len(status.Problems)+len(status.Due) > 0 {
			t.Errorf("the cluster's own: %+v", status)
		}
	}
}

// A Secret of no application, and one without an authority, are not issued.
func TestIssueClientErrs(t *testing.T) {
	c := clusterOfClients()
	all, _ := issueCertificates(t, c, nil, certificateEpoch)
	if _, err := IssueClient(c, "orders-client", all, certificateEpoch); err == nil || !strings.Contains(err.Error(), "names no such Secret") {
		t.Errorf("quorate's own: %v", err)
	}
	if _, err := IssueClient(c, "reports-etcd", nil, certificateEpoch); err == nil || !strings.Contains(err.Error(), "orders-ca is missing") {
		t.Errorf("without an authority: %v", err)
	}
	if _, err := IssueClient(c, "reports-etcd", all, certificateEpoch.Add(authorityLifetime+time.Hour)); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("by an authority that is over: %v", err)
	}
}
