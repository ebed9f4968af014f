package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler"
)

// memberStatus is what the tests ask of a member beside what lab.Member has.
type memberStatus struct {
	// cluster is the version of the cluster as the member knows it.
	cluster string
	// term is the raft term.
	term uint64
}

// status asks every member, by its pod's address.
func (w *world) status() map[string]memberStatus {
	w.Helper()
	pods, err := w.cluster.Pods(w.Context(), w.namespace, name)
	w.must(err)
	found := map[string]memberStatus{}
	for i := range pods {
		client, err := w.cluster.DialMember(w.Context(), &pods[i])
		w.must(err)
		ctx, cancel := context.WithTimeout(w.Context(), 5*time.Second)
		status, err := client.Status(ctx, client.Endpoints()[0])
		cancel()
		_ = client.Close()
		w.must(err)
		found[pods[i].Name] = memberStatus{cluster: w.clusterVersion(pods[i].Name, pods[i].Status.PodIP), term: status.RaftTerm}
	}
	return found
}

// clusterVersion asks a member's /version.
func (w *world) clusterVersion(member, address string) string {
	w.Helper()
	secret, err := w.cluster.Client.CoreV1().Secrets(w.namespace).Get(w.Context(), name+"-client", metav1.GetOptions{})
	w.must(err)
	config, err := reconciler.ClientTLS(secret, fmt.Sprintf("%s.%s-peers.%s.svc", member, name, w.namespace))
	w.must(err)
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	answer, err := client.Get("https://" + net.JoinHostPort(address, "2379") + "/version")
	w.must(err)
	defer func() { _ = answer.Body.Close() }()
	var version struct {
		Cluster string `json:"etcdcluster"`
	}
	w.must(json.NewDecoder(answer.Body).Decode(&version))
	return version.Cluster
}
