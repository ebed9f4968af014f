package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

var takeDown = flag.Bool("down", false, "test `sandbox down` too, which ends the sandbox that runs")

// running returns the sandbox that runs on this machine. The tests break and
// mend it; each leaves it as it was.
func running(t *testing.T) *sandbox {
	t.Helper()
	s, err := newSandbox(t.Output(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if !s.currentStatus(t.Context()).Up {
		t.Skip("no sandbox runs here; start one with `sandbox up`")
	}
	return s
}

// kubectl runs kubectl as the administrator.
func (s *sandbox) kubectl(ctx context.Context, args ...string) (string, error) {
	return s.kubectlInput(ctx, "", args...)
}

func (s *sandbox) kubectlInput(ctx context.Context, input string, args ...string) (string, error) {
	binary, err := s.execPath("kubectl")
	if err != nil {
		return "", err
	}
	args = append([]string{"--kubeconfig=" + s.kubeconfig("admin"), "--request-timeout=20s"}, args...)
	return runInput(ctx, input, binary, args...)
}

// must runs kubectl and returns what it prints.
func must(t *testing.T, s *sandbox, args ...string) string {
	t.Helper()
	out, err := s.kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// namespace makes a namespace for one test.
func namespace(t *testing.T, s *sandbox) string {
	t.Helper()
	name := "sandbox-test-" + strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))
	name = name[:min(len(name), 60)]
	must(t, s, "create", "namespace", name)
	t.Cleanup(func() {
		if _, err := s.kubectl(context.Background(), "delete", "namespace", name, "--wait=false"); err != nil {
			t.Error(err)
		}
	})
	eventually(t, time.Minute, func() error {
		_, err := s.kubectl(t.Context(), "get", "serviceaccount", "default", "--namespace="+name)
		return err
	})
	return name
}

func eventually(t *testing.T, limit time.Duration, condition func() error) {
	t.Helper()
	if err := await(t.Context(), limit, func() error { return nil }, condition); err != nil {
		t.Fatal(err)
	}
}

// makeServerAndClient makes the pods that most tests look at.
func makeServerAndClient(t *testing.T, s *sandbox, namespace string) {
	t.Helper()
	if _, err := s.kubectlInput(t.Context(), serverAndClient, "apply", "--namespace="+namespace, "--filename=-"); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, s, namespace, "server", "client")
}

func awaitReady(t *testing.T, s *sandbox, namespace string, pods ...string) {
	t.Helper()
	for _, pod := range pods {
		must(t, s, "wait", "--for=condition=Ready", "--timeout=60s", "--request-timeout=0", "--namespace="+namespace, "pod/"+pod)
	}
}

// probeIn runs the probe in a pod.
func probeIn(t *testing.T, s *sandbox, namespace, pod string, args ...string) (string, error) {
	t.Helper()
	return s.kubectl(t.Context(), append([]string{"exec", "--namespace=" + namespace, pod, "--", "/usr/local/bin/probe"}, args...)...)
}

// serverAndClient are a server with a volume on one node, reachable by a name
// of its own and through a service, and a client on another.
const serverAndClient = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 64Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: peers}
spec: {clusterIP: None, selector: {app: server}, ports: [{port: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: server}
spec: {selector: {app: server}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: server, labels: {app: server}}
spec:
  hostname: server
  subdomain: peers
  nodeSelector: {kubernetes.io/hostname: node-3}
  terminationGracePeriodSeconds: 1
  securityContext: {runAsUser: 65532, runAsNonRoot: true, fsGroup: 65532}
  containers:
  - name: probe
    image: ` + probeImage + `
    args: [serve, ":8080"]
    readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  nodeSelector: {kubernetes.io/hostname: node-2}
  terminationGracePeriodSeconds: 1
  containers: [{name: probe, image: ` + probeImage + `, args: [sleep]}]
`

func TestUpAgainStartsNothing(t *testing.T) {
	s := running(t)
	before := s.currentStatus(t.Context()).Processes
	begin := time.Now()
	if err := s.up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("up took %s although everything ran", took)
	}
	if after := s.currentStatus(t.Context()).Processes; !slices.Equal(before, after) {
		t.Errorf("processes were %v, are %v", before, after)
	}
}

func TestEtcdImagesHoldTheirRelease(t *testing.T) {
	s := running(t)
	if err := s.up(t.Context(), s.allButApart()...); err != nil {
		t.Fatal(err)
	}
	ns := namespace(t, s)
	for _, version := range etcdVersions() {
		name := strings.ReplaceAll(version, ".", "-")
		must(t, s, "run", name, "--namespace="+ns, "--image=quay.io/coreos/etcd:"+version, "--restart=Never", "--command", "--", "/usr/local/bin/etcd", "--version")
	}
	for _, version := range etcdVersions() {
		name := strings.ReplaceAll(version, ".", "-")
		want := "etcd Version: " + strings.TrimPrefix(version, "v") + "\n"
		eventually(t, time.Minute, func() error {
			out, err := s.kubectl(t.Context(), "logs", "--namespace="+ns, name)
			if err == nil && !strings.Contains(out, want) {
				err = fmt.Errorf("pod %s printed %q, want %q", name, out, want)
			}
			return err
		})
	}
}

func TestPodsReachEachOtherByNameAndService(t *testing.T) {
	s := running(t)
	ns := namespace(t, s)
	makeServerAndClient(t, s, ns)
	for _, url := range []string{"http://server.peers:8080", "http://server.peers." + ns + ".svc.cluster.local:8080", "http://server"} {
		eventually(t, 15*time.Second, func() error {
			out, err := probeIn(t, s, ns, "client", "get", url)
			if err == nil && out != "server\n" {
				err = fmt.Errorf("%s answers %q", url, out)
			}
			return err
		})
	}
	eventually(t, 15*time.Second, func() error {
		return getFromHost(t, "http://"+must(t, s, "get", "service", "server", "--namespace="+ns, "--output=jsonpath={.spec.clusterIP}"))
	})
}

func TestPodReachesServerOnThisMachine(t *testing.T) {
	s := running(t)
	ns := namespace(t, s)
	makeServerAndClient(t, s, ns)
	listener, err := net.Listen("tcp", hostIP+":0")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "here")
	}))
	server.Listener = listener
	server.Start()
	defer server.Close()
	if out, err := probeIn(t, s, ns, "client", "get", server.URL); err != nil || out != "here\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func getFromHost(t *testing.T, url string) error {
	t.Helper()
	client := http.Client{Timeout: 3 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.ReadAll(response.Body)
	return err
}

func TestImageThatWasNotLoadedFailsSoon(t *testing.T) {
	s := running(t)
	ns := namespace(t, s)
	must(t, s, "run", "absent", "--namespace="+ns, "--image=registry.example/absent:v1")
	eventually(t, 15*time.Second, func() error {
		reason := must(t, s, "get", "pod", "absent", "--namespace="+ns, "--output=jsonpath={.status.containerStatuses[0].state.waiting.reason}")
		if reason != "ErrImagePull" && reason != "ImagePullBackOff" {
			return fmt.Errorf("the pod waits because of %q", reason)
		}
		return nil
	})
}

func TestLoadedImageRuns(t *testing.T) {
	s := running(t)
	ns := namespace(t, s)
	binary, err := s.execPath("probe")
	if err != nil {
		t.Fatal(err)
	}
	name := "registry.example/loaded:v1"
	if err := s.loadImage(t.Context(), image{name: name, binaries: []string{binary}, entrypoint: "/usr/local/bin/probe", user: "65532:65532"}); err != nil {
		t.Fatal(err)
	}
	must(t, s, "run", "loaded", "--namespace="+ns, "--image="+name, "--", "sleep")
	awaitReady(t, s, ns, "loaded")
}

func TestFullVolumeHasNoSpaceLeft(t *testing.T) {
	s := running(t)
	ns := namespace(t, s)
	makeServerAndClient(t, s, ns)
	if err := s.fill(t.Context(), ns+"/data", 0); err != nil {
		t.Fatal(err)
	}
	_, err := probeIn(t, s, ns, "server", "write", "/data/file", "1000000")
	if err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("writing to a full volume: %v", err)
	}
	if err := s.drain(t.Context(), ns+"/data"); err != nil {
		t.Fatal(err)
	}
	if _, err := probeIn(t, s, ns, "server", "write", "/data/file", "1000000"); err != nil {
		t.Errorf("writing to a drained volume: %v", err)
	}
}

func TestVolumeGrowsWhileInUse(t *testing.T) {
	s := running(t)
	ns := namespace(t, s)
	makeServerAndClient(t, s, ns)
	if _, err := probeIn(t, s, ns, "server", "write", "/data/large", "100000000"); err == nil {
		t.Error("100 MB fit on a volume of 64 MiB")
	}
	must(t, s, "patch", "pvc", "data", "--namespace="+ns, `--patch={"spec":{"resources":{"requests":{"storage":"192Mi"}}}}`)
	eventually(t, 30*time.Second, func() error {
		if size := must(t, s, "get", "pvc", "data", "--namespace="+ns, "--output=jsonpath={.status.capacity.storage}"); size != "192Mi" {
			return fmt.Errorf("the claim has %s", size)
		}
		return nil
	})
	if _, err := probeIn(t, s, ns, "server", "write", "/data/large", "100000000"); err != nil {
		t.Errorf("writing to the grown volume: %v", err)
	}
}

func TestCutPodIsUnreachableUntilHealed(t *testing.T) {
	s := running(t)
	ns := namespace(t, s)
	makeServerAndClient(t, s, ns)
	url := "http://" + must(t, s, "get", "pod", "server", "--namespace="+ns, "--output=jsonpath={.status.podIP}") + ":8080"
	if err := s.cutPod(t.Context(), ns+"/server"); err != nil {
		t.Fatal(err)
	}
	if _, err := probeIn(t, s, ns, "client", "get", url); err == nil {
		t.Error("a pod that is cut off answers")
	}
	if err := s.healPod(t.Context(), ns+"/server"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 15*time.Second, func() error {
		_, err := probeIn(t, s, ns, "client", "get", url)
		return err
	})
}

func TestCutNodeIsNotReadyUntilHealed(t *testing.T) {
	s := running(t)
	t.Cleanup(func() {
		if err := s.healNode(context.Background(), "node-3"); err != nil {
			t.Error(err)
		}
	})
	if err := s.cutNode(t.Context(), "node-3"); err != nil {
		t.Fatal(err)
	}
	must(t, s, "wait", "--for=condition=Ready=Unknown", "--timeout=60s", "--request-timeout=0", "node/node-3")
	if err := s.healNode(t.Context(), "node-3"); err != nil {
		t.Fatal(err)
	}
	must(t, s, "wait", "--for=condition=Ready=True", "--timeout=60s", "--request-timeout=0", "node/node-3")
}

func TestStoppedNodeComesBackWithItsVolumes(t *testing.T) {
	s := running(t)
	ns := namespace(t, s)
	makeServerAndClient(t, s, ns)
	if _, err := probeIn(t, s, ns, "server", "write", "/data/kept", "1000"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.startNode(context.Background(), "node-3"); err != nil {
			t.Error(err)
		}
	})
	if err := s.stopNode(t.Context(), "node-3"); err != nil {
		t.Fatal(err)
	}
	must(t, s, "wait", "--for=condition=Ready=Unknown", "--timeout=60s", "--request-timeout=0", "node/node-3")
	if err := s.startNode(t.Context(), "node-3"); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func() error {
		if restarts := must(t, s, "get", "pod", "server", "--namespace="+ns, "--output=jsonpath={.status.containerStatuses[0].restartCount}"); restarts == "0" {
			return fmt.Errorf("the container has not been started again")
		}
		return nil
	})
	awaitReady(t, s, ns, "server")
	if _, err := probeIn(t, s, ns, "server", "read", "/data/kept"); err != nil {
		t.Errorf("what was on the volume before the power cut: %v", err)
	}
	eventually(t, 15*time.Second, func() error {
		_, err := probeIn(t, s, ns, "client", "get", "http://server")
		return err
	})
}

func TestDownLeavesNothing(t *testing.T) {
	if !*takeDown {
		t.Skip("this ends the sandbox that runs; run it with -args -down")
	}
	s := running(t)
	before := s.currentStatus(t.Context()).Processes
	makeServerAndClient(t, s, "default")
	for range 2 { // the second time there is nothing left to do
		if err := s.down(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range before {
		if _, err := startTime(p.PID); err == nil {
			t.Errorf("%s still runs", p.Name)
		}
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", s.dir, err)
	}
	for what, command := range map[string]string{
		"process": "ps -eo args",
		"mount":   "cat /proc/self/mountinfo",
		"loop":    "losetup --list",
		"netns":   "ip netns list",
		"link":    "ip link",
		"route":   "ip route",
		"rule":    "iptables-save",
	} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, s.dir) || strings.Contains(line, "quorate-switch") || strings.Contains(line, hostLink) || strings.Contains(line, "KUBE-") {
				t.Errorf("%s left behind: %s", what, line)
			}
		}
	}
	if dirs, err := cgroupDirs(cgroupRoot); err != nil || len(dirs) > 0 {
		t.Errorf("cgroups left behind: %v, %v", dirs, err)
	}
}
