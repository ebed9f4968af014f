package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"quorate": main})
}

// TestScripts runs the command line as a user does: one file a behaviour.
//
// Each script finds $TAKEN, an address that is in use; $BARE_API, a
// kubeconfig of an API server that answers /version, has no namespace gone, has nothing of
// what quorate watches, and knows nothing else; $NO_API, one of an API server that is not there; and its own commands:
//
//	await FILE TEXT    waits until the file holds the text
//	status N COMMAND…  runs a command that must end with that exit status
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Setup:               setUpScript,
		Cmds:                map[string]func(ts *testscript.TestScript, neg bool, args []string){"await": await, "status": exitStatus},
	})
}

func setUpScript(env *testscript.Env) error {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
		case "/api/v1/namespaces/gone":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`))
		default:
			answerList(w, r)
		}
	}))
	env.Defer(func() { _ = taken.Close() })
	env.Defer(api.Close)
	// Port 1 is reserved: no program listens there.
	noAPI, err := kubeconfig(env, "no-api", "http://127.0.0.1:1")
	if err != nil {
		return err
	}
	bareAPI, err := kubeconfig(env, "bare-api", api.URL)
	if err != nil {
		return err
	}
	env.Vars = append(env.Vars,
		"TAKEN="+taken.Addr().String(), "NO_API="+noAPI, "BARE_API="+bareAPI,
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
	)
	return nil
}

// answerList answers a list with an empty one, and a watch with nothing.
func answerList(w http.ResponseWriter, r *http.Request) {
	kind := map[string]string{
		"configmaps": "ConfigMap", "secrets": "Secret", "services": "Service", "pods": "Pod", "persistentvolumeclaims": "PersistentVolumeClaim",
		"statefulsets": "StatefulSet", "controllerrevisions": "ControllerRevision", "poddisruptionbudgets": "PodDisruptionBudget",
	}[path.Base(r.URL.Path)]
	query := r.URL.Query()
	switch {
	case kind == "" || query.Get("sendInitialEvents") != "":
		http.NotFound(w, r)
	case query.Get("watch") != "":
		<-r.Context().Done()
	default:
		version := strings.TrimPrefix(strings.TrimPrefix(path.Dir(r.URL.Path), "/apis/"), "/api/")
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind": "%sList", "apiVersion": %q, "metadata": {"resourceVersion": "1"}, "items": []}`, kind, version)
	}
}

// kubeconfig writes a kubeconfig file for a server.
func kubeconfig(env *testscript.Env, name, server string) (string, error) {
	path := filepath.Join(env.WorkDir, name+".kubeconfig")
	text := strings.ReplaceAll(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: SERVER}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, "SERVER", server)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// await waits until a file holds a text.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE TEXT")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && strings.Contains(string(text), args[1]) {
			return
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("%s does not hold %q but %q", args[0], args[1], text)
		case <-tick.C:
		}
	}
}

// exitStatus runs a command that must end with an exit status. Its output is for
// stdout and stderr, as that of exec is.
func exitStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND…")
	}
	script := `"$@"; s=$?; test $s -eq ` + args[0] + ` || { echo "exit status $s" >&2; exit 1; }`
	ts.Check(ts.Exec("sh", append([]string{"-c", script, "status"}, args[1:]...)...))
}

// The program is a plugin of kubectl when it is called so, and its help says so.
func TestQuorateIsAPluginOfKubectl(t *testing.T) {
	for program, want := range map[string]string{"kubectl-quorate": "kubectl quorate", "kubectl-quorate.exe": "kubectl quorate", "quorate": "quorate"} {
		var out bytes.Buffer
		if status := executeAs(t.Context(), program, []string{"status", "--help"}, &out, &out); status != 0 || !strings.Contains(out.String(), "\n  "+want+" status [NAMESPACE/NAME]") || !strings.Contains(out.String(), "\n  "+want+" status shop/orders  ") {
			t.Errorf("%s ends with %d:\n%s", program, status, out.String())
		}
		out.Reset()
		if executeAs(t.Context(), program, []string{"statsu"}, &out, &out); !strings.Contains(out.String(), "did you mean status?") {
			t.Errorf("%s says %q", program, out.String())
		}
		out.Reset()
		if executeAs(t.Context(), program, []string{"nothing-alike"}, &out, &out); out.String() != `quorate: unknown command "nothing-alike" for "`+want+`"; `+want+" --help lists the commands\n" {
			t.Errorf("%s says %q", program, out.String())
		}
	}
}
