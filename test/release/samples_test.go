package release_test

import (
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/schema/release"
)

// everyFlag are the flags of all binaries together, sorted.
func everyFlag() []string {
	all := map[string]bool{}
	for _, v := range checked() {
		for _, flag := range release.KnownFlags(v) {
			all[flag] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// sampleValues has a value for every flag, which every binary with that flag
// can read.
func sampleValues() map[string]string {
	samples := sampleOptions()
	for _, flag := range everyFlag() {
		if _, has := samples[flag]; !has {
			samples[flag] = sampleSetting(flag)
		}
	}
	return samples
}

// sampleSetting is a value for a flag that quorate sets itself or forbids.
func sampleSetting(flag string) string {
	switch {
	case strings.HasSuffix(flag, "-urls"):
		return "http://127.0.0.1:1"
	case strings.HasPrefix(flag, "proxy-"), flag == "self-signed-cert-validity", flag == "quota-backend-bytes":
		return "1"
	case strings.HasSuffix(flag, "-timeout"), strings.HasSuffix(flag, "-time"):
		return "1s"
	case slices.Contains([]string{
		"auto-tls", "peer-auto-tls", "client-cert-auth", "peer-client-cert-auth", "discovery-insecure-skip-tls-verify",
		"discovery-insecure-transport", "enable-v2", "force-new-cluster", "strict-reconfig-check", "unsafe-no-fsync",
	}, flag):
		return "true"
	}
	return map[string]string{
		"auto-compaction-mode": "periodic", "auto-compaction-retention": "1", "discovery-fallback": "exit",
		"initial-cluster-state": "new", "proxy": "off",
	}[flag]
}

// sampleOptions are options as a user may write them, under the newest name and
// the older ones.
func sampleOptions() map[string]string {
	samples := map[string]string{
		"auth-token": "simple", "auth-token-ttl": "600", "backend-batch-interval": "50ms", "backend-batch-limit": "1000",
		"backend-bbolt-freelist-type": "map", "bcrypt-cost": "5", "bootstrap-defrag-threshold-megabytes": "10",
		"cipher-suites":           "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
		"compact-hash-check-time": "2m", "compaction-batch-limit": "500", "compaction-sleep-interval": "20ms",
		"corrupt-check-time": "1h", "cors": "http://127.0.0.1:80", "debug": "false",
		"distributed-tracing-address": "127.0.0.1:1", "distributed-tracing-instance-id": "x",
		"distributed-tracing-sampling-rate": "10", "distributed-tracing-service-name": "x",
		"downgrade-check-time": "10s", "election-timeout": "500", "enable-distributed-tracing": "true",
		"enable-grpc-gateway": "true", "enable-log-rotation": "false", "enable-pprof": "true",
		"grpc-keepalive-interval": "1h", "grpc-keepalive-min-time": "6s", "grpc-keepalive-timeout": "30s",
		"heartbeat-interval": "50", "host-whitelist": "127.0.0.1", "initial-election-tick-advance": "false",
		"log-format": "console", "log-level": "debug", "log-outputs": "stderr", "log-rotation-config-json": `{"maxsize": 10}`,
		"logger": "zap", "max-concurrent-streams": "1000", "max-learners": "2", "max-request-bytes": "2000000",
		"max-snapshots": "3", "max-txn-ops": "256", "max-wals": "3", "memory-mlock": "false", "metrics": "extensive",
		"peer-skip-client-san-verification": "true", "pre-vote": "true", "raft-read-timeout": "6s",
		"raft-write-timeout": "6s", "snapshot-catchup-entries": "1000", "snapshot-count": "5000",
		"socket-reuse-address": "true", "socket-reuse-port": "true", "tls-max-version": "TLS1.3", "tls-min-version": "TLS1.2",
		"v2-deprecation": "write-only", "warning-apply-duration": "200ms", "warning-unary-request-duration": "400ms",
		"watch-progress-notify-interval": "5m",

		"experimental-compact-hash-check-enabled": "true", "experimental-enable-lease-checkpoint": "true",
		"experimental-enable-lease-checkpoint-persist": "true", "experimental-initial-corrupt-check": "true",
		"experimental-stop-grpc-service-on-defrag": "true", "experimental-txn-mode-write-with-shared-buffer": "false",
		"log-output": "stderr", "log-package-levels": "etcdserver=DEBUG", "next-cluster-version-compatible": "true",
	}
	for name, value := range maps.Clone(samples) {
		if old := "experimental-" + name; slices.Contains(everyFlag(), old) {
			samples[old] = value
		}
	}
	return samples
}

// sampleGates switches every feature gate of v away from its default, those of
// all together aside: etcd would not tell which of them it refused.
func sampleGates(v release.Version) string {
	var gates []string
	for _, gate := range release.Gates(v) {
		if !strings.HasPrefix(gate.Name, "All") {
			gates = append(gates, gate.Name+"="+map[bool]string{true: "false", false: "true"}[gate.Default])
		}
	}
	return strings.Join(gates, ",")
}
