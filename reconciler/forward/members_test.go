package forward_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/forward"
)

// apiServer is one whose kubelets lead into pods: to the members, by their names. A pod
// that it does not know is refused.
func apiServer(t *testing.T, members []*etcdtest.Member) forward.Forwarder {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pod := path.Base(strings.TrimSuffix(r.URL.Path, "/portforward"))
		for _, m := range members {
			if m.Name == pod && strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/shop/pods/") {
				lead(t, w, r, m.Address)
				return
			}
		}
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(s.Close)
	config := &rest.Config{Host: s.URL}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return forward.Forwarder{Kube: kube, Config: config}
}

// lead copies between the streams of one forwarded port and an address.
func lead(t *testing.T, w http.ResponseWriter, r *http.Request, address string) {
	t.Helper()
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		t.Error(err)
		return
	}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, accepted <-chan struct{}) error {
		if port := s.Headers().Get(corev1.PortHeader); port != "2379" {
			t.Errorf("port %s", port)
		}
		go func() {
			<-accepted
			if s.Headers().Get(corev1.StreamType) != corev1.StreamTypeData {
				_ = s.Close()
				return
			}
			to, err := net.Dial("tcp", address)
			if err != nil {
				_ = s.Reset()
				return
			}
			go func() { _, _ = io.Copy(to, s); _ = to.Close() }()
			_, _ = io.Copy(s, to)
			_ = s.Close()
		}()
		return nil
	})
	if conn != nil {
		<-conn.CloseChan()
	}
}

// elsewhere are the members at addresses at which nobody answers from here.
func elsewhere(t *testing.T, s *etcdtest.Servers) []etcd.Endpoint {
	t.Helper()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	var endpoints []etcd.Endpoint
	for _, m := range s.Members {
		endpoints = append(endpoints, etcd.Endpoint{Member: m.Name, Incarnation: m.Name, Host: m.Host, Address: address, TLS: m.TLS})
	}
	return endpoints
}

// 282: members without a route from here are asked through the API server, with the
// certificates that they have, and that is said once.
func TestMembersAreAskedThroughTheAPIServer(t *testing.T) {
	s := etcdtest.Start(t, etcdtest.V36, 1, true)
	told := []error{}
	m := &forward.Members{Client: etcd.New(), Open: apiServer(t, s.Members).Open, Told: func(cluster string, err error) {
		if cluster != "shop/orders" {
			t.Errorf("told of %s", cluster)
		}
		told = append(told, err)
	}}
	t.Cleanup(func() { m.Close(); m.Forget("shop/orders") })
	endpoints := elsewhere(t, s)
	for range 2 {
		r := m.Round(t.Context(), "shop/orders", endpoints, true)
		if r.Problem != "" || r.Leader() == nil || r.Leader().Name != s.Members[0].Name {
			t.Fatalf("%+v", r)
		}
	}
	if _, err := m.SnapshotCount(t.Context(), "shop/orders", endpoints[0]); err != nil {
		t.Error(err)
	}
	if len(told) != 1 || told[0] != nil {
		t.Errorf("told %v", told)
	}
}

// 282: where the account may not, the silence stays, and why is said once.
func TestWhatCannotBeForwardedIsTold(t *testing.T) {
	s := etcdtest.Start(t, etcdtest.V36, 1, true)
	var told []error
	m := &forward.Members{Client: etcd.New(), Open: apiServer(t, nil).Open, Told: func(_ string, err error) { told = append(told, err) }}
	t.Cleanup(func() { m.Close(); m.Forget("shop/orders") })
	for range 2 {
		if r := m.Round(t.Context(), "shop/orders", elsewhere(t, s), false); r.Problem == "" {
			t.Errorf("%+v", r)
		}
	}
	if len(told) != 1 || told[0] == nil || !strings.Contains(told[0].Error(), "let your account create pods/portforward in namespace shop") {
		t.Errorf("told %v", told)
	}
}

// Members that answer at their own addresses are asked there.
func TestMembersThatAnswerAreNotForwarded(t *testing.T) {
	s := etcdtest.Start(t, etcdtest.V36, 1, true)
	m := &forward.Members{Client: etcd.New(), Open: func(context.Context, string, string, int) (string, func(), error) {
		t.Error("a port is forwarded")
		return "", nil, errors.New("no")
	}}
	t.Cleanup(func() { m.Close(); m.Forget("shop/orders") })
	at := s.Members[0]
	r := m.Round(t.Context(), "shop/orders", []etcd.Endpoint{{Member: at.Name, Incarnation: at.Name, Host: at.Host, Address: at.Address, TLS: at.TLS}}, false)
	if r.Problem != "" {
		t.Errorf("%+v", r)
	}
}
