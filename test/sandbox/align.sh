#!/usr/bin/env bash
# Gives the modules that the demo builds the versions of the product's go.mod, so that
# Go compiles what they share, such as client-go, once and not once for each of them:
# that is a third of all. With -check it only says what differs. The releases of etcd
# and the oldest of Kubernetes are left as they were released.
set -euo pipefail
cd "$(dirname "$0")"

# differing prints what a go.mod requires at another version, as go get takes it. The
# API server keeps its own client of etcd.
differing() {
	awk '{ sub(/^require /, "") }
		$2 !~ /^v[0-9]/ || $1 ~ "^go.etcd.io/etcd/" { next }
		FNR == NR { version[$1] = $2; next }
		$1 in version && version[$1] != $2 { print $1 "@" version[$1] }' ../../go.mod "$1/go.mod"
}

for module in kubernetes/v1.36.3 coredns provisioner s3 gcs kustomize; do
	mapfile -t versions < <(differing "$module")
	[ ${#versions[@]} -gt 0 ] || continue
	if [ "${1:-}" = -check ]; then
		echo "test/sandbox/$module differs from go.mod, so that the demo compiles much twice; run make tidy: ${versions[*]}" >&2
		exit 1
	fi
	(cd "$module" && go get "${versions[@]}" && go mod tidy)
done
