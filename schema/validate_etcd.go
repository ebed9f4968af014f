package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/schema/capacity"
	"github.com/quorate/quorate/schema/release"
)

// etcd checks the settings of the etcd process.
func (v *validator) etcd(spec ClusterSpec) {
	v.quota(spec)
	v.compaction(spec.Etcd.AutoCompaction)
	v.options(spec)
}

// quota checks the size at which etcd refuses writes.
func (v *validator) quota(spec ClusterSpec) {
	const field = "etcd.quotaBackendBytes"
	quota := spec.Etcd.QuotaBackendBytes
	if quota == nil {
		v.room(spec, "storage.size", defaultQuota)
		return
	}
	bytes, fits := quota.AsInt64()
	switch {
	case !fits && quota.Sign() > 0:
		v.fail(field, "must be a whole number of bytes that fits in 63 bits, such as 4Gi")
	case bytes <= 0:
		v.fail(field, "must be more than 0: leave it out for etcd's default, 2Gi")
	case spec.Storage.Size.Sign() > 0 && quota.Cmp(spec.Storage.Size) > 0:
		v.fail(field, "is %s, more than the volume of %s: the disk would be full before etcd stops writes, so write a smaller one or more storage.size", quota, &spec.Storage.Size)
	default:
		v.room(spec, field, bytes)
		if bytes > advisedQuota {
			v.warn(IDQuotaUntested, field, "is more than 8Gi, the size that etcd is tested with: restarts and restores become slow")
		}
	}
}

// room warns of a volume that is full before the database reaches its quota.
func (v *validator) room(spec ClusterSpec, field string, quota int64) {
	const step = 64 << 20 // sizes are told in steps of so many bytes
	entries := snapshotCount(spec)
	has, wants := spec.Storage.Size.Value(), (capacity.Volume(quota, entries)+step-1)/step*step
	if has <= 0 || has >= wants {
		return
	}
	smaller := "a smaller etcd.quotaBackendBytes"
	if fits := capacity.Quota(has, entries) / step * step; fits > 0 {
		smaller = "etcd.quotaBackendBytes of at most " + bytesText(fits)
	}
	v.warn(IDQuota, field, "a quota of %s wants a volume of %s, and storage.size is %s: the database, a copy of it while it is defragmented, and a log "+
		"with a snapshot every %d entries are on it, and a full disk stops etcd; write a size of %s or more, or %s",
		bytesText(quota), bytesText(wants), &spec.Storage.Size, entries, bytesText(wants), smaller)
}

// snapshotCount is after how many entries the members save their state beside the log.
func snapshotCount(spec ClusterSpec) int64 {
	const flag = "snapshot-count"
	text := spec.Etcd.Options[flag]
	if version, err := release.Parse(spec.Version); text == "" && err == nil {
		text, _ = release.Default(version, flag)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		return n
	}
	return capacity.MostEntries
}

// bytesText writes bytes as a file does, such as 4608Mi.
func bytesText(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// compaction checks etcd's own compaction.
func (v *validator) compaction(a AutoCompaction) {
	const field = "etcd.autoCompaction"
	if a.Mode != "" {
		oneOf(v, field+".mode", a.Mode, compactPeriodic, compactRevision)
	}
	switch {
	case a.Retention == "" && a.Mode != "":
		v.warn(IDCompactionOff, field+".retention", "is missing: without it there is no automatic compaction")
	case a.Retention == "":
	case a.Mode == compactRevision:
		if n, err := strconv.ParseInt(a.Retention, 10, 64); err != nil || n < 0 {
			v.fail(field+".retention", "%s is not a number of revisions, such as \"1000\"", clip(a.Retention))
		}
	case a.Mode == compactPeriodic && !isRetention(a.Retention):
		v.fail(field+".retention", "%s is not a duration, such as \"8h\"", clip(a.Retention))
	}
}

// isRetention accepts a duration, or a number of hours as etcd does.
func isRetention(text string) bool {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return n >= 0
	}
	d, err := time.ParseDuration(text)
	return err == nil && d >= 0
}

// options checks the other flags one at a time, and then together.
func (v *validator) options(spec ClusterSpec) {
	const field = "etcd.options"
	const most = 500 // No etcd has half as many.
	if n := len(spec.Etcd.Options); n > most {
		v.fail(field, "has %d options and at most %d are allowed", n, most)
		return
	} else if n == 0 {
		return
	}
	version, err := release.Parse(spec.Version)
	versionKnown := err == nil && release.Known(version) == nil
	sound := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(spec.Etcd.Options)) {
		value := spec.Etcd.Options[name]
		message := optionProblem(name, value)
		if message == "" && versionKnown {
			message = refusal(version, map[string]string{name: value})
		}
		if message != "" {
			v.fail(child(field, name), "%s", message)
			continue
		}
		if message, deprecated := release.Deprecated(version, name); deprecated && versionKnown && !skipsV2Check(name, value) {
			v.warn(IDOptionDeprecated, child(field, name), "%s", message)
		}
		sound[name] = value
	}
	// Options that are good each alone may contradict each other.
	if message := refusal(version, sound); message != "" && versionKnown {
		v.fail(field, "%s", message)
	}
}

// refusal is the first reason why a version does not take the options, or "".
func refusal(version release.Version, options map[string]string) string {
	_, findings := release.Flags(version, release.Settings{Options: options})
	for _, finding := range findings {
		if finding.Severity == release.Refuse {
			return finding.Message
		}
	}
	return ""
}

// optionProblem checks how an option is written and whether quorate owns it.
func optionProblem(name, value string) string {
	bare := strings.TrimLeft(name, "-")
	if i := strings.IndexAny(bare, "= \t\n"); i >= 0 {
		// --name=value and --name value, as on a command line.
		if why := reserved(bare[:i]); why != "" {
			return why
		}
		return "write the name alone as the key and what follows it as its value: " + strconv.Quote(bare[:i]) + ": \"…\""
	}
	if why := reserved(bare); why != "" && !skipsV2Check(name, value) {
		return why
	}
	switch {
	case bare == "":
		return "write the name of a flag"
	case bare != name:
		return "leave out the dashes: " + strconv.Quote(bare)
	case strings.ToLower(name) != name || strings.Contains(name, "_"):
		return "write flags in lower case with dashes, not as environment variables: " + strconv.Quote(flagOfVariable(name))
	case strings.ContainsAny(value, "\n\r\x00"):
		return "the value must be one line"
	case name == "max-learners" && !positive(value):
		return "is refused: a member joins as a learner, so that none could ever join or be replaced: write 1 or more, or leave it out"
	case value == "":
		return "the value is empty: write \"true\" for a boolean, or leave the option out for etcd's default"
	}
	return ""
}

// skipsV2Check reports whether an option is the v2-deprecation value that the upgrade guide to 3.6 recommends.
func skipsV2Check(name, value string) bool {
	return name == "v2-deprecation" && value == release.SkipV2Check
}

// positive reports whether a value is a number above 0. One that is no number etcd refuses itself.
func positive(value string) bool {
	n, err := strconv.Atoi(value)
	return err != nil || n > 0
}

// flagOfVariable turns ETCD_HEARTBEAT_INTERVAL into heartbeat-interval.
func flagOfVariable(name string) string {
	return strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(name), "etcd_"), "_", "-")
}

// reserved says why a flag may not be given as an option, or "".
//
//	what                              where it is set
//	addresses, names, the data's place  by quorate, from metadata and storage
//	certificates and keys               spec.tls
//	quota and compaction                their own fields
//	the v2 API, unsafe switches         never allowed
func reserved(name string) string {
	switch name {
	case "name", "data-dir", "wal-dir", "initial-cluster", "initial-cluster-state", "initial-cluster-token",
		"initial-advertise-peer-urls", "strict-reconfig-check":
		return "is reserved: quorate sets it, because the safety of the cluster depends on it"
	case "config-file":
		return "is reserved: with a configuration file etcd ignores every other flag"
	case "quota-backend-bytes":
		return "has its own field: write spec.etcd.quotaBackendBytes"
	case "auto-compaction-mode", "auto-compaction-retention":
		return "has its own field: write spec.etcd.autoCompaction"
	case "force-new-cluster", "unsafe-no-fsync":
		return "is refused: it can lose data that was acknowledged"
	case "v2-deprecation":
		return "is refused with any value but " + release.SkipV2Check + ", which starts etcd 3.6 on data of the v2 API that nobody needs"
	case "enable-v2", "experimental-enable-v2v3":
		return "is refused: with the v2 API a cluster cannot be upgraded to etcd 3.6"
	}
	for _, prefix := range []string{"listen-", "advertise-", "discovery", "proxy"} {
		if strings.HasPrefix(name, prefix) {
			return "is reserved: quorate sets the addresses of the members"
		}
	}
	if isTLSFlag(name) {
		return "is reserved: write spec.tls"
	}
	return ""
}

// isTLSFlag knows the flags for certificates, keys and authorities of clients
// and peers. The cipher suites and TLS versions are free.
func isTLSFlag(name string) bool {
	if name == "auto-tls" || name == "peer-auto-tls" || name == "self-signed-cert-validity" {
		return true
	}
	for _, part := range []string{"cert-file", "key-file", "ca-file", "crl-file", "cert-auth", "cert-allowed"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
