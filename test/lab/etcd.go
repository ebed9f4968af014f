package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/naming"
)

const (
	clientPort = 2379
	askTimeout = 5 * time.Second
	// reachLimit is how long a new Service may take until it has an endpoint.
	reachLimit = 20 * time.Second
)

// Dial connects to an etcd cluster as its users do: by the name of the client
// Service, with the Secret NAME-client. A cluster without that Secret is dialled in
// clear text. Like a name in DNS, that of the Service is resolved whenever a
// connection is made. The caller closes the client.
func (c *Cluster) Dial(ctx context.Context, namespace, name string, options ...func(*clientv3.Config)) (*clientv3.Client, error) {
	return c.DialAs(ctx, namespace, name, "", "", options...)
}

// DialAs is Dial as a user of etcd's, rather than as the one whose name is in the
// certificate.
func (c *Cluster) DialAs(ctx context.Context, namespace, name, user, password string, options ...func(*clientv3.Config)) (*clientv3.Client, error) {
	service := naming.ClientService(name)
	lookup := func(ctx context.Context) (string, error) {
		s, err := c.Client.CoreV1().Services(namespace).Get(ctx, service, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("dial %s: %w", name, err)
		}
		return net.JoinHostPort(s.Spec.ClusterIP, strconv.Itoa(clientPort)), nil
	}
	address, err := lookup(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.reach(ctx, service, address); err != nil {
		return nil, err
	}
	return c.dialHost(ctx, namespace, name, lookup, service+"."+namespace+".svc", append(options, func(config *clientv3.Config) {
		config.Username, config.Password = user, password
	})...)
}

// reach makes the one thing clear that a client would only time out on. A Service
// whose pods have just become ready takes a moment.
func (c *Cluster) reach(ctx context.Context, service, address string) error {
	var refused error
	err := Poll(ctx, reachLimit, func(ctx context.Context) (bool, error) {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if refused = err; err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
	if err == nil {
		return nil
	}
	err = errors.Join(err, refused)
	if c.Sandbox == nil {
		return fmt.Errorf("the Service %s is not reachable from this machine: run minikube tunnel, or on kind give this machine a route (ip route add SERVICE-CIDR via NODE-ADDRESS): %w", service, err)
	}
	return fmt.Errorf("the Service %s is not reachable from this machine: %w", service, err)
}

// DialMember connects to one member by its pod's address, with quorate's certificate unless
// an option says otherwise.
func (c *Cluster) DialMember(ctx context.Context, pod *corev1.Pod, options ...func(*clientv3.Config)) (*clientv3.Client, error) {
	name := pod.Labels[naming.LabelCluster]
	if pod.Status.PodIP == "" {
		return nil, fmt.Errorf("dial %s: the pod has no address yet", pod.Name)
	}
	host := pod.Name + "." + naming.HeadlessService(name) + "." + pod.Namespace + ".svc"
	address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(clientPort))
	return c.dialHost(ctx, pod.Namespace, name, func(context.Context) (string, error) { return address, nil }, host, options...)
}

// dialHost connects to a host at the address that lookup tells.
func (c *Cluster) dialHost(ctx context.Context, namespace, name string, lookup func(context.Context) (string, error), host string, options ...func(*clientv3.Config)) (*clientv3.Client, error) {
	config, err := c.clientTLS(ctx, namespace, name, host)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", host, err)
	}
	scheme := "http://"
	if config != nil {
		scheme = "https://"
	}
	// etcd's client checks the certificate against the host of the endpoint, so
	// the endpoint has the name, and the address is only dialled.
	dialer := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		address, err := lookup(ctx)
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	})
	// Else gRPC waits for up to two minutes from one try to the next.
	often := backoff.DefaultConfig
	often.MaxDelay = askTimeout
	retrying := grpc.WithConnectParams(grpc.ConnectParams{Backoff: often, MinConnectTimeout: askTimeout})
	clientConfig := clientv3.Config{
		Endpoints: []string{scheme + net.JoinHostPort(host, strconv.Itoa(clientPort))},
		TLS:       config, Logger: zap.NewNop(), DialOptions: []grpc.DialOption{dialer, retrying},
		// What etcd's documentation asks of clients: to notice a connection that
		// leads nowhere.
		DialTimeout: askTimeout, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
	}
	for _, option := range options {
		option(&clientConfig)
	}
	client, err := clientv3.New(clientConfig)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", host, err)
	}
	return client, nil
}

// clientTLS is nil for a cluster without certificates.
func (c *Cluster) clientTLS(ctx context.Context, namespace, name, host string) (*tls.Config, error) {
	secret, err := c.Client.CoreV1().Secrets(namespace).Get(ctx, name+"-client", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return certs.ClientTLS(secret, host)
}

// Member is what one member reports about itself.
type Member struct {
	// Name is that of the member and its pod.
	Name string
	// ID and ClusterID are etcd's, Leader the ID of the leader as it sees it.
	ID, ClusterID, Leader uint64
	// Version is the server's, as in "3.6.16".
	Version string
	// Revision is the newest that it has.
	Revision int64
	// PodUID tells one incarnation of the pod from the next.
	PodUID string
}

// Pods are the pods of an etcd cluster, sorted by ordinal.
func (c *Cluster) Pods(ctx context.Context, namespace, name string) ([]corev1.Pod, error) {
	list, err := c.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: naming.LabelCluster + "=" + name})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", name, err)
	}
	sortByOrdinal(list.Items)
	return list.Items, nil
}

// Members asks every member of an etcd cluster for its status, by its pod. The
// error tells which one did not answer.
func (c *Cluster) Members(ctx context.Context, namespace, name string) ([]Member, error) {
	pods, err := c.Pods(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	members := make([]Member, len(pods))
	for i := range pods {
		if members[i], err = c.ask(ctx, &pods[i]); err != nil {
			return nil, err
		}
	}
	return members, nil
}

func (c *Cluster) ask(ctx context.Context, pod *corev1.Pod) (Member, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	client, err := c.DialMember(ctx, pod)
	if err != nil {
		return Member{}, err
	}
	defer func() { _ = client.Close() }()
	status, err := client.Status(ctx, client.Endpoints()[0])
	if err != nil {
		return Member{}, fmt.Errorf("ask %s: %w", pod.Name, err)
	}
	return Member{
		Name: pod.Name, ID: status.Header.MemberId, ClusterID: status.Header.ClusterId, Leader: status.Leader,
		Version: status.Version, Revision: status.Header.Revision, PodUID: string(pod.UID),
	}, nil
}

// Leader is the member that all members take for the leader.
func Leader(members []Member) (Member, error) {
	for _, m := range members {
		if m.ID == m.Leader {
			return m, nil
		}
	}
	return Member{}, errors.New("no member says that it is the leader")
}

// AtVersion reports whether there are n members, all of the version and with one
// leader; also as text.
func AtVersion(members []Member, n int, version string) (bool, string) {
	ok, words := len(members) == n, make([]string, len(members))
	for i, m := range members {
		ok = ok && m.Version == version && m.Leader != 0 && m.Leader == members[0].Leader
		words[i] = m.Name + " " + m.Version
	}
	return ok, strings.Join(words, ", ")
}

// MoveLeader moves the leadership to the member with that name.
func (c *Cluster) MoveLeader(ctx context.Context, namespace, name, to string) error {
	pods, err := c.Pods(ctx, namespace, name)
	if err != nil {
		return err
	}
	members, err := c.Members(ctx, namespace, name)
	if err != nil {
		return err
	}
	leader, err := Leader(members)
	if err != nil || leader.Name == to {
		return err
	}
	for i, m := range members {
		if m.Name == to {
			return c.moveLeader(ctx, podNamed(pods, leader.Name), members[i].ID)
		}
	}
	return fmt.Errorf("move the leader: there is no member %s", to)
}

func (c *Cluster) moveLeader(ctx context.Context, leader *corev1.Pod, to uint64) error {
	if leader == nil {
		return errors.New("move the leader: its pod is gone")
	}
	client, err := c.DialMember(ctx, leader)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	if _, err := client.MoveLeader(ctx, to); err != nil {
		return fmt.Errorf("move the leader from %s: %w", leader.Name, err)
	}
	return nil
}

func podNamed(pods []corev1.Pod, name string) *corev1.Pod {
	for i := range pods {
		if pods[i].Name == name {
			return &pods[i]
		}
	}
	return nil
}

// Rereading has a client read its Secret NAME-client at each handshake, as one does whose
// files a kubelet keeps: what it shows, and whom it trusts.
func (c *Cluster) Rereading(namespace, name string) func(*clientv3.Config) {
	now := func(host string) (*tls.Config, error) {
		ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
		defer cancel()
		return c.clientTLS(ctx, namespace, name, host)
	}
	return func(config *clientv3.Config) {
		host := config.TLS.ServerName
		config.TLS = &tls.Config{
			ServerName: host, MinVersion: tls.VersionTLS12,
			InsecureSkipVerify: true, // VerifyConnection does, by whom is trusted then
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				read, err := now(host)
				if err != nil {
					return nil, err
				}
				return &read.Certificates[0], nil
			},
			VerifyConnection: func(shown tls.ConnectionState) error {
				read, err := now(host)
				if err == nil {
					_, err = shown.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: read.RootCAs, DNSName: host})
				}
				return err
			},
		}
	}
}
