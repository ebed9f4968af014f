package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
)

// pod is one end of a connection. The zero value is outside of the Kubernetes cluster.
type pod struct {
	namespace           string
	labels, ofNamespace map[string]string
}

// network is what deploy/network lets through.
type network []networkingv1.NetworkPolicy

// readNetwork reads the policies of quorate-system, and those of the namespace shop.
func readNetwork(t *testing.T) (n network) {
	t.Helper()
	for dir, namespace := range map[string]string{"daemon": "quorate-system", "clusters": "shop"} {
		at := filepath.Join("..", "..", "deploy", "network", dir)
		var k struct {
			Resources []string `json:"resources"`
		}
		readYAML(t, filepath.Join(at, "kustomization.yaml"), func(text []byte) error { return yaml.Unmarshal(text, &k) })
		for _, file := range k.Resources {
			readYAML(t, filepath.Join(at, file), func(text []byte) error {
				var p networkingv1.NetworkPolicy
				if err := yaml.UnmarshalStrict(text, &p); err != nil {
					return err
				}
				p.Namespace = namespace
				n = append(n, p)
				return nil
			})
		}
	}
	if len(n) != 4 {
		t.Fatalf("%d policies", len(n))
	}
	return n
}

// readYAML reads each document of a file.
func readYAML(t *testing.T, file string, read func(text []byte) error) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		if err := read(document); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
}

// lets reports whether a connection is let through: by the policies of where it comes from, and by
// those of where it leads.
func (n network) lets(from, to pod, port int32, protocol corev1.Protocol) bool {
	return n.direction(networkingv1.PolicyTypeEgress, from, to, port, protocol) && n.direction(networkingv1.PolicyTypeIngress, to, from, port, protocol)
}

// direction asks the policies that are about one end. Where none is, everything is let through.
func (n network) direction(d networkingv1.PolicyType, about, other pod, port int32, protocol corev1.Protocol) bool {
	selected, let := false, false
	for _, p := range n {
		if p.Namespace != about.namespace || !slices.Contains(p.Spec.PolicyTypes, d) || !selects(&p.Spec.PodSelector, about.labels) {
			continue
		}
		selected = true
		for _, r := range p.Spec.Ingress {
			let = let || d == networkingv1.PolicyTypeIngress && hasPeer(r.From, about.namespace, other) && hasPort(r.Ports, port, protocol)
		}
		for _, r := range p.Spec.Egress {
			let = let || d == networkingv1.PolicyTypeEgress && hasPeer(r.To, about.namespace, other) && hasPort(r.Ports, port, protocol)
		}
	}
	return !selected || let
}

// hasPeer reports whether a rule is for the other end; one without peers is for everybody.
func hasPeer(peers []networkingv1.NetworkPolicyPeer, namespace string, other pod) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		there := other.namespace == namespace
		if p.NamespaceSelector != nil {
			there = other.namespace != "" && selects(p.NamespaceSelector, other.ofNamespace)
		}
		return there && (p.PodSelector == nil || selects(p.PodSelector, other.labels))
	})
}

func hasPort(ports []networkingv1.NetworkPolicyPort, port int32, protocol corev1.Protocol) bool {
	return slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntVal == port && *p.Protocol == protocol })
}

func selects(s *metav1.LabelSelector, of map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(of))
}

// ends are the pods that quorate renders, and others.
func ends(t *testing.T) map[string]pod {
	t.Helper()
	c := clustertest.Orders()
	m, err := manifests.Render(c, manifests.Options{GuardImage: "quorate"})
	if err != nil {
		t.Fatal(err)
	}
	q := clustertest.Once()
	q.Spec.Source.ClusterName = "orders"
	job := jobs.Job{Name: "job", For: q}
	in := func(namespace string, labels map[string]string, marks ...string) pod {
		p := pod{namespace: namespace, labels: labels, ofNamespace: map[string]string{corev1.LabelMetadataName: namespace}}
		for _, l := range marks {
			p.ofNamespace[l] = "true"
		}
		return p
	}
	var daemon appsv1.Deployment
	readYAML(t, filepath.Join("..", "..", "deploy", "base", "deployment.yaml"), func(text []byte) error { return yaml.UnmarshalStrict(text, &daemon) })
	member := m.StatefulSet.Spec.Template.Labels
	return map[string]pod{
		"member":           in("shop", member),
		"foreign member":   in("other", member),
		"daemon":           in("quorate-system", daemon.Spec.Template.Labels),
		"false daemon":     in("shop", daemon.Spec.Template.Labels),
		"backup Job":       in("shop", jobs.RenderBackup(job, jobs.Backup{To: schema.Destination{}}).Spec.Template.Labels),
		"restore Job":      in("shop", jobs.RenderRestore(desired.Cluster{EtcdCluster: c}, nil, "quorate", "data-orders-0", record.Recovering{Token: "orders-1"}, stores.Way{}).Spec.Template.Labels),
		"drill Job":        in("shop", jobs.RenderDrill(job, backup.Verified{}, jobs.DrillImages{}, nil, stores.Way{}).Spec.Template.Labels),
		"client":           in("shop", map[string]string{"app": "checkout", "quorate.dev/client": "true"}),
		"foreign client":   in("other", map[string]string{"quorate.dev/client": "true"}),
		"pod":              in("shop", map[string]string{"app": "checkout"}),
		"Prometheus":       in("monitoring", map[string]string{"app": "prometheus"}, "quorate.dev/scrapes"),
		"false Prometheus": in("shop", map[string]string{"app": "prometheus"}),
		"DNS":              in("kube-system", map[string]string{"k8s-app": "kube-dns"}),
		"world":            {},
	}
}

// connection is one that is begun by TCP, and at port 53 by UDP as well.
type connection struct {
	from, to string
	port     int32
}

// needed are the connections that must be let through.
func needed() []connection {
	return []connection{
		{"daemon", "member", naming.ClientPort},
		{"daemon", "foreign member", naming.ClientPort},
		{"daemon", "member", naming.PeerPort},
		{"daemon", "foreign member", naming.PeerPort},
		{"daemon", "world", 443},
		{"daemon", "world", 6443},
		{"daemon", "world", 22},
		{"daemon", "DNS", 53},
		{"Prometheus", "daemon", 8080},
		{"Prometheus", "member", naming.MetricsPort},
		{"member", "member", naming.PeerPort},
		{"member", "member", naming.SecondPeerPort},
		{"member", "DNS", 53},
		{"client", "member", naming.ClientPort},
		{"backup Job", "member", naming.ClientPort},
		{"backup Job", "world", 443},
		{"restore Job", "world", 443},
		{"drill Job", "world", 443},
		{"backup Job", "DNS", 53},
		{"restore Job", "DNS", 53},
		{"drill Job", "DNS", 53},
	}
}

// misses are the needed connections that are not let through.
func (n network) misses(all map[string]pod) (list []connection) {
	for _, c := range needed() {
		protocols := []corev1.Protocol{corev1.ProtocolTCP}
		if c.port == 53 {
			protocols = append(protocols, corev1.ProtocolUDP)
		}
		for _, protocol := range protocols {
			if !n.lets(all[c.from], all[c.to], c.port, protocol) {
				list = append(list, c)
			}
		}
	}
	return list
}

// opens are the others that are: to the pods of quorate, and from them to anything but what may be
// a store, Git or the API server, which can be pods as well.
func (n network) opens(all map[string]pod) (list []connection) {
	anywhere := map[string][]int32{"daemon": {443, 6443, 22}, "member": {}, "backup Job": {443}, "restore Job": {443}, "drill Job": {443}}
	for from := range all {
		outside, fromOurs := anywhere[from]
		for to := range all {
			_, toOurs := anywhere[to]
			for _, port := range []int32{22, 53, 80, 443, 2378, naming.ClientPort, naming.PeerPort, naming.SecondPeerPort, naming.MetricsPort, 6443, 8080, 8081, 9000} {
				c := connection{from, to, port}
				free := !toOurs && (!fromOurs || slices.Contains(outside, port))
				if !free && !slices.Contains(needed(), c) && n.lets(all[from], all[to], port, corev1.ProtocolTCP) {
					list = append(list, c)
				}
			}
		}
	}
	return list
}

// 524: with deploy/network every connection that quorate, members, Jobs, clients and Prometheus need
// is let through, and no other one to a member, a Job or quorate.
func TestNetworkPoliciesLetThroughWhatIsNeeded(t *testing.T) {
	n, all := readNetwork(t), ends(t)
	for _, c := range n.misses(all) {
		t.Errorf("%s does not reach %s at port %d", c.from, c.to, c.port)
	}
	for _, c := range n.opens(all) {
		t.Errorf("%s reaches %s at port %d", c.from, c.to, c.port)
	}
}

// Without any rule, peer or port something that is needed is missing; and without any direction,
// peers or selector of a peer something is open.
func TestEachPartOfTheNetworkPoliciesIsNeeded(t *testing.T) {
	all, spoilt := ends(t), 0
	// spoil changes one policy after the other, where it has what is to be changed.
	spoil := func(what string, wanted func(network) bool, change func(*networkingv1.NetworkPolicySpec) bool) {
		t.Helper()
		for i := range readNetwork(t) {
			n := readNetwork(t)
			if !change(&n[i].Spec) {
				continue
			}
			if spoilt++; !wanted(n) {
				t.Errorf("%s: %s: nothing notices", n[i].Name, what)
			}
		}
	}
	missing := func(n network) bool { return len(n.misses(all)) > 0 }
	open := func(n network) bool { return len(n.opens(all)) > 0 }
	for _, d := range []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress} {
		spoil("without "+string(d), open, func(s *networkingv1.NetworkPolicySpec) bool {
			before := len(s.PolicyTypes)
			s.PolicyTypes = slices.DeleteFunc(s.PolicyTypes, func(t networkingv1.PolicyType) bool { return t == d })
			// The Jobs that take backups are held by the policy of all Jobs as well.
			return len(s.PolicyTypes) < before && s.PodSelector.MatchLabels["app.kubernetes.io/name"] != "quorate-backup"
		})
	}
	for i := range 4 {
		for j := range 4 {
			spoil(fmt.Sprintf("without port %d of ingress rule %d", j, i), missing, func(s *networkingv1.NetworkPolicySpec) bool {
				there := i < len(s.Ingress) && j < len(s.Ingress[i].Ports)
				if there {
					s.Ingress[i].Ports = slices.Delete(s.Ingress[i].Ports, j, j+1)
				}
				return there
			})
			spoil(fmt.Sprintf("without port %d of egress rule %d", j, i), missing, func(s *networkingv1.NetworkPolicySpec) bool {
				there := i < len(s.Egress) && j < len(s.Egress[i].Ports)
				if there {
					s.Egress[i].Ports = slices.Delete(s.Egress[i].Ports, j, j+1)
				}
				return there
			})
			spoil(fmt.Sprintf("without peer %d of ingress rule %d", j, i), missing, func(s *networkingv1.NetworkPolicySpec) bool {
				there := i < len(s.Ingress) && j < len(s.Ingress[i].From)
				if there {
					// The last peer is not left out, which would be everybody.
					s.Ingress[i].From[j] = networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"no": "pod"}}}
				}
				return there
			})
			spoil(fmt.Sprintf("all pods as peer %d of ingress rule %d", j, i), open, func(s *networkingv1.NetworkPolicySpec) bool {
				there := i < len(s.Ingress) && j < len(s.Ingress[i].From)
				if there {
					s.Ingress[i].From[j] = networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{}}
				}
				return there
			})
			spoil(fmt.Sprintf("all pods as peer %d of egress rule %d", j, i), open, func(s *networkingv1.NetworkPolicySpec) bool {
				there := i < len(s.Egress) && j < len(s.Egress[i].To)
				if there {
					s.Egress[i].To[j] = networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{}}
				}
				return there
			})
		}
	}
	if spoilt < 25 {
		t.Errorf("%d parts were spoilt", spoilt)
	}
}

// Each port that the pods of quorate have is one that somebody reaches, but for those on loopback.
func TestNetworkPoliciesKnowAllPorts(t *testing.T) {
	n, all := readNetwork(t), ends(t)
	reached := func(to string, port int32) bool {
		for _, from := range all {
			if n.lets(from, all[to], port, corev1.ProtocolTCP) {
				return true
			}
		}
		return false
	}
	m, err := manifests.Render(clustertest.Orders(), manifests.Options{GuardImage: "quorate"})
	if err != nil {
		t.Fatal(err)
	}
	ports := 0
	for _, c := range m.StatefulSet.Spec.Template.Spec.Containers {
		for _, p := range c.Ports {
			if ports++; !reached("member", *p.ContainerPort) {
				t.Errorf("no pod may reach port %s of a member", *p.Name)
			}
		}
	}
	var daemon appsv1.Deployment
	readYAML(t, filepath.Join("..", "..", "deploy", "base", "deployment.yaml"), func(text []byte) error { return yaml.UnmarshalStrict(text, &daemon) })
	for _, p := range daemon.Spec.Template.Spec.Containers[0].Ports {
		if ports++; !reached("daemon", p.ContainerPort) {
			t.Errorf("no pod may reach port %s of quorate", p.Name)
		}
	}
	if ports != 4 {
		t.Errorf("%d ports were found", ports)
	}
}
