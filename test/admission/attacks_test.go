package admission

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/naming"
)

// attack is a request that RBAC lets somebody make, and a policy refuses. It is only asked about
// (dryRun), so that it changes nothing where it is not refused.
type attack struct {
	what string
	// user makes it, policy refuses it, with the words says.
	user, policy, says string
	try                func(ctx context.Context, c kubernetes.Interface) error
}

var dryRun = []string{metav1.DryRunAll}

// The objects that are quorate's own, and the commit that is in force.
const (
	ownPod    = "quorate-0"
	ownRecord = "orders-record"
	inForce   = "quorate-git-0123456789"
)

// own are labels of what quorate makes for a cluster.
func own() map[string]string {
	return map[string]string{"app.kubernetes.io/managed-by": "quorate", naming.LabelCluster: "orders"}
}

// furnish makes what the attacks are about: records, by quorate itself, and objects of a tenant.
func (h *house) furnish(namespace string) {
	h.Helper()
	h.namespace(namespace)
	h.bind(quorateSystem, tenant, "ClusterRole", "edit")
	h.bind(quorateSystem, repairer, "ClusterRole", "edit")
	quorates, tenants := clientOf(h.T, quorate), clientOf(h.T, tenant)
	record := func(ns, name string, labels map[string]string) {
		h.Helper()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{naming.AnnotationWritten: "then"}}, Data: map[string]string{"record.json": "{}"}}
		h.await("quorate's record "+name, func() error {
			_ = h.kube.CoreV1().ConfigMaps(ns).Delete(h.Context(), name, metav1.DeleteOptions{})
			_, err := quorates.CoreV1().ConfigMaps(ns).Create(h.Context(), cm, metav1.CreateOptions{FieldManager: naming.FieldManager})
			return err
		}, allowed)
	}
	record(namespace, ownRecord, own())
	record(namespace, "nightly-backup-schedule", map[string]string{"app.kubernetes.io/managed-by": "quorate", naming.LabelSchedule: "nightly"})
	record(namespace, "orders-cluster-status", map[string]string{"app.kubernetes.io/managed-by": "quorate", naming.LabelStatus: "cluster"})
	record(quorateSystem, inForce, map[string]string{"app.kubernetes.io/managed-by": "quorate"})

	meta := metav1.ObjectMeta{Name: "theirs"}
	made := func(what string, create func() error) { h.Helper(); h.await("the tenant's "+what, create, allowed) }
	made("ConfigMap", func() error {
		_, err := tenants.CoreV1().ConfigMaps(namespace).Create(h.Context(), &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
		return err
	})
	made("Secret", func() error {
		_, err := tenants.CoreV1().Secrets(namespace).Create(h.Context(), &corev1.Secret{ObjectMeta: meta}, metav1.CreateOptions{})
		return err
	})
	made("Service", func() error {
		_, err := tenants.CoreV1().Services(namespace).Create(h.Context(), &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
		return err
	})
	made("claim", func() error {
		_, err := tenants.CoreV1().PersistentVolumeClaims(namespace).Create(h.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}, metav1.CreateOptions{})
		return err
	})
	made("pod", func() error {
		_, err := tenants.CoreV1().Pods(namespace).Create(h.Context(), &corev1.Pod{ObjectMeta: meta, Spec: harmless()}, metav1.CreateOptions{})
		return err
	})
	restricted := harmless()
	restricted.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	secure(corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}})(&restricted)
	daemon := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: ownPod, Labels: map[string]string{"app.kubernetes.io/name": "quorate", "app.kubernetes.io/component": "daemon"}}, Spec: restricted}
	_ = h.kube.CoreV1().Pods(quorateSystem).Delete(h.Context(), ownPod, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	made("quorate itself", func() error {
		_, err := h.kube.CoreV1().Pods(quorateSystem).Create(h.Context(), daemon, metav1.CreateOptions{})
		return err
	})
	made("StatefulSet", func() error {
		set := statefulSet(harmless(), nil)
		set.Name, set.Spec.Replicas = "theirs", new(int32(0))
		_, err := tenants.AppsV1().StatefulSets(namespace).Create(h.Context(), set, metav1.CreateOptions{})
		return err
	})
	made("budget", func() error {
		_, err := tenants.PolicyV1().PodDisruptionBudgets(namespace).Create(h.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: meta}, metav1.CreateOptions{})
		return err
	})
	made("Job", func() error {
		job := jobOf(harmless(), nil)
		job.Name = "theirs"
		_, err := tenants.BatchV1().Jobs(namespace).Create(h.Context(), job, metav1.CreateOptions{})
		return err
	})
}

// harmless is a pod as quorate's are, as far as the policies are about it.
func harmless() corev1.PodSpec {
	return corev1.PodSpec{
		AutomountServiceAccountToken: new(false), RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "etcd", Image: "quay.io/coreos/etcd:v3.6.16"}},
	}
}

func jobOf(pod corev1.PodSpec, labels map[string]string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Labels: labels}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}}}
}

func statefulSet(pod corev1.PodSpec, labels map[string]string) *appsv1.StatefulSet {
	pod.RestartPolicy = corev1.RestartPolicyAlways
	selector := map[string]string{"app": "x"}
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "set", Labels: labels}, Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: selector}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector}, Spec: pod},
	}}
}

// patch is a merge patch of a ConfigMap.
func patch(namespace, name, text string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType, []byte(text), metav1.PatchOptions{DryRun: dryRun})
		return err
	}
}

// patchPod is a strategic merge patch of a pod.
func patchPod(namespace, name, text string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{DryRun: dryRun})
		return err
	}
}

// relabel updates a ConfigMap, as quorate does.
func relabel(namespace, name string, labels map[string]string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		cm, err := c.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		cm.Labels = labels
		_, err = c.CoreV1().ConfigMaps(namespace).Update(ctx, cm, metav1.UpdateOptions{DryRun: dryRun})
		return err
	}
}

func createConfigMap(namespace string, cm corev1.ConfigMap) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().ConfigMaps(namespace).Create(ctx, &cm, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
}

func createJob(namespace string, edit func(*corev1.PodSpec)) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		pod := harmless()
		edit(&pod)
		_, err := c.BatchV1().Jobs(namespace).Create(ctx, jobOf(pod, own()), metav1.CreateOptions{DryRun: dryRun})
		return err
	}
}

func createSet(namespace string, edit func(*corev1.PodSpec)) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		pod := harmless()
		edit(&pod)
		_, err := c.AppsV1().StatefulSets(namespace).Create(ctx, statefulSet(pod, own()), metav1.CreateOptions{DryRun: dryRun})
		return err
	}
}

// mount is a volume that a pod has.
func mount(source corev1.VolumeSource) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "x", VolumeSource: source}} }
}

// secure is what a container may do.
func secure(c corev1.SecurityContext) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) { p.Containers[0].SecurityContext = &c }
}

// attacksOnRecords are what people could do who may write ConfigMaps.
func attacksOnRecords(ns string) (list []attack) {
	labelled := func(name string, labels map[string]string) corev1.ConfigMap {
		return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	const git, keep, other = "change the file in Git", "change nothing but the annotation quorate.dev/approve", "give it another name"
	for _, a := range []attack{
		{what: "forges a record", says: other, try: createConfigMap(ns, labelled("other-record", own()))},
		{what: "forges a record by its name alone", says: other, try: createConfigMap(ns, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other-record"}, Data: map[string]string{"record.json": "{}"}})},
		{what: "forges one in bytes", says: other, try: createConfigMap(ns, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other-record"}, BinaryData: map[string][]byte{"record.json": []byte("{}")}})},
		{what: "forges the record of a schedule", says: other, try: createConfigMap(ns, labelled("x-backup-schedule", map[string]string{naming.LabelSchedule: "x"}))},
		{what: "forges the record of a backup", says: other, try: createConfigMap(ns, labelled("x-backup-request", map[string]string{naming.LabelBackup: "x"}))},
		{what: "forges a status", says: other, try: createConfigMap(ns, labelled("x-cluster-status", map[string]string{naming.LabelStatus: "cluster"}))},
		{what: "forges what only the label of the owner marks", says: other, try: createConfigMap(ns, labelled("x", map[string]string{"app.kubernetes.io/managed-by": "quorate"}))},
		{what: "forges the commit in force", says: keep, try: patch(quorateSystem, inForce, `{"data":{"commit":"x"}}`)},
		{what: "forges the commit of another source", says: other, try: createConfigMap(quorateSystem, labelled("quorate-git-abcdef0123", nil))},
		{what: "changes a record", says: git, try: patch(ns, ownRecord, `{"data":{"record.json":"{\"x\":1}"}}`)},
		{what: "adds to a record", says: git, try: patch(ns, ownRecord, `{"binaryData":{"x":"eA=="}}`)},
		{what: "makes a record immutable", says: git, try: patch(ns, ownRecord, `{"immutable":true}`)},
		{what: "changes the record of a schedule", says: git, try: patch(ns, "nightly-backup-schedule", `{"data":{"x":"y"}}`)},
		{what: "changes a status", says: git, try: patch(ns, "orders-cluster-status", `{"data":{"x":"y"}}`)},
		{what: "takes the labels off a record", says: git, try: patch(ns, ownRecord, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null,"quorate.dev/cluster":null}}}`)},
		{what: "gives a record to another cluster", says: git, try: patch(ns, ownRecord, `{"metadata":{"labels":{"quorate.dev/cluster":"x"}}}`)},
		{what: "makes its own ConfigMap a record", says: git, try: patch(ns, "theirs", `{"metadata":{"labels":{"quorate.dev/cluster":"x"}}}`)},
		{what: "has a record deleted with an object", says: git, try: patch(ns, ownRecord, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"x","uid":"x"}]}}`)},
		{what: "keeps a record from being deleted", says: git, try: patch(ns, ownRecord, `{"metadata":{"finalizers":["x.example/y"]}}`)},
		{what: "annotates a record", says: git, try: patch(ns, ownRecord, `{"metadata":{"annotations":{"quorate.dev/approve":"x"}}}`)},
		{what: "changes when a status was written", says: git, try: patch(ns, "orders-cluster-status", `{"metadata":{"annotations":{"quorate.dev/written":"now"}}}`)},
		{what: "takes an annotation off a record", says: git, try: patch(ns, ownRecord, `{"metadata":{"annotations":null}}`)},
		{what: "annotates the commit in force", says: keep, try: patch(quorateSystem, inForce, `{"metadata":{"annotations":{"quorate.dev/other":"x"}}}`)},
		{what: "approves and changes the commit", says: keep, try: patch(quorateSystem, inForce, `{"metadata":{"annotations":{"quorate.dev/approve":"x"}},"data":{"commit":"x"}}`)},
		{what: "deletes a record", says: git, try: func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().ConfigMaps(ns).Delete(ctx, ownRecord, metav1.DeleteOptions{DryRun: dryRun})
		}},
		{what: "deletes the commit in force", says: keep, try: func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().ConfigMaps(quorateSystem).Delete(ctx, inForce, metav1.DeleteOptions{DryRun: dryRun})
		}},
		{what: "deletes all ConfigMaps", says: git, try: func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().ConfigMaps(ns).DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dryRun}, metav1.ListOptions{LabelSelector: naming.LabelCluster})
		}},
	} {
		a.user, a.policy = tenant, "quorate-records"
		list = append(list, a)
	}
	// All verbs on everything in one namespace are not the right to override.
	return append(list, attack{what: "deletes a record in its own namespace", user: owner, policy: "quorate-records", says: "quorate-override", try: func(ctx context.Context, c kubernetes.Interface) error {
		return c.CoreV1().ConfigMaps(ns).Delete(ctx, ownRecord, metav1.DeleteOptions{DryRun: dryRun})
	}})
}

// attacksWithTheToken are what somebody could do who has the token of quorate's service account.
func attacksWithTheToken(ns string) (list []attack) {
	const objects, secrets, services, pods = "quorate-daemon-objects", "quorate-daemon-secrets", "quorate-daemon-services", "quorate-daemon-pods"
	const foreign, unmarked = "it carries none of quorate's labels", "would carry none of quorate's labels"
	gone, change := metav1.DeleteOptions{DryRun: dryRun}, metav1.PatchOptions{DryRun: dryRun, FieldManager: "x"}
	adopt := []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"quorate"}}}`)
	forced := metav1.PatchOptions{DryRun: dryRun, FieldManager: naming.FieldManager, Force: new(true)}
	for _, a := range []attack{
		{what: "makes a Secret without labels", policy: objects, says: unmarked, try: func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{DryRun: dryRun})
			return err
		}},
		{what: "changes a tenant's Secret", policy: objects, says: foreign, try: func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets(ns).Patch(ctx, "theirs", types.MergePatchType, []byte(`{"stringData":{"x":"y"}}`), change)
			return err
		}},
		{what: "makes a tenant's Secret its own", policy: objects, says: foreign, try: func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets(ns).Patch(ctx, "theirs", types.MergePatchType, adopt, change)
			return err
		}},
		{what: "applies over a tenant's Service", policy: objects, says: foreign, try: func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Services(ns).Patch(ctx, "theirs", types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"theirs","labels":{"quorate.dev/cluster":"x"}},"spec":{"selector":{"app":"x"}}}`), forced)
			return err
		}},
		{what: "takes the labels off its own record", policy: objects, says: unmarked, try: relabel(ns, ownRecord, nil)},
		{what: "makes a tenant's ConfigMap its own", policy: objects, says: foreign, try: relabel(ns, "theirs", own())},
		{what: "deletes a tenant's ConfigMap", policy: objects, says: foreign, try: func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().ConfigMaps(ns).Delete(ctx, "theirs", gone)
		}},
		{what: "deletes a tenant's Secret", policy: objects, says: foreign, try: func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().Secrets(ns).Delete(ctx, "theirs", gone)
		}},
		{what: "deletes a tenant's Service", policy: objects, says: foreign, try: func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().Services(ns).Delete(ctx, "theirs", gone)
		}},
		{what: "deletes a tenant's pod", policy: objects, says: foreign, try: func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().Pods(ns).Delete(ctx, "theirs", gone)
		}},
		{what: "runs another image as quorate", policy: objects, says: foreign, try: patchPod(quorateSystem, ownPod, `{"spec":{"containers":[{"name":"etcd","image":"other"}]}}`)},
		{what: "deletes quorate's own pod", policy: objects, says: foreign, try: func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().Pods(quorateSystem).Delete(ctx, ownPod, gone)
		}},
		{what: "deletes a tenant's claim", policy: objects, says: foreign, try: func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().PersistentVolumeClaims(ns).Delete(ctx, "theirs", gone)
		}},
		{what: "deletes a tenant's StatefulSet", policy: objects, says: foreign, try: func(ctx context.Context, c kubernetes.Interface) error {
			return c.AppsV1().StatefulSets(ns).Delete(ctx, "theirs", gone)
		}},
		{what: "deletes a tenant's budget", policy: objects, says: foreign, try: func(ctx context.Context, c kubernetes.Interface) error {
			return c.PolicyV1().PodDisruptionBudgets(ns).Delete(ctx, "theirs", gone)
		}},
		{what: "deletes a tenant's Job", policy: objects, says: foreign, try: func(ctx context.Context, c kubernetes.Interface) error {
			return c.BatchV1().Jobs(ns).Delete(ctx, "theirs", gone)
		}},
		{what: "has the token of a service account written", policy: secrets, says: "is of the type kubernetes.io/service-account-token", try: func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: own(), Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}}, Type: corev1.SecretTypeServiceAccountToken,
			}, metav1.CreateOptions{DryRun: dryRun})
			return err
		}},
		{what: "takes the traffic of an address", policy: services, says: "would get other external IPs", try: func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Services(ns).Create(ctx, &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: own()}, Spec: corev1.ServiceSpec{ExternalIPs: []string{"192.0.2.1"}, Ports: []corev1.ServicePort{{Port: 443}}},
			}, metav1.CreateOptions{DryRun: dryRun})
			return err
		}},
		{what: "runs in a namespace of Kubernetes", policy: pods, says: "in a namespace of Kubernetes itself", try: createJob("kube-system", func(*corev1.PodSpec) {})},
		{what: "runs a privileged Job", policy: pods, says: "a privileged container", try: createJob(ns, secure(corev1.SecurityContext{Privileged: new(true)}))},
		{what: "runs a Job with capabilities", policy: pods, says: "added capabilities", try: createJob(ns, secure(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}))},
		{what: "runs a privileged init container", policy: pods, says: "a privileged container", try: createSet(ns, func(p *corev1.PodSpec) {
			p.InitContainers = []corev1.Container{{Name: "x", Image: "x", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}
		})},
		{what: "runs on the host's network", policy: pods, says: "the network, the processes or the memory of its node", try: createSet(ns, func(p *corev1.PodSpec) { p.HostNetwork = true })},
		{what: "sees the host's processes", policy: pods, says: "of its node", try: createJob(ns, func(p *corev1.PodSpec) { p.HostPID = true })},
		{what: "shares the host's memory", policy: pods, says: "of its node", try: createJob(ns, func(p *corev1.PodSpec) { p.HostIPC = true })},
		{what: "takes a port of the host", policy: pods, says: "of its node", try: createSet(ns, func(p *corev1.PodSpec) {
			p.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 2379, HostPort: 2379}}
		})},
		{what: "mounts the host's files", policy: pods, says: "would mount something else", try: createSet(ns, mount(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}))},
		{what: "mounts a service account's token", policy: pods, says: "would mount something else", try: createJob(ns, mount(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
		}}))},
		{what: "runs a Job with a token", policy: pods, says: "the token or the identity of a service account", try: createJob(ns, func(p *corev1.PodSpec) { p.AutomountServiceAccountToken = nil })},
		{what: "runs members as somebody", policy: pods, says: "the token or the identity of a service account", try: createSet(ns, func(p *corev1.PodSpec) { p.ServiceAccountName = "admin" })},
	} {
		a.user = quorate
		list = append(list, a)
	}
	return list
}

// refuse wants each attack to be refused.
func (h *house) refuse(list []attack) {
	h.Helper()
	for _, a := range list {
		client := clientOf(h.T, a.user)
		h.await(a.user+" "+a.what, func() error { return a.try(h.Context(), client) }, refusedBy(a.policy, a.says))
	}
}

// 520: who may edit the namespaces of clusters, and that of quorate, does not write its records.
func TestATenantWritesNoRecord(t *testing.T) {
	h := newHouse(t)
	h.furnish("records")
	h.refuse(attacksOnRecords("records"))
}

// 521: who has the token of quorate's service account writes nothing but what is quorate's, and
// starts nothing that reaches a node or another identity.
func TestTheTokenOfQuorateWritesNothingForeign(t *testing.T) {
	h := newHouse(t)
	h.furnish("token")
	h.refuse(attacksWithTheToken("token"))
	client := clientOf(t, quorate)
	h.await("quorate marks its own pod", func() error {
		return patchPod(quorateSystem, ownPod, `{"metadata":{"labels":{"`+naming.LabelActing+`":"true"}}}`)(t.Context(), client)
	}, allowed)
}

// Without a policy what it refuses is let through by all others: each is needed, and RBAC alone
// would have let the attack succeed.
func TestEachPolicyIsNeeded(t *testing.T) {
	h := newHouse(t)
	h.furnish("needed")
	of := map[string][]attack{}
	for _, a := range append(attacksOnRecords("needed"), attacksWithTheToken("needed")...) {
		of[a.policy] = append(of[a.policy], a)
	}
	for _, p := range h.policies() {
		if len(of[p.Name]) == 0 {
			t.Errorf("no attack is refused by %s", p.Name)
			continue
		}
		h.refuse(of[p.Name][:1])
		h.remove(h.bindings[p.Name])
		for _, a := range of[p.Name] {
			client := clientOf(t, a.user)
			h.await("without "+p.Name+", "+a.user+" "+a.what, func() error { return a.try(t.Context(), client) }, allowed)
		}
		h.apply(h.bindings[p.Name])
		h.refuse(of[p.Name][:1])
	}
}
