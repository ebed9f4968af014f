package manifests

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// RenderTemplate renders the pods of c and their hash. Nothing in it depends on
// the number of replicas, so that scaling restarts no member. The guard's image is
// put in after hashing, and the startup probe is taken out after it, so that an
// upgrade of quorate restarts none either.
func RenderTemplate(c schema.EtcdCluster, o Options) (*corev1ac.PodTemplateSpecApplyConfiguration, string, error) {
	spec, err := renderPodSpec(c, o)
	if err != nil {
		return nil, "", err
	}
	template := corev1ac.PodTemplateSpec().
		WithLabels(naming.OverlayMaps(c.Spec.PodTemplate.Metadata.Labels, naming.OwnLabels(c))).
		WithAnnotations(naming.OverlayMaps(c.Spec.PodTemplate.Metadata.Annotations, map[string]string{naming.AnnotationVersion: c.Spec.Version})).
		WithSpec(spec)
	// encoding/json writes struct fields in a fixed order and map keys sorted.
	text, err := json.Marshal(template)
	if err != nil {
		return nil, "", fmt.Errorf("hash the pod template: %w", err)
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:])[:12]
	template.WithAnnotations(map[string]string{naming.AnnotationTemplateHash: hash})
	spec.InitContainers[0].WithImage(o.GuardImage)
	if !o.StartupProbe {
		spec.Containers[0].StartupProbe = nil
	}
	return template, hash, nil
}

func renderPodSpec(c schema.EtcdCluster, o Options) (*corev1ac.PodSpecApplyConfiguration, error) {
	etcd, err := renderEtcdContainer(c, o)
	if err != nil {
		return nil, err
	}
	spec := corev1ac.PodSpec().
		WithInitContainers(renderGuardContainer(o)).
		WithContainers(etcd).
		WithVolumes(renderVolumes(c, o)...).
		// Long enough to hand over leadership and close the database.
		WithTerminationGracePeriodSeconds(60).
		WithEnableServiceLinks(false).
		WithAutomountServiceAccountToken(false)
	return spec, placePods(c, spec)
}

// placePods fills in where pods may run and as whom: the user's word, or the
// defaults.
func placePods(c schema.EtcdCluster, spec *corev1ac.PodSpecApplyConfiguration) error {
	user := c.Spec.PodTemplate.Spec
	spec.Affinity = defaultAffinity(c)
	spec.TopologySpreadConstraints = defaultSpread(c)
	spec.SecurityContext = defaultPodSecurity()
	if user.PriorityClassName != "" {
		spec.WithPriorityClassName(user.PriorityClassName)
	}
	if len(user.NodeSelector) > 0 {
		spec.WithNodeSelector(user.NodeSelector)
	}
	for _, part := range []struct {
		name     string
		set      bool
		from, to any
	}{
		{"affinity", user.Affinity != nil, user.Affinity, &spec.Affinity},
		{"tolerations", len(user.Tolerations) > 0, user.Tolerations, &spec.Tolerations},
		{"topologySpreadConstraints", len(user.TopologySpreadConstraints) > 0, user.TopologySpreadConstraints, &spec.TopologySpreadConstraints},
		{"securityContext", user.SecurityContext != nil, user.SecurityContext, &spec.SecurityContext},
		{"imagePullSecrets", len(user.ImagePullSecrets) > 0, user.ImagePullSecrets, &spec.ImagePullSecrets},
	} {
		if !part.set {
			continue
		}
		if err := toApplyConfiguration(part.from, part.to); err != nil {
			return fmt.Errorf("podTemplate.spec.%s: %w", part.name, err)
		}
	}
	return nil
}

// toApplyConfiguration replaces *to by from, an API type with the same JSON.
// The old value is cleared first: decoding into it would merge the two.
func toApplyConfiguration(from, to any) error {
	if err := json.Unmarshal([]byte("null"), to); err != nil {
		return err
	}
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// defaultAffinity keeps members on different nodes where there are enough.
func defaultAffinity(c schema.EtcdCluster) *corev1ac.AffinityApplyConfiguration {
	return corev1ac.Affinity().WithPodAntiAffinity(corev1ac.PodAntiAffinity().
		WithPreferredDuringSchedulingIgnoredDuringExecution(corev1ac.WeightedPodAffinityTerm().
			WithWeight(100).
			WithPodAffinityTerm(corev1ac.PodAffinityTerm().
				WithTopologyKey(corev1.LabelHostname).
				WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(naming.PodSelector(c))))))
}

// defaultSpread spreads members over zones where there are some.
func defaultSpread(c schema.EtcdCluster) []corev1ac.TopologySpreadConstraintApplyConfiguration {
	return []corev1ac.TopologySpreadConstraintApplyConfiguration{*corev1ac.TopologySpreadConstraint().
		WithMaxSkew(1).
		WithTopologyKey(corev1.LabelTopologyZone).
		WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(naming.PodSelector(c)))}
}

func defaultPodSecurity() *corev1ac.PodSecurityContextApplyConfiguration {
	return corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithRunAsUser(naming.NonRootID).
		WithRunAsGroup(naming.NonRootID).
		WithFSGroup(naming.NonRootID).
		// Walking a large volume at every start would cost the member minutes.
		WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

func containerSecurity() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithReadOnlyRootFilesystem(true).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

// renderGuardContainer renders the guard without its image.
func renderGuardContainer(o Options) *corev1ac.ContainerApplyConfiguration {
	// Requests equal limits: one container without them would cost the whole pod
	// the Guaranteed class. They cost no room, since a pod reserves the larger of
	// its init containers and its containers.
	size := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("100m"),
		corev1.ResourceMemory: resource.MustParse("64Mi"),
	}
	return corev1ac.Container().
		WithName(naming.ContainerGuard).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithCommand("/usr/local/bin/quorate-guard").
		WithArgs("--record="+naming.RecordPath+"/"+naming.KeyRecord, "--volume="+naming.VolumePath, "--member=$(POD_NAME)").
		WithEnv(podNameEnv()).
		WithResources(corev1ac.ResourceRequirements().WithRequests(size).WithLimits(size)).
		// A refusal is one sentence on standard error; this puts it into the
		// pod's status.
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(containerSecurity()).
		WithVolumeMounts(
			corev1ac.VolumeMount().WithName(o.claimPrefix()).WithMountPath(naming.VolumePath),
			corev1ac.VolumeMount().WithName("record").WithMountPath(naming.RecordPath).WithReadOnly(true))
}

func renderEtcdContainer(c schema.EtcdCluster, o Options) (*corev1ac.ContainerApplyConfiguration, error) {
	version, err := release.Parse(c.Spec.Version)
	if err != nil {
		return nil, err
	}
	args, err := renderArgs(c, version, o)
	if err != nil {
		return nil, err
	}
	startup, readiness := release.Probes(version)
	etcd := corev1ac.Container().
		WithName(naming.ContainerEtcd).
		WithImage(Image(c, o)).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithCommand("/usr/local/bin/etcd").
		WithArgs(args...).
		WithEnv(renderEnv(c)...).
		WithPorts(containerPort("client", naming.ClientPort), containerPort("peer", naming.PeerPort), containerPort("metrics", naming.MetricsPort)).
		// There is no liveness probe: a member that waits for its quorum is not
		// ill, and killing it brings the quorum no nearer. For the same reason
		// the startup probe gives up only after a day.
		WithStartupProbe(httpProbe(startup).WithFailureThreshold(startupFailures)).
		WithReadinessProbe(httpProbe(readiness).WithFailureThreshold(3)).
		// The endpoints leave before the process does: kube-proxy writes its
		// rules at most once a second.
		WithLifecycle(corev1ac.Lifecycle().WithPreStop(corev1ac.LifecycleHandler().
			WithSleep(corev1ac.SleepAction().WithSeconds(2)))).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(containerSecurity()).
		WithVolumeMounts(renderEtcdMounts(c, o)...)
	if r, field := c.Spec.EtcdResources(); r.Limits != nil || r.Requests != nil || r.Claims != nil {
		if err := toApplyConfiguration(r, &etcd.Resources); err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
	}
	return etcd, nil
}

// startupFailures is how often the startup probe fails before the kubelet gives up.
const startupFailures = 86400

// HasStartupProbe reports whether a template has the startup probe that quorate rendered
// in earlier builds. It kept nothing from being killed, as there is no liveness probe, and each
// start waited for it before the first look at readiness.
func HasStartupProbe(template corev1.PodTemplateSpec) bool {
	return slices.ContainsFunc(template.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == naming.ContainerEtcd && c.StartupProbe != nil && c.StartupProbe.FailureThreshold == startupFailures
	})
}

// Image is the image of c's version: the cluster's repository, else the
// daemon's, else the default one.
func Image(c schema.EtcdCluster, o Options) string {
	repository := DefaultRepository
	if o.Repository != "" {
		repository = o.Repository
	}
	if c.Spec.Image.Repository != "" {
		repository = c.Spec.Image.Repository
	}
	image := repository + ":v" + c.Spec.Version
	if c.Spec.Image.Digest != "" {
		// The digest decides what is pulled; the tag is for people.
		image += "@" + c.Spec.Image.Digest
	}
	return image
}

func containerPort(name string, port int32) *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().WithName(name).WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)
}

// httpProbe asks the metrics port, which is without TLS: the kubelet has no
// client certificate.
func httpProbe(path string) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString("metrics"))).
		WithPeriodSeconds(1).
		WithTimeoutSeconds(2)
}

// renderArgs are etcd's flags. What depends on the number of members is not
// among them, see renderEnv. Of a release that is only passed through, those that
// it does not take are left out.
func renderArgs(c schema.EtcdCluster, version release.Version, o Options) ([]string, error) {
	settings, err := releaseSettings(c, o)
	if err != nil {
		return nil, err
	}
	flags, findings := release.Flags(version, settings)
	for _, f := range findings {
		if f.Severity == release.Refuse && !o.Passing {
			return nil, fmt.Errorf("etcd %s: %s", c.Spec.Version, f.Message)
		}
	}
	anywhere := listenAddress(c)
	args := []string{
		"--name=$(POD_NAME)",
		"--data-dir=" + naming.VolumePath + "/" + guard.DataDir,
		"--listen-client-urls=" + listenURLs(c, o, naming.ClientPort, naming.ClientPort),
		listenPeers + listenURLs(c, o, naming.PeerPort, naming.SecondPeerPort),
		fmt.Sprintf("--listen-metrics-urls=http://%s:%d", anywhere, naming.MetricsPort),
		"--advertise-client-urls=" + naming.ClientURL(c, "$(POD_NAME)"),
		"--initial-advertise-peer-urls=" + naming.PeerURL(c, "$(POD_NAME)"),
		"--strict-reconfig-check=true",
	}
	return append(append(args, tlsArgs(c, o)...), flags...), nil
}

// listenAddress is every address of the pod. Go takes either of the two for both
// families, where the kernel has both; but [::] keeps etcd from starting where
// IPv6 is switched off, and 0.0.0.0 might one day be taken at its word.
func listenAddress(c schema.EtcdCluster) string {
	n := c.Spec.Network
	if slices.Contains(n.IPFamilies, corev1.IPv6Protocol) || n.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack {
		return "[::]"
	}
	return "0.0.0.0"
}

// releaseSettings are the settings whose flags depend on the etcd version.
func releaseSettings(c schema.EtcdCluster, o Options) (release.Settings, error) {
	s := release.Settings{
		AutoCompactionRetention: c.Spec.Etcd.AutoCompaction.Retention,
		// Pod addresses change and DNS lags behind: a peer checked by the address
		// it calls from would be turned away after a restart. The peer CA that
		// quorate makes signs nothing but peers, so its signature is enough. What
		// else the one of named Secrets signs are unknown: there etcd checks the
		// names, too, and a restarted member waits for DNS.
		SkipPeerSAN: naming.ManagesTLS(secured(c, o)) && !o.Mixed,
		Options:     c.Spec.Etcd.Options,
	}
	if s.AutoCompactionRetention != "" {
		s.AutoCompactionMode = c.Spec.Etcd.AutoCompaction.Mode
	}
	if q := c.Spec.Etcd.QuotaBackendBytes; q != nil {
		n, exact := q.AsInt64()
		if !exact || n <= 0 {
			return s, fmt.Errorf("etcd.quotaBackendBytes: %s is not a whole, positive number of bytes", q)
		}
		s.QuotaBackendBytes = n
	}
	return s, nil
}

// renderEnv is the environment of etcd. The initial cluster comes from the
// record, which the kubelet reads when the container starts: the member list
// changes without a change of the template, and a member never starts with
// yesterday's list. etcd reads it only while the member has no WAL. None of
// the three may be a flag as well: etcd refuses to start with both.
func renderEnv(c schema.EtcdCluster) []*corev1ac.EnvVarApplyConfiguration {
	env := []*corev1ac.EnvVarApplyConfiguration{podNameEnv()}
	for _, key := range []string{naming.KeyInitialCluster, naming.KeyInitialState, naming.KeyInitialToken} {
		env = append(env, corev1ac.EnvVar().
			WithName("ETCD_"+strings.ToUpper(strings.ReplaceAll(key, "-", "_"))).
			WithValueFrom(corev1ac.EnvVarSource().WithConfigMapKeyRef(
				corev1ac.ConfigMapKeySelector().WithName(naming.Record(c.Metadata.Name)).WithKey(key))))
	}
	resources, _ := c.Spec.EtcdResources()
	if procs := goMaxProcs(resources); procs > 0 {
		env = append(env, corev1ac.EnvVar().WithName("GOMAXPROCS").WithValue(strconv.FormatInt(procs, 10)))
	}
	return env
}

// podNameEnv names the API version although v1 is the default: a field
// reference is owned as one value, defaults included.
func podNameEnv() *corev1ac.EnvVarApplyConfiguration {
	return corev1ac.EnvVar().WithName("POD_NAME").WithValueFrom(corev1ac.EnvVarSource().
		WithFieldRef(corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.name")))
}

// goMaxProcs is the CPU limit rounded down, at least 1; 0 without a limit. More
// threads than the limit would have the kernel stop all of them at once, and
// etcd would miss heartbeats.
func goMaxProcs(r corev1.ResourceRequirements) int64 {
	limit, ok := r.Limits[corev1.ResourceCPU]
	if !ok || limit.IsZero() {
		return 0
	}
	return max(limit.MilliValue()/1000, 1)
}
