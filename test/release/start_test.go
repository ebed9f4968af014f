package release_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/schema/release"
)

// settings are what a member is started with: little, much, and all.
func settings(v release.Version) map[string]release.Settings {
	return map[string]release.Settings{
		"nothing":  {},
		"periodic": {QuotaBackendBytes: 8 << 30, AutoCompactionMode: "periodic", AutoCompactionRetention: "8h", SkipPeerSAN: true},
		"revision": {QuotaBackendBytes: 1 << 30, AutoCompactionMode: "revision", AutoCompactionRetention: "1000"},
		"all options": {
			QuotaBackendBytes: 4 << 30, AutoCompactionMode: "periodic", AutoCompactionRetention: "30m",
			SkipPeerSAN: true, Options: acceptedOptions(v),
		},
		"all gates": {Options: map[string]string{"feature-gates": gatesOrCheck(v)}},
	}
}

// gatesOrCheck are the gates of v, and before 3.6 one that was a flag.
func gatesOrCheck(v release.Version) string {
	if gates := sampleGates(v); gates != "" {
		return gates
	}
	return "InitialCorruptCheck=true"
}

// acceptedOptions are the samples, under each name, that Flags has nothing
// against on v, each alone and all together.
func acceptedOptions(v release.Version) map[string]string {
	options := map[string]string{}
	samples := sampleOptions()
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		options[name] = samples[name]
		if _, findings := release.Flags(v, release.Settings{Options: options}); len(findings) > 0 {
			delete(options, name)
		}
	}
	return options
}

// A member starts with whatever the catalogue renders for it, and serves.
func TestMembersStartWithRenderedFlags(t *testing.T) {
	forEach(t, func(t *testing.T, v release.Version) {
		for _, name := range slices.Sorted(maps.Keys(settings(v))) {
			flags, findings := release.Flags(v, settings(v)[name])
			if len(findings) > 0 {
				t.Fatalf("%s: %v", name, findings)
			}
			if err := start(t, v, flags); err != nil {
				t.Fatalf("%s: %v\nwith %s", name, err, strings.Join(flags, " "))
			}
			t.Logf("%s: serves with %d flags", name, len(flags))
		}
	})
}

// start runs a member until it serves clients, and ends it.
func start(t *testing.T, v release.Version, flags []string) error {
	t.Helper()
	client, peer := "http://"+backuptest.FreeAddress(t), "http://"+backuptest.FreeAddress(t)
	ctx, kill := context.WithTimeout(t.Context(), time.Minute)
	defer kill()
	command := exec.CommandContext(ctx, binary(t, v), append([]string{
		"--name=x", "--data-dir=" + t.TempDir(), "--initial-cluster=x=" + peer,
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
	}, flags...)...)
	// 3.3 registers a path for pprof that net/http refuses from Go 1.22 on; the
	// project's own binaries are older.
	command.Env = append(os.Environ(), "GODEBUG=httpmuxgo121=1")
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		return fmt.Errorf("start etcd %s: %w", v, err)
	}
	exited := make(chan struct{})
	var exit error
	go func() { defer close(exited); exit = command.Wait() }()
	err := serves(ctx, client, exited)
	kill()
	<-exited
	if err != nil {
		return fmt.Errorf("%w, %w:\n%s", err, exit, tail(out.String()))
	}
	return nil
}

// serves waits until the member answers a client, or has exited.
func serves(ctx context.Context, url string, exited <-chan struct{}) error {
	for {
		if answers(ctx, url) {
			return nil
		}
		select {
		case <-exited:
			return errors.New("etcd exited")
		case <-ctx.Done():
			return errors.New("etcd does not serve")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// answers reads through the gateway for HTTP, which asks for a leader and for
// the data. Its path has changed from 3.3 to 3.4.
func answers(ctx context.Context, url string) bool {
	for _, path := range []string{"/v3/kv/range", "/v3beta/kv/range"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader(`{"key":"eA=="}`))
		if err != nil {
			return false
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return true
		}
	}
	return false
}

// tail is the end of a log.
func tail(log string) string {
	const most = 800
	return log[max(0, len(log)-most):]
}
