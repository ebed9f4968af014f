// Package handshake asks the members of a cluster, by TLS on their two ports, whom they trust and
// what they show. A member reads the authorities that it trusts when it starts, so what its Secrets
// and its pod say is what it should trust; only its answer is what it does.
package handshake

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/starvation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Question is what there is to ask of the members of one cluster.
type Question struct {
	Cluster schema.EtcdCluster
	// ClusterDomain is the daemon's, and Secrets are the cluster's, by name.
	ClusterDomain string
	Secrets       map[string]*corev1.Secret
	Members       []Member
	Now           time.Time
}

// Member is one to ask.
type Member struct {
	// Name and IP are those of its pod, and Host is in its certificate.
	Name, IP, Host string
	// Ports are where it listens for clients and for peers; 0 for the usual ones.
	ClientPort, PeerPort int
}

// Limit is how long one handshake may take.
const Limit = 3 * time.Second

// Ask asks each member on each port with a certificate of each authority, which lives for some
// minutes and is thrown away. Where an authority cannot sign, it shows one that it has signed,
// while there is one.
func Ask(ctx context.Context, q Question) []state.Handshake {
	var all []state.Handshake
	for _, m := range q.Members {
		all = append(all, q.ask(ctx, m, false), q.ask(ctx, m, true))
	}
	return all
}

// ask asks one member on one port.
func (q Question) ask(ctx context.Context, m Member, peers bool) state.Handshake {
	h := state.Handshake{Member: m.Name, Port: "client", By: state.ByOther, Refuses: map[state.Signer]string{}}
	port, usual := m.ClientPort, naming.ClientPort
	if peers {
		h.Port, port, usual = "peer", m.PeerPort, naming.PeerPort
	}
	if port == 0 {
		port = usual
	}
	if m.IP == "" {
		h.Problem = "it has no address"
		return h
	}
	for _, by := range []state.Signer{state.ByPresent, state.ByNext} {
		shown, err := q.shown(peers, by)
		if err != nil {
			h.Refuses[by] = err.Error()
			continue
		}
		if shown == nil {
			continue // nobody can show one
		}
		leaf, err := Show(ctx, net.JoinHostPort(m.IP, strconv.Itoa(port)), m.Host, *shown)
		var refused *RefusedError
		switch {
		case errors.As(err, &refused):
			h.Refuses[by] = refused.Error()
		case err != nil:
			h.Problem = err.Error()
			return h
		}
		if leaf == nil {
			continue
		}
		if h.By = certs.SignerOf(q.Cluster, q.ClusterDomain, q.Secrets, peers, leaf); h.By == state.ByOther {
			h.Problem = "it shows a certificate of neither authority"
			return h
		}
		if err := leaf.VerifyHostname(m.Host); err != nil {
			h.Problem = err.Error()
			return h
		}
	}
	return h
}

// shown is a certificate of an authority; nil where it cannot sign, and has signed none that is left.
func (q Question) shown(peers bool, by state.Signer) (*tls.Certificate, error) {
	secret, err := certs.Throwaway(q.Cluster, q.ClusterDomain, q.Secrets, peers, by, q.Now)
	if err != nil {
		name := naming.TLSSecrets(q.Cluster).Client
		if peers {
			name = naming.TLSSecrets(q.Cluster).Peer
		}
		if secret = q.Secrets[name]; secret == nil {
			return nil, nil
		}
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, err
	}
	if !certs.SignerOf(q.Cluster, q.ClusterDomain, q.Secrets, peers, pair.Leaf).Is(by) {
		return nil, nil
	}
	return &pair, nil
}

// RefusedError is that a server did not take the certificate that it was shown.
type RefusedError struct{ Err error }

// Error implements error.
func (e *RefusedError) Error() string { return "it did not take the certificate: " + e.Err.Error() }

// Unwrap returns what the server said.
func (e *RefusedError) Unwrap() error { return e.Err }

// Show makes a handshake with a server, asks it for /version, and returns the certificate that it
// has shown. Who the server is, is for the caller to judge by that. The error is a RefusedError
// where it did not take the client's; with TLS 1.3 that shows only when it answers.
func Show(ctx context.Context, address, host string, client tls.Certificate) (*x509.Certificate, error) {
	ctx, cancel := starvation.WithTimeout(ctx, Limit)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", address, err)
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { _ = raw.Close() })()
	conn := tls.Client(raw, &tls.Config{
		ServerName: host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: true,
		// It is shown whether or not the server names its authority: that is the question.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &client, nil },
	})
	err = conn.HandshakeContext(ctx)
	var leaf *x509.Certificate
	if shown := conn.ConnectionState().PeerCertificates; len(shown) > 0 {
		leaf = shown[0]
	}
	if err != nil {
		return leaf, failed(ctx, err)
	}
	if _, err := fmt.Fprintf(conn, "GET /version HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host); err != nil {
		return leaf, failed(ctx, err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return leaf, failed(ctx, err)
	}
	return leaf, answer.Body.Close()
}

// failed is a handshake that was refused, unless it took too long.
func failed(ctx context.Context, err error) error {
	var timeout net.Error
	if ctx.Err() != nil || errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("no answer within %s: %w", Limit, err)
	}
	return &RefusedError{err}
}
