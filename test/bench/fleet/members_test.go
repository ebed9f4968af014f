package fleet

import (
	"crypto/tls"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/naming"
)

// quorate takes what the members answer for a cluster of etcd, over plain text and TLS; a silent one
// answers nothing, and each question is counted.
func TestMembersAnswerAsEtcd(t *testing.T) {
	m := startMembers()
	t.Cleanup(m.close)
	client := etcd.New()
	for number, want := range map[int]string{0: "http", 1: "https"} {
		c := clusterName{number: number, replicas: 3}
		f := c.file()
		secrets := map[string]*corev1.Secret{}
		issued, err := certs.Issue(f, "cluster.local", nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range issued {
			secrets[s.Name] = s
		}
		var endpoints []etcd.Endpoint
		for i := range f.Spec.Replicas {
			e := etcd.Endpoint{Member: naming.Member(c.name(), i), Host: naming.MemberHost(f, naming.Member(c.name(), i))}
			var certificate *tls.Certificate
			if c.secure() {
				server, secret := secrets[naming.TLSSecrets(f).Server], secrets[naming.TLSSecrets(f).Client]
				pair, err := tls.X509KeyPair(server.Data[corev1.TLSCertKey], server.Data[corev1.TLSPrivateKeyKey])
				if err != nil {
					t.Fatal(err)
				}
				certificate, e.TLS = &pair, func() (*tls.Config, error) { return certs.ClientTLS(secret, e.Host) }
			}
			address, err := m.start(c, e.Member, certificate)
			if err != nil {
				t.Fatal(err)
			}
			e.Address = address + ":2379"
			endpoints = append(endpoints, e)
		}
		m.forget()
		r := client.Round(t.Context(), c.key(), endpoints, false)
		if r.Problem != "" || len(r.Members) != 3 || r.Leader() == nil || r.ClusterVersion != "3.6.0" {
			t.Fatalf("%s: %+v", want, r)
		}
		if n := m.questions(); n != 15 {
			t.Errorf("%s: %d questions in a round to 3 members, want 15", want, n)
		}
		m.forget()
		if _, same := client.Glance(t.Context(), c.key(), endpoints, r); !same || m.questions() != 3 {
			t.Errorf("%s: a glance asks %d questions, and finds the same: %t", want, m.questions(), same)
		}
		m.byName[endpoints[1].Member].silent.Store(true)
		if r = client.Round(t.Context(), c.key(), endpoints, false); r.Members[1].Problem == "" || r.Members[0].Problem != "" {
			t.Errorf("%s: with one silent: %+v", want, r.Members)
		}
		client.Forget(c.key())
	}
}
