package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quorate/quorate/schema/release"
)

// Limits that the messages name.
const (
	maxName     = 40
	maxReplicas = 7
	maxSoak     = time.Hour
	// advisedQuota is the size up to which etcd's authors test, in bytes.
	advisedQuota = 8 << 30
)

// The modes of etcd's own compaction.
const (
	compactPeriodic = "periodic"
	compactRevision = "revision"
)

// Validate says everything that is wrong with a defaulted cluster, and what is
// unwise as warnings. The problems name fields and carry no place.
func Validate(c *EtcdCluster) []Problem {
	v := &validator{}
	v.metadata(c.Metadata)
	v.version(c.Spec.Version)
	v.replicas(c.Spec.Replicas)
	v.repository(c.Spec.Image.Repository)
	v.storage(c.Spec.Storage)
	v.pod(c.Spec.PodTemplate)
	v.etcd(c.Spec)
	v.destination(c)
	v.upgrade(c.Spec.Upgrade)
	oneOf(v, "spec.tls.mode", c.Spec.TLS.Mode, TLSManaged, TLSDisabled)
	oneOf(v, "spec.mode", c.Spec.Mode, ModeEnforce, ModeObserve)
	return v.problems
}

// validator gathers problems.
type validator struct {
	problems []Problem
}

// fail notes an error of a field.
func (v *validator) fail(field, format string, args ...any) {
	v.problems = append(v.problems, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

// warn notes something unwise.
func (v *validator) warn(field, format string, args ...any) {
	v.problems = append(v.problems, Problem{Field: field, Message: fmt.Sprintf(format, args...), Warning: true})
}

// oneOf checks a field that has a few values.
func oneOf[T ~string](v *validator, field string, value T, allowed ...T) {
	if slices.Contains(allowed, value) {
		return
	}
	names := make([]string, 0, len(allowed))
	for _, a := range allowed {
		names = append(names, string(a))
	}
	if len(names) == 1 {
		v.fail(field, "%s is not known to this version of quorate: write %s or leave it out", clip(string(value)), names[0])
		return
	}
	v.fail(field, "%s is not one of %s%s", clip(string(value)), strings.Join(names, ", "), didYouMean(string(value), names))
}

// metadata checks names, labels and annotations.
func (v *validator) metadata(m Metadata) {
	switch {
	case m.Name == "":
		v.fail("metadata.name", "is missing: name the cluster")
	case len(m.Name) > maxName:
		v.fail("metadata.name", "has %d characters: at most %d are possible, because Kubernetes appends to it", len(m.Name), maxName)
	case len(validation.IsDNS1123Label(m.Name)) > 0:
		v.fail("metadata.name", "%s is no DNS label: use lower-case letters, digits and dashes, with a letter or digit at both ends", clip(m.Name))
	}
	if len(validation.IsDNS1123Label(m.Namespace)) > 0 {
		v.fail("metadata.namespace", "%s is no namespace: use lower-case letters, digits and dashes, at most 63", clip(m.Namespace))
	}
	v.labels("metadata.labels", m.Labels, "quorate.dev", "app.kubernetes.io")
	v.annotations("metadata.annotations", m.Annotations)
}

// labels checks the syntax of labels, and that none has a reserved prefix.
func (v *validator) labels(field string, labels map[string]string, reserved ...string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		v.qualified(field, key, reserved)
		if len(validation.IsValidLabelValue(labels[key])) > 0 {
			v.fail(child(field, key), "%s is no label value: use at most 63 letters, digits, dashes, dots and underscores", clip(labels[key]))
		}
	}
}

// annotations checks the keys of annotations; their values are free.
func (v *validator) annotations(field string, annotations map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		v.qualified(field, key, []string{"quorate.dev"})
	}
}

// qualified checks one key of labels or annotations.
func (v *validator) qualified(field, key string, reserved []string) {
	prefix, _, hasPrefix := strings.Cut(key, "/")
	for _, r := range reserved {
		if hasPrefix && (prefix == r || strings.HasSuffix(prefix, "."+r)) {
			v.fail(child(field, key), "the prefix %s/ is reserved: quorate sets these itself", r)
			return
		}
	}
	if len(validation.IsQualifiedName(key)) > 0 {
		v.fail(child(field, key), "is no key: write name or prefix/name, the name at most 63 letters, digits, dashes, dots and underscores")
	}
}

// version checks the release, and tells what is known of it.
func (v *validator) version(text string) {
	const field = "spec.version"
	parsed, err := release.Parse(text)
	if err == nil {
		err = release.Known(parsed)
	}
	if text == "" {
		v.fail(field, "is missing: write an etcd release such as \"3.6.16\"")
		return
	}
	if err != nil {
		v.fail(field, "%v", err)
		return
	}
	// A bad release is only told here: the cluster may run it already and be on
	// its way out of it. The planner refuses to go to it.
	for _, finding := range release.Bad(parsed) {
		v.warn(field, "%s", finding.Message)
	}
}

// replicas checks the number of members.
func (v *validator) replicas(n int32) {
	const field = "spec.replicas"
	switch {
	case n == 0:
		v.fail(field, "must be 1 to %d: a cluster without members has no data", maxReplicas)
	case n < 0 || n > maxReplicas:
		v.fail(field, "is %d and must be 1 to %d: more members make writes slower, not safer", n, maxReplicas)
	case n%2 == 0:
		v.warn(field, "%d is even: it tolerates no more failed members than %d, and needs one more for each write", n, n-1)
	}
}

// repository checks an image name without tag.
func (v *validator) repository(name string) {
	const field = "spec.image.repository"
	if name == "" {
		return
	}
	last := name[strings.LastIndex(name, "/")+1:]
	switch {
	case strings.Contains(name, "://"):
		v.fail(field, "leave out the scheme: write registry/path")
	case strings.Contains(name, "@"):
		v.fail(field, "leave out the digest: the tag is v and spec.version")
	case strings.Contains(last, ":") && strings.Contains(name, "/"), strings.Count(last, ":") > 1:
		v.fail(field, "leave out the tag: it is v and spec.version")
	case strings.Contains(last, ":"):
		v.fail(field, "leave out the tag, or write the path after registry:port")
	case !isRepository(name):
		v.fail(field, "%s is no image repository: write registry/path in lower case, such as quay.io/coreos/etcd", clip(name))
	}
}

// isRepository accepts registry[:port]/path or path. The registry may have
// capitals, the path may not.
func isRepository(name string) bool {
	const longest = 255
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if i == 0 && len(parts) > 1 {
			host, port, hasPort := strings.Cut(part, ":")
			if _, err := strconv.ParseUint(port, 10, 16); hasPort && err != nil {
				return false
			}
			part = strings.ToLower(host)
		}
		if !isRepositoryPart(part) {
			return false
		}
	}
	return len(name) <= longest
}

// isRepositoryPart accepts lower-case letters and digits, with dots, dashes and
// underscores between them.
func isRepositoryPart(part string) bool {
	const separators = "._-"
	if part == "" || strings.Trim(part, separators) != part {
		return false
	}
	return !strings.ContainsFunc(part, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(separators, r)
	})
}

// storage checks the volume of each member.
func (v *validator) storage(s StorageSpec) {
	if s.Size.Sign() <= 0 {
		v.fail("spec.storage.size", "must be given and more than 0, such as 8Gi")
	}
	if s.StorageClassName != nil && len(validation.IsDNS1123Subdomain(*s.StorageClassName)) > 0 {
		v.fail("spec.storage.storageClassName", "%s is no name of a storage class: leave the field out for the default class", clip(*s.StorageClassName))
	}
}

// pod checks what is added to the pods.
func (v *validator) pod(t PodTemplate) {
	v.labels("spec.podTemplate.metadata.labels", t.Metadata.Labels, "quorate.dev", "app.kubernetes.io")
	v.annotations("spec.podTemplate.metadata.annotations", t.Metadata.Annotations)
	v.labels("spec.podTemplate.spec.nodeSelector", t.Spec.NodeSelector)
	limits, requests := t.Spec.Resources.Limits, t.Spec.Resources.Requests
	const field = "spec.podTemplate.spec.resources"
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		request := requests[name]
		if limit, ok := limits[name]; ok && request.Cmp(limit) > 0 {
			v.fail(child(field+".requests", string(name)), "%s is more than the limit, %s", request.String(), limit.String())
		}
		v.notNegative(child(field+".requests", string(name)), request)
	}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		v.notNegative(child(field+".limits", string(name)), limits[name])
	}
	if name := t.Spec.PriorityClassName; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		v.fail("spec.podTemplate.spec.priorityClassName", "%s is no name of a priority class", clip(name))
	}
	for i, secret := range t.Spec.ImagePullSecrets {
		if len(validation.IsDNS1123Subdomain(secret.Name)) > 0 {
			v.fail(fmt.Sprintf("spec.podTemplate.spec.imagePullSecrets[%d].name", i), "%s is no name of a Secret", clip(secret.Name))
		}
	}
}

// notNegative checks an amount of CPU or memory.
func (v *validator) notNegative(field string, q resource.Quantity) {
	if q.Sign() < 0 {
		v.fail(field, "must not be negative")
	}
}

// destination expands the template with sample data.
func (v *validator) destination(c *EtcdCluster) {
	template := c.Spec.Backup.Destination.ObjectURLTemplate
	if template == "" {
		return
	}
	sample := ObjectURLData{Namespace: "namespace", Name: "name", Version: "3.6.16", UID: "0123456789ab"}
	if _, err := ExpandObjectURL(template, sample); err != nil {
		v.fail("spec.backup.destination.objectURLTemplate", "%v", err)
	}
}

// upgrade checks the pace of upgrades.
func (v *validator) upgrade(u UpgradeSpec) {
	oneOf(v, "spec.upgrade.backup", u.Backup, BackupRequired, BackupSkip)
	oneOf(v, "spec.upgrade.path", u.Path, PathStrict)
	if u.Soak != nil && (u.Soak.Duration < 0 || u.Soak.Duration > maxSoak) {
		v.fail("spec.upgrade.soak", "is %s and must be 0s to 1h", u.Soak.Duration)
	}
}

// clip quotes a value from a user's file, cut to a length that a message bears.
func clip(text string) string {
	const most = 60
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strconv.Quote(text)
}

// didYouMean is a half-sentence with the nearest candidate, or "".
func didYouMean(word string, candidates []string) string {
	if near := release.Nearest(word, candidates); near != "" {
		return fmt.Sprintf(", did you mean %s?", near)
	}
	return ""
}
