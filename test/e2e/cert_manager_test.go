package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/test/checkout"
)

// 590, 591: a real cert-manager issues what docs/certificates.md shows. Its renewals are taken up
// without a restart, while clients write; a certificate that lacks a name holds a roll.
func TestCertificatesOfCertManager(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "cert-manager")
	if w.cluster.Sandbox == nil {
		t.Skip("cert-manager is built by the sandbox")
	}
	shown := w.shownCertificates()
	want := spec{version: "3.6.16", replicas: 3, more: shown.cluster}
	w.commit("Add "+name, want)
	w.start()
	w.awaitHold("Unhealthy", holdLimit, "certificates: orders-tls-server does not exist")
	w.startCertManager()
	w.applyText(shown.issuer)
	w.awaitIdle(want.version, createLimit)
	w.copyClient()
	w.expectVersion(3, want.version)
	w.expectServing(3)

	writer, before := w.load(), w.uids()
	for _, secret := range []string{"orders-tls-server", "orders-tls-peer", "orders-tls-client"} {
		w.renew(secret)
	}
	w.awaitShown("orders-tls-server", naming.ClientPort)
	w.awaitShown("orders-tls-peer", naming.PeerPort)
	w.expectUIDs(before)

	without := "    - orders-2.orders-peers." + w.namespace + ".svc\n"
	w.reissue(shown.issuer, without, "")
	want.more += "  etcd:\n    options: {heartbeat-interval: \"150\"}\n"
	w.commit("Change an option", want)
	w.awaitHold("Unhealthy", holdLimit, "certificates: orders-tls-server does not cover orders-2.orders-peers."+w.namespace+".svc")
	w.expectNoStep(w.mark)
	w.expectUIDs(before)

	w.applyText(shown.issuer)
	w.awaitDone(rollLimit)
	for pod, uid := range w.uids() {
		if before[pod] == uid {
			t.Errorf("%s was not restarted", pod)
		}
	}
	w.expectServing(3)
	w.finishLoad(writer)
}

// shownOf is what docs/certificates.md shows: for cert-manager, and below spec of a cluster.
type shownOf struct{ issuer, cluster string }

// shownCertificates reads the page, with the test's namespace in the place of the page's.
func (w *world) shownCertificates() shownOf {
	w.Helper()
	root, err := checkout.Root()
	w.must(err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "certificates.md"))
	w.must(err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 2 {
		w.Fatalf("docs/certificates.md has %d blocks of YAML", len(blocks))
	}
	names := strings.NewReplacer("namespace: shop", "namespace: "+w.namespace, ".shop.svc", "."+w.namespace+".svc")
	return shownOf{names.Replace(blocks[0][1]), names.Replace(blocks[1][1])}
}

// certManagerRights are those of cert-manager's own chart that it needs in one namespace.
const certManagerRights = `apiVersion: v1
kind: ServiceAccount
metadata: {name: cert-manager}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: cert-manager}
rules:
- apiGroups: [cert-manager.io]
  resources: [issuers, certificates, certificaterequests]
  verbs: [get, list, watch, update, patch]
- apiGroups: [cert-manager.io]
  resources: [certificaterequests]
  verbs: [create, delete]
- apiGroups: [cert-manager.io]
  resources: [issuers/status, certificates/status, certificaterequests/status]
  verbs: [update, patch]
- apiGroups: [cert-manager.io]
  resources: [certificates/finalizers, certificaterequests/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, update, delete, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: cert-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: cert-manager}
subjects: [{kind: ServiceAccount, name: cert-manager}]
`

// startCertManager runs cert-manager for the test's namespace until the test ends, with the
// CustomResourceDefinitions of its own module.
func (w *world) startCertManager() {
	w.Helper()
	binary, err := w.cluster.Sandbox.Build(w.Context(), "cert-manager")
	w.must(err)
	for _, kind := range []string{"issuers", "certificates", "certificaterequests"} {
		crd := filepath.Join(w.certManagerSource(), "deploy", "crds", "cert-manager.io_"+kind+".yaml")
		w.kubectl("apply", "--server-side", "--filename="+crd)
		w.Cleanup(func() {
			cmd, err := w.cluster.Kubectl(context.Background(), "delete", "--wait=false", "--filename="+crd)
			if err = errors.Join(err, cmd.Run()); err != nil {
				w.Error(err)
			}
		})
	}
	w.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/certificates.cert-manager.io", "crd/issuers.cert-manager.io", "crd/certificaterequests.cert-manager.io")
	w.applyText(certManagerRights)
	w.startProgram(binary, w.TempDir(), "--namespace="+w.namespace, "--kubeconfig="+w.kubeconfigOf("cert-manager"))
}

// certManagerSource is where the source of cert-manager is.
func (w *world) certManagerSource() string {
	w.Helper()
	root, err := checkout.Root()
	w.must(err)
	cmd := exec.CommandContext(w.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	cmd.Dir, cmd.Env = filepath.Join(root, "test", "sandbox", "certmanager"), append(os.Environ(), "GOWORK=off")
	dir, err := cmd.Output()
	w.must(err)
	return strings.TrimSpace(string(dir))
}

// kubeconfigOf writes a kubeconfig with a token of a service account, which ends within the hour.
func (w *world) kubeconfigOf(account string) string {
	w.Helper()
	token, err := w.cluster.Client.CoreV1().ServiceAccounts(w.namespace).CreateToken(w.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	w.must(err)
	config, err := (&clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(w.cluster.Kubeconfig)}).Load()
	w.must(err)
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &api.AuthInfo{Token: token.Status.Token}
	}
	w.must(api.FlattenConfig(config))
	path := filepath.Join(w.TempDir(), "kubeconfig")
	w.must(clientcmd.WriteToFile(*config, path))
	return path
}

// applyText applies objects to the test's namespace.
func (w *world) applyText(text string) {
	w.Helper()
	path := filepath.Join(w.TempDir(), "objects.yaml")
	w.must(os.WriteFile(path, []byte(text), 0o600))
	w.kubectl("apply", "--filename="+path)
}

// copyClient copies quorate's certificate to the Secret with which the lab dials.
func (w *world) copyClient() {
	w.Helper()
	secrets := w.cluster.Client.CoreV1().Secrets(w.namespace)
	from, err := secrets.Get(w.Context(), "orders-tls-client", metav1.GetOptions{})
	w.must(err)
	_, err = secrets.Create(w.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name + "-client"}, Type: from.Type, Data: from.Data}, metav1.CreateOptions{})
	w.must(err)
}

// renew has a certificate issued again, as `cmctl renew` does: the Secret has its name.
func (w *world) renew(certificate string) {
	w.Helper()
	before := w.leafIn(certificate)
	w.kubectl("patch", "certificate/"+certificate, "--subresource=status", "--type=json", fmt.Sprintf(
		`--patch=[{"op":"add","path":"/status/conditions/-","value":{"type":"Issuing","status":"True","reason":"ManuallyTriggered","message":"renewed by a test","lastTransitionTime":%q}}]`,
		time.Now().UTC().Format(time.RFC3339)))
	w.awaitOther(certificate, before)
}

// reissue changes what is asked of cert-manager, and waits until the server's certificate is another.
func (w *world) reissue(text, from, to string) {
	w.Helper()
	before := w.leafIn("orders-tls-server")
	at := strings.Index(text, "name: orders-tls-server,")
	changed := text[:at] + strings.Replace(text[at:], from, to, 1)
	if changed == text {
		w.Fatalf("docs/certificates.md does not have %q", from)
	}
	w.applyText(changed)
	w.awaitOther("orders-tls-server", before)
}

// leafIn is the certificate in a Secret.
func (w *world) leafIn(secret string) *x509.Certificate {
	w.Helper()
	s, err := w.cluster.Client.CoreV1().Secrets(w.namespace).Get(w.Context(), secret, metav1.GetOptions{})
	w.must(err)
	pair, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	w.must(err)
	return pair.Leaf
}

// awaitOther waits until a Secret has another certificate, with another key.
func (w *world) awaitOther(secret string, before *x509.Certificate) {
	w.Helper()
	w.eventually("another certificate in "+secret, holdLimit, func(context.Context) (bool, error) {
		now := w.leafIn(secret)
		return !now.Equal(before) && string(now.RawSubjectPublicKeyInfo) != string(before.RawSubjectPublicKeyInfo), nil
	})
}

// awaitShown waits until every member shows on a port what is in a Secret.
func (w *world) awaitShown(secret string, port int) {
	w.Helper()
	want := w.leafIn(secret)
	w.eventually(fmt.Sprintf("every member to show what is in %s at port %d", secret, port), changeLimit, func(ctx context.Context) (bool, error) {
		pods, err := w.cluster.Pods(ctx, w.namespace, name)
		if err != nil {
			return false, err
		}
		for i := range pods {
			shown, err := w.shownBy(ctx, &pods[i], port, secret, pods[i].Name+"."+name+"-peers."+w.namespace+".svc")
			if taken := err == nil && shown.Equal(want); !taken {
				return false, nil // a handshake may fail while the kubelet changes the files
			}
		}
		return len(pods) == 3, nil
	})
}

// expectUIDs wants no pod to be another one.
func (w *world) expectUIDs(before map[string]string) {
	w.Helper()
	for pod, uid := range w.uids() {
		if before[pod] != uid {
			w.Errorf("%s was restarted", pod)
		}
	}
}
