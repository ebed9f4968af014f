package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// errNotFound is the API server's answer for an object that does not exist.
var errNotFound = errors.New("not found")

// apiTimeout bounds one request.
const apiTimeout = 20 * time.Second

// get reads an object from the API server into a struct with the fields that are needed. The sandbox speaks to the API
// server itself, because kubectl would take a part of each first start to compile.
func (s *sandbox) get(ctx context.Context, path string, into any) error {
	return s.call(ctx, http.MethodGet, path, "", into)
}

// apply creates an object, given as YAML, or updates it.
func (s *sandbox) apply(ctx context.Context, path, object string) error {
	return s.call(ctx, http.MethodPatch, path+"?fieldManager=sandbox&force=true", object, nil)
}

// remove deletes an object, and waits until it is gone.
func (s *sandbox) remove(ctx context.Context, path string) error {
	if err := s.call(ctx, http.MethodDelete, path, "", nil); err != nil {
		return err
	}
	gone := func() error {
		switch err := s.get(ctx, path, nil); {
		case errors.Is(err, errNotFound):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("%s is still there", path)
	}
	return s.awaitProcess(ctx, "removal", time.Minute, gone, controlPlane()...)
}

// call makes one request as the administrator. A body is YAML that is applied.
func (s *sandbox) call(ctx context.Context, method, path, body string, into any) error {
	client, err := s.apiClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "https://"+hostIP+":6443"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: %w", method, path, err)
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s %s: %w: %s", method, path, errNotFound, answer)
	case response.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// apiClient has the administrator's certificate.
func (s *sandbox) apiClient() (*http.Client, error) {
	pair, err := tls.LoadX509KeyPair(s.pki("admin.crt"), s.pki("admin.key"))
	if err != nil {
		return nil, fmt.Errorf("read the administrator's certificate: %w", err)
	}
	authority, err := os.ReadFile(s.pki("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12,
	}}}, nil
}
