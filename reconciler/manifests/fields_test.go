package manifests

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/schema"
)

// elsewhere are the fields of a cluster's spec that change no object, and who
// reads them instead. A field that is neither here nor in the objects would be
// silently ignored.
func elsewhere() map[string]string {
	return map[string]string{
		"spec.backup.destination.objectURLTemplate":            "the reconciler: backupTemplate",
		"spec.backup.destination.credentials.secretName":       "the reconciler: storeOf",
		"spec.backup.destination.encryption.recipients":        "the reconciler: storeOf",
		"spec.backup.destination.compression":                  "the reconciler: storeOf",
		"spec.backup.destination.podAccess.claimName":          "the reconciler: Stores.Way",
		"spec.backup.destination.podAccess.serviceAccountName": "the reconciler: Stores.Way",
		"spec.upgrade.backup":                                  "the planner: rule backup",
		"spec.upgrade.soak":                                    "the planner: rule soak",
		"spec.upgrade.path":                                    "the planner: rule path",
		"spec.network.clusterDomain":                           "the certificates: see TestEveryFieldOfASpecIsCarriedOut",
		"spec.tls.clients":                                     "the planner: rule clients",
		"spec.tls.secrets.client":                              "the reconciler: findEndpoints",
		"spec.tls.rotate":                                      "the planner: rule rotation; see TestTrustIsMountedFromASecretOfItsOwn",
		"spec.tls.overlap":                                     "the planner: rule rotation",
		"spec.tls.lifetimes.certificate":                       "the certificates: NewLeaf",
		"spec.tls.lifetimes.authority":                         "the certificates: newAuthority",
		"spec.maintenance":                                     "the planner: rule window",
		"spec.state":                                           "the planner: rules hibernated, hibernate and deletion",
		"spec.deletion.volumes":                                "the planner: rule deletion",
		"spec.deletion.backup":                                 "the planner: rule deletion",
		"spec.repair.mode":                                     "the planner: rule repair",
		"spec.repair.after":                                    "the planner: rule repair",
		"spec.repair.nodeTimeout":                              "the planner: rule repair",
		"spec.storage.removedVolumes":                          "the planner: rule remove",
		"spec.mode":                                            "the planner: observeOnly",
		"spec.storage.classChange":                             "the planner: rule volumes and misplaced",
		"spec.defragmentation.mode":                            "the planner: rule defragment",
		"spec.defragmentation.schedule":                        "the planner: rule defragment",
		"spec.defragmentation.timeZone":                        "the planner: rule defragment",
		"spec.recovery.acceptHashMismatch":                     "the Job that restores the volume",
		"spec.recovery.acceptUnsigned":                         "the executor: rest and offerBackup",
		"spec.recovery.clusterID":                              "the planner: rule recovery",
		"spec.recovery.decryption.secretName":                  "the Job that restores the volume",
		"spec.recovery.member":                                 "the planner: rule recovery",
		"spec.recovery.objectURL":                              "the planner: rule recovery",
		"spec.drift.mode":                                      "the observer: View.leave",
		"spec.takeOver":                                        "the planner: rule owner",
		"spec.auth":                                            "the planner: rules noauth, auth and users",
		"spec.upgrade.wave":                                    "the planner: rule fleet",
		"spec.upgrade.maxSurge":                                "the planner: rule surge",
		"spec.upgrade.checks":                                  "the planner: rule fleet, for clusters of higher waves",
	}
}

// another is a value of a field that differs from that of the cluster to which
// it is applied.
func another() map[string]any {
	return map[string]any{
		"spec.version":                  "3.6.15",
		"spec.replicas":                 int32(5),
		"spec.image.digest":             "sha256:" + strings.Repeat("0a", 32),
		"spec.storage.size":             resource.MustParse("16Gi"),
		"spec.etcd.quotaBackendBytes":   new(resource.MustParse("4Gi")),
		"spec.etcd.options":             map[string]string{"heartbeat-interval": "200"},
		"spec.etcd.autoCompaction.mode": "revision", "spec.etcd.autoCompaction.retention": "10",
		"spec.tls.mode":    schema.TLSDisabled,
		"spec.tls.clients": []schema.TLSClient{{Name: "checkout"}},
		"spec.tls.overlap": &metav1.Duration{Duration: time.Hour},

		"spec.tls.lifetimes.certificate": &metav1.Duration{Duration: time.Hour},
		"spec.tls.lifetimes.authority":   &metav1.Duration{Duration: time.Hour},

		"spec.upgrade.soak":           &metav1.Duration{Duration: time.Hour},
		"spec.auth":                   &schema.AuthSpec{Enabled: new(true)},
		"spec.repair.after":           &metav1.Duration{Duration: time.Hour},
		"spec.repair.nodeTimeout":     &metav1.Duration{Duration: 2 * time.Hour},
		"spec.upgrade.wave":           int32(2),
		"spec.upgrade.maxSurge":       int32(1),
		"spec.upgrade.checks":         []schema.UpgradeCheck{{Name: "smoke", HTTP: &schema.HTTPCheck{URL: "https://orders.example.com"}}},
		"spec.network.ipFamilyPolicy": corev1.IPFamilyPolicyPreferDualStack,
		"spec.network.ipFamilies":     []corev1.IPFamily{corev1.IPv6Protocol},
		"spec.drift.ignore":           []schema.IgnoredDrift{{Kind: "Service", Path: "/spec/sessionAffinity", Reason: "x", Report: true}},
		"spec.maintenance":            []schema.MaintenanceWindow{{Schedule: "0 2 * * 6"}},
		"spec.etcd.resources": corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		},
		"spec.podTemplate.spec.resources": corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		},
		"spec.podTemplate.spec.affinity":                  &corev1.Affinity{},
		"spec.podTemplate.spec.securityContext":           &corev1.PodSecurityContext{},
		"spec.podTemplate.spec.tolerations":               []corev1.Toleration{{Key: "etcd"}},
		"spec.podTemplate.spec.topologySpreadConstraints": []corev1.TopologySpreadConstraint{{MaxSkew: 2}},
		"spec.podTemplate.spec.imagePullSecrets":          []corev1.LocalObjectReference{{Name: "mirror"}},
	}
}

// field is a leaf of the file format.
type field struct {
	path  string
	index [][]int
}

// specFields lists the fields of a struct that a file may set, down to the types that
// are Kubernetes' own.
func specFields(t reflect.Type, path string, index [][]int) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		here := slices.Concat(index, [][]int{f.Index})
		if f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == reflect.TypeFor[schema.ClusterSpec]().PkgPath() {
			all = append(all, specFields(f.Type, path+"."+name, here)...)
			continue
		}
		all = append(all, field{path + "." + name, here})
	}
	return all
}

// set gives a field of the spec another value: the one of the table, else "x".
func (f field) set(spec *schema.ClusterSpec, value any) {
	v := reflect.ValueOf(spec).Elem()
	for _, index := range f.index {
		v = v.FieldByIndex(index)
	}
	switch {
	case value != nil:
		v.Set(reflect.ValueOf(value))
	case v.Kind() == reflect.String:
		v.SetString("x")
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.String:
		v.Set(reflect.New(v.Type().Elem()))
		v.Elem().SetString("x")
	case v.Kind() == reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"x": "x"}))
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String:
		v.Set(reflect.ValueOf([]string{"x"}))
	}
}

// objectsOf is everything that is rendered of a cluster, as text.
func objectsOf(t *testing.T, c schema.EtcdCluster) string {
	t.Helper()
	m := MustRender(t, c, ordersOptions())
	text, err := yaml.Marshal([]any{m.Headless, m.Client, m.PDB, m.StatefulSet})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every field of a cluster's spec changes what is rendered, or stands in
// elsewhere with who reads it: a new field cannot be forgotten.
func TestEveryFieldOfASpecIsCarriedOut(t *testing.T) {
	readers, values := elsewhere(), another()
	for _, f := range specFields(reflect.TypeFor[schema.ClusterSpec](), "spec", nil) {
		t.Run(f.path, func(t *testing.T) {
			base := clustertest.Orders()
			switch {
			case strings.HasPrefix(f.path, "spec.tls.secrets"):
				clustertest.NamedTLS(&base)
			case f.path == "spec.etcd.autoCompaction.mode":
				base.Spec.Etcd.AutoCompaction.Retention = "1"
			}
			changed := base
			f.set(&changed.Spec, values[f.path])
			if same(t, base.Spec, changed.Spec) {
				t.Fatal("the test has not changed the field: give it a value in another")
			}
			rendered := objectsOf(t, base) != objectsOf(t, changed)
			reader, named := readers[f.path]
			delete(readers, f.path)
			switch {
			case !rendered && !named:
				t.Error("it changes no object: carry it out, or say in elsewhere who reads it")
			case rendered && named:
				t.Errorf("it changes an object, and elsewhere says that only %s reads it", reader)
			}
		})
	}
	for path := range readers {
		t.Errorf("elsewhere names %s, which is no field", path)
	}
	// The domain is in no object, but in what the certificates are asked for.
	inDomain := clustertest.Orders(func(c *schema.EtcdCluster) { c.Spec.Network.ClusterDomain = "example.org" })
	if same(t, certificateHosts(clustertest.Orders()), certificateHosts(inDomain)) {
		t.Error("spec.network.clusterDomain changes no certificate")
	}
}

// certificateHosts are the names in the certificates of a cluster.
func certificateHosts(c schema.EtcdCluster) []string {
	var hosts []string
	for _, l := range certs.Leaves(c, "cluster.local") {
		hosts = append(hosts, l.Names()...)
	}
	return hosts
}

// same compares two values by their JSON.
func same(t *testing.T, a, b any) bool {
	t.Helper()
	left, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	right, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(left) == string(right)
}
