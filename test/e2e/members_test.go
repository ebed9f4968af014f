package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/test/lab"
)

// memberStatus is what the tests ask of a member besides what lab.Member has.
type memberStatus struct {
	// cluster is the version of the cluster as the member knows it.
	cluster string
	// term is the raft term.
	term uint64
}

// status asks every member, by its pod's address, until all have answered.
func (w *world) status() map[string]memberStatus {
	w.Helper()
	pods, err := w.cluster.Pods(w.Context(), w.namespace, name)
	w.must(err)
	found := map[string]memberStatus{}
	for i := range pods {
		if late := lab.Poll(w.Context(), holdLimit, func(ctx context.Context) (bool, error) {
			found[pods[i].Name], err = w.statusOf(ctx, &pods[i])
			return err == nil, nil
		}); late != nil {
			w.Fatalf("ask %s: %v; last: %v", pods[i].Name, late, err)
		}
	}
	return found
}

// statusOf asks one member.
func (w *world) statusOf(ctx context.Context, pod *corev1.Pod) (memberStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client, err := w.cluster.DialMember(ctx, pod)
	if err != nil {
		return memberStatus{}, err
	}
	defer func() { _ = client.Close() }()
	status, err := client.Status(ctx, client.Endpoints()[0])
	if err != nil {
		return memberStatus{}, err
	}
	version, err := w.clusterVersion(ctx, pod)
	return memberStatus{cluster: version, term: status.RaftTerm}, err
}

// clusterVersion asks a member's /version.
func (w *world) clusterVersion(ctx context.Context, pod *corev1.Pod) (string, error) {
	secret, err := w.cluster.Client.CoreV1().Secrets(w.namespace).Get(ctx, name+"-client", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	config, err := certs.ClientTLS(secret, fmt.Sprintf("%s.%s-peers.%s.svc", pod.Name, name, w.namespace))
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(pod.Status.PodIP, "2379")+"/version", nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	var version struct {
		Cluster string `json:"etcdcluster"`
	}
	err = json.NewDecoder(answer.Body).Decode(&version)
	return version.Cluster, err
}
