package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quorate/quorate/schema/release"
)

// Limits that the messages name.
const (
	maxName     = 40
	maxReplicas = 7
	maxSoak     = time.Hour
	// maxRepairAfter is the longest time of grace for a lost member.
	maxRepairAfter = 24 * time.Hour
	// maxNodeTimeout is the longest time for which a silent node may be waited for.
	maxNodeTimeout = 7 * 24 * time.Hour
	maxWave        = 99
	maxOwner       = 1024
	// advisedQuota is the size up to which etcd's authors test, in bytes.
	advisedQuota = 8 << 30
	// defaultQuota is etcd's own where none is written, in bytes, in every release.
	defaultQuota = 2 << 30
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
	v.metadata(c.Metadata, maxName)
	v.spec(c.Spec, "spec")
	v.recoveredMember(c)
	v.clientSecrets("spec.tls.clients", c.Metadata.Namespace, c.Metadata.Name, c.Spec.TLS.Clients)
	return v.problems
}

// spec checks the spec of a cluster, which is at root.
func (v *validator) spec(spec ClusterSpec, root string) {
	v = &validator{root: root + ".", parent: v}
	v.version(spec.Version)
	v.replicas(spec.Replicas)
	v.image(spec.Image)
	v.storage(spec.Storage)
	v.pod(spec)
	v.etcd(spec)
	v.destination("backup.destination", spec.Backup.Destination)
	v.upgrade(spec.Upgrade, spec.Replicas)
	v.repair(spec.Repair)
	v.tls(spec.TLS)
	v.auth(spec)
	v.network(spec.Network)
	v.maintenance(spec.Maintenance)
	v.defragmentation(spec.Defragmentation)
	v.drift(spec.Drift)
	oneOf(v, "state", spec.State, StateRunning, StateHibernated, StateDeleted)
	oneOf(v, "deletion.volumes", spec.Deletion.Volumes, VolumesKeep, VolumesDelete)
	oneOf(v, "deletion.backup", spec.Deletion.Backup, BackupRequired, BackupSkip)
	oneOf(v, "mode", spec.Mode, ModeEnforce, ModeObserve)
	v.recovery(spec.Recovery, spec.Backup.Destination)
	v.takeOver(spec.TakeOver)
}

// validator gathers problems.
type validator struct {
	problems []Problem
	// root is put before each field, and parent gathers the problems, where a
	// part is checked by the names that it has in itself.
	root   string
	parent *validator
}

// add notes a problem.
func (v *validator) add(p Problem) {
	p.Field = v.root + p.Field
	if v.parent != nil {
		v.parent.add(p)
		return
	}
	v.problems = append(v.problems, p)
}

// fail notes an error of a field.
func (v *validator) fail(field, format string, args ...any) {
	v.add(Problem{ID: IDValue, Field: field, Message: fmt.Sprintf(format, args...)})
}

// warn notes something unwise.
func (v *validator) warn(id ID, field, format string, args ...any) {
	v.add(Problem{ID: id, Field: field, Message: fmt.Sprintf(format, args...), Warning: true})
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
	v.fail(field, "%s is not one of %s%s", clip(string(value)), strings.Join(names, ", "), didYouMean(string(value), names))
}

// metadata checks names, labels and annotations.
func (v *validator) metadata(m Metadata, longest int) {
	v.name("metadata.name", m.Name, longest)
	if len(validation.IsDNS1123Label(m.Namespace)) > 0 {
		v.fail("metadata.namespace", "%s is not a namespace: use lower-case letters, digits and dashes, at most 63", clip(m.Namespace))
	}
	v.labels("metadata.labels", m.Labels, "quorate.dev", "app.kubernetes.io")
	v.annotations("metadata.annotations", m.Annotations)
}

// name checks a name that Kubernetes objects are called by.
func (v *validator) name(field, name string, longest int) {
	switch {
	case name == "":
		v.fail(field, "is missing: write a name such as orders")
	case len(name) > longest && longest == maxName:
		v.fail(field, "has %d characters: at most %d are allowed, because Kubernetes appends to it", len(name), longest)
	case len(name) > longest:
		v.fail(field, "has %d characters: at most %d are allowed", len(name), longest)
	case len(validation.IsDNS1123Label(name)) > 0:
		v.fail(field, "%s is not a DNS label: use lower-case letters, digits and dashes, with a letter or digit at both ends", clip(name))
	}
}

// secret checks the name of a Secret, where one is given.
func (v *validator) secret(field, name string) {
	if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		// The name is not repeated: it may be the secret itself.
		v.fail(field, "is not the name of a Secret: write the name only, in lower-case letters, digits, dashes and dots")
	}
}

// labels checks the syntax of labels, and that none has a reserved prefix.
func (v *validator) labels(field string, labels map[string]string, reserved ...string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		v.qualified(field, key, reserved)
		if len(validation.IsValidLabelValue(labels[key])) > 0 {
			v.fail(child(field, key), "%s is not a label value: use at most 63 letters, digits, dashes, dots and underscores", clip(labels[key]))
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
		v.fail(child(field, key), "is not a key: write name or prefix/name, the name at most 63 letters, digits, dashes, dots and underscores")
	}
}

// version checks the release, and tells what is known of it.
func (v *validator) version(text string) {
	const field = "version"
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
	// A bad release only gets a warning here: the cluster may run it already and be on
	// its way out of it. The planner refuses to go to it.
	for _, finding := range release.Bad(parsed) {
		v.warn(ID(finding.Topic), field, "%s", finding.Message)
	}
}

// replicas checks the number of members.
func (v *validator) replicas(n int32) {
	const field = "replicas"
	switch {
	case n == 0:
		v.fail(field, "must be 1 to %d: a cluster without members has no data", maxReplicas)
	case n < 0 || n > maxReplicas:
		v.fail(field, "is %d and must be 1 to %d: more members make writes slower, not safer", n, maxReplicas)
	case n%2 == 0:
		v.warn(IDEvenReplicas, field, "%d is even: it tolerates no more failed members than %d, and needs one more for each write", n, n-1)
	}
}

// storage checks the volume of each member.
func (v *validator) storage(s StorageSpec) {
	if s.Size.Sign() <= 0 {
		v.fail("storage.size", "must be given and more than 0, such as 8Gi")
	}
	if s.RemovedVolumes != "" {
		oneOf(v, "storage.removedVolumes", s.RemovedVolumes, VolumesKeep, VolumesDelete)
	}
	if s.StorageClassName != nil && len(validation.IsDNS1123Subdomain(*s.StorageClassName)) > 0 {
		v.fail("storage.storageClassName", "%s is not the name of a storage class: leave the field out for the default class", clip(*s.StorageClassName))
	}
	if s.ClassChange != "" {
		oneOf(v, "storage.classChange", s.ClassChange, ClassChangeRefuse, ClassChangeReplace)
	}
	if s.ClassChange == ClassChangeReplace && s.StorageClassName == nil {
		v.fail("storage.classChange", "is Replace and no class is named: write storage.storageClassName, or leave the field out")
	}
}

// upgrade checks the pace of upgrades.
func (v *validator) upgrade(u UpgradeSpec, replicas int32) {
	oneOf(v, "upgrade.backup", u.Backup, BackupRequired, BackupSkip)
	oneOf(v, "upgrade.path", u.Path, PathStrict, PathStepwise)
	if u.Soak != nil && (u.Soak.Duration < 0 || u.Soak.Duration > maxSoak) {
		v.fail("upgrade.soak", "is %s and must be 0s to 1h", u.Soak.Duration)
	}
	if u.Wave < 0 || u.Wave > maxWave {
		v.fail("upgrade.wave", "is %d and must be 0 to %d", u.Wave, maxWave)
	}
	v.checks(u.Checks)
	switch {
	case u.MaxSurge < 0 || u.MaxSurge > 1:
		v.fail("upgrade.maxSurge", "is %d and must be 0 or 1", u.MaxSurge)
	case u.MaxSurge > 0 && replicas != 1:
		v.warn(IDSurgeUnused, "upgrade.maxSurge", "does nothing where replicas is %d: the others serve while one member restarts", replicas)
	}
}

// takeOver checks the name of the owner that the cluster is taken from. Whether
// there is such an owner, only the cluster's record knows.
func (v *validator) takeOver(owner string) {
	if owner == "" {
		return
	}
	source, claim, marked := cutLast(owner, "#")
	instance, number, numbered := cutLast(claim, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case len(owner) > maxOwner:
		v.fail("takeOver", "is longer than %d characters: copy the owner from the hold of the cluster", maxOwner)
	case strings.TrimSpace(source) != source || source == "" || strings.ContainsAny(owner, "\r\n"),
		!marked, !numbered, len(validation.IsDNS1123Label(instance)) > 0, err != nil, n < 1, number != strconv.FormatInt(n, 10):
		v.fail("takeOver", "%s is not an owner: copy the one that the hold of the cluster names, such as https://git.example.com/etcd.git@main:clusters#default/1", clip(owner))
	}
}

// cutLast cuts a text around the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// repair checks when lost members are replaced. What is left out is not filled
// in: a spec that says nothing keeps its hash.
func (v *validator) repair(r RepairSpec) {
	if r.Mode != "" {
		oneOf(v, "repair.mode", r.Mode, RepairAutomatic, RepairOneByOne, RepairNever)
	}
	if r.After != nil && (r.After.Duration < 0 || r.After.Duration > maxRepairAfter) {
		v.fail("repair.after", "is %s and must be 0s to 24h", r.After.Duration)
	}
	if r.NodeTimeout != nil && (r.NodeTimeout.Duration < 0 || r.NodeTimeout.Duration > maxNodeTimeout) {
		v.fail("repair.nodeTimeout", "is %s and must be 0s to 168h", r.NodeTimeout.Duration)
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
