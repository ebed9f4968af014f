package lab

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/quorate/quorate/test/freeport"
)

// readyLimit bounds the start of a server.
const readyLimit = 3 * time.Minute

// Server is a program of the sandbox that runs as a process of this machine, on
// loopback.
type Server struct {
	name    string
	cmd     func() *exec.Cmd
	log     *os.File
	process *process
}

// server prepares a program with its log in dir; args are asked for at each start.
func (s *Sandbox) server(ctx context.Context, program, dir string, args func() []string) (*Server, error) {
	path, err := s.Build(ctx, program)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, program+".log"))
	if err != nil {
		return nil, err
	}
	return &Server{name: program, log: log, cmd: func() *exec.Cmd {
		cmd := exec.Command(path, args()...)
		// Memory in place of processor time, which is that of what is tested or measured beside it.
		cmd.Env = append(os.Environ(), "GOGC=300")
		return cmd
	}}, nil
}

// Start starts the program, also after Kill.
func (s *Server) Start() (err error) {
	s.process, err = startProcess(s.cmd(), s.log)
	return err
}

// Kill ends the program at once.
func (s *Server) Kill() {
	if s.process != nil && s.process.running() {
		s.process.kill()
	}
}

// Close ends the program; its directory stays.
func (s *Server) Close() {
	s.Kill()
	_ = s.log.Close()
}

// await waits until probe succeeds.
func (s *Server) await(ctx context.Context, probe func(context.Context) error) error {
	var last error
	err := Poll(ctx, readyLimit, func(ctx context.Context) (bool, error) {
		if !s.process.running() {
			return false, fmt.Errorf("it ended at once: %w", s.process.err)
		}
		limited, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		last = probe(limited)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s is not ready, see %s: %w", s.name, s.log.Name(), errors.Join(err, last))
	}
	return nil
}

// EtcdServer is a single etcd without certificates.
type EtcdServer struct {
	*Server
	// Name is that of its member, PeerURL its address for peers, and URL that for
	// clients.
	Name, PeerURL, URL string
	// DataDir is where its data is at the next start.
	DataDir string
}

// StartEtcd starts a single etcd of a release below dir, with more arguments.
func (s *Sandbox) StartEtcd(ctx context.Context, version, dir string, args ...string) (*EtcdServer, error) {
	client, err := freeport.At("127.0.0.1")
	if err != nil {
		return nil, err
	}
	peer, err := freeport.At("127.0.0.1")
	if err != nil {
		return nil, err
	}
	e := &EtcdServer{Name: "orders-0", PeerURL: "http://" + peer, URL: "http://" + client, DataDir: filepath.Join(dir, "data")}
	e.Server, err = s.server(ctx, "etcd-v"+version, dir, func() []string {
		return append([]string{
			"--name=" + e.Name, "--data-dir=" + e.DataDir, "--logger=zap",
			"--listen-client-urls=" + e.URL, "--advertise-client-urls=" + e.URL,
			"--listen-peer-urls=" + e.PeerURL, "--initial-advertise-peer-urls=" + e.PeerURL,
			"--initial-cluster=" + e.Name + "=" + e.PeerURL,
		}, args...)
	})
	if err != nil {
		return nil, err
	}
	return e, e.Restart(ctx)
}

// Restart starts etcd and waits until it answers.
func (e *EtcdServer) Restart(ctx context.Context) error {
	if err := e.Start(); err != nil {
		return err
	}
	client, err := e.Dial("", "")
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return e.await(ctx, func(ctx context.Context) error {
		_, err := client.Status(ctx, e.URL)
		return err
	})
}

// Dial connects to it, as a user where authentication is on.
func (e *EtcdServer) Dial(user, password string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{e.URL}, DialTimeout: askTimeout, Logger: zap.NewNop(), Username: user, Password: password})
}

// APIServer is a separate kube-apiserver, with RBAC.
type APIServer struct {
	*Server
	// Config reaches it as somebody who may do everything, and act as anybody.
	Config *rest.Config
}

// StartAPIServer starts a kube-apiserver below dir whose store is at an etcd's URL, with
// more arguments.
func (s *Sandbox) StartAPIServer(ctx context.Context, etcdURL, dir string, more ...string) (*APIServer, error) {
	address, err := freeport.At("127.0.0.1")
	if err != nil {
		return nil, err
	}
	const token = "lab"
	keys, tokens := filepath.Join(dir, "service-account.key"), filepath.Join(dir, "tokens.csv")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(tokens, []byte(token+",lab,lab,system:masters\n"), 0o600); err != nil {
		return nil, err
	}
	if err := writeSigningKey(keys); err != nil {
		return nil, err
	}
	a := &APIServer{Config: &rest.Config{Host: "https://" + address, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}}
	args := append([]string{
		"--etcd-servers=" + etcdURL, "--bind-address=127.0.0.1", "--secure-port=" + portOf(address), "--cert-dir=" + dir,
		"--advertise-address=127.0.0.1", "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC", "--token-auth-file=" + tokens,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + keys, "--service-account-signing-key-file=" + keys,
		"--endpoint-reconciler-type=none", "--disable-admission-plugins=ServiceAccount", "--profiling=false",
	}, more...)
	a.Server, err = s.server(ctx, "kube-apiserver", dir, func() []string { return args })
	if err != nil {
		return nil, err
	}
	return a, a.Restart(ctx)
}

// Restart starts the API server and waits until it is ready.
func (a *APIServer) Restart(ctx context.Context) error {
	if err := a.Start(); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(a.Config)
	if err != nil {
		return err
	}
	return a.await(ctx, func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// WriteKubeconfig writes a kubeconfig that reaches it as Config does.
func (a *APIServer) WriteKubeconfig(path string) error {
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: lab\nclusters: [{name: lab, cluster: {server: %q, insecure-skip-tls-verify: true}}]\nusers: [{name: lab, user: {token: %q}}]\ncontexts: [{name: lab, context: {cluster: lab, user: lab}}]\n",
		a.Config.Host, a.Config.BearerToken)
	return os.WriteFile(path, []byte(text), 0o600)
}

// portOf is the port of an address.
func portOf(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// writeSigningKey writes a new private key.
func writeSigningKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// StartControllers starts controllers of Kubernetes, by their names, against an API server, with
// more arguments.
func (s *Sandbox) StartControllers(ctx context.Context, api *APIServer, dir string, names []string, more ...string) (*Server, error) {
	config := filepath.Join(dir, "controllers.kubeconfig")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := api.WriteKubeconfig(config); err != nil {
		return nil, err
	}
	server, err := s.server(ctx, "kube-controller-manager", dir, func() []string {
		return append([]string{"--kubeconfig=" + config, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=0", "--controllers=" + strings.Join(names, ","), "--kube-api-qps=200", "--kube-api-burst=400"}, more...)
	})
	if err != nil {
		return nil, err
	}
	return server, server.Start()
}
