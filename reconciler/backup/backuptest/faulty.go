package backuptest

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// Faulty is a proxy before a store, which spoils requests when it is told to.
type Faulty struct {
	// Address is where it listens: with TLS and the store's certificate if the store
	// has one.
	Address string

	fault atomic.Pointer[Fault]
}

// Fault answers a request in the store's place, or returns false to pass it on.
type Fault func(http.ResponseWriter, *http.Request) bool

// Set makes a fault happen from now on; nil ends it.
func (f *Faulty) Set(fault Fault) { f.fault.Store(&fault) }

// StartFaulty starts a proxy before the store at the address. c is the zero value
// for a store without TLS.
func StartFaulty(t *testing.T, address string, c Certificate) *Faulty {
	t.Helper()
	f := &Faulty{}
	f.Set(nil)
	upstream := &url.URL{Scheme: "http", Host: address}
	proxy := &httputil.ReverseProxy{
		// The Host stays, since it is signed.
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = upstream.Scheme, upstream.Host },
		ModifyResponse: func(r *http.Response) error {
			// Google's server names the place of an upload by its own address.
			r.Header.Set("Location", strings.ReplaceAll(r.Header.Get("Location"), address, f.Address))
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fault := *f.fault.Load(); fault != nil && fault(w, r) {
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	f.Address = server.Listener.Addr().String()
	if c.CertFile == "" {
		server.Start()
	} else {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		upstream.Scheme, proxy.Transport = "https", c.Transport(t)
		server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		server.StartTLS()
	}
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return f
}

// Answer is a store that gives every request that status.
func Answer(status int) Fault {
	return func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		return true
	}
}

// Silence is a store that takes a request and says nothing.
func Silence(_ http.ResponseWriter, r *http.Request) bool {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// Uploads makes the fault happen to what carries data to the store only.
func Uploads(fault Fault) Fault {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return (r.Method == http.MethodPut || r.Method == http.MethodPost) && r.ContentLength != 0 && fault(w, r)
	}
}

// Drop is a connection that breaks within the request.
func Drop(_ http.ResponseWriter, r *http.Request) bool {
	_, _ = io.CopyN(io.Discard, r.Body, 100<<10)
	panic(http.ErrAbortHandler)
}
