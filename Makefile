# quorate's commands. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Everything is compiled with the same flags, so that each package is compiled once a machine, in whatever checkout.
# The tags leave out what the SDKs of clouds and gRPC bring and quorate never calls; the debug information of DWARF is
# an eighth of a compilation's time, and no binary keeps it.
export CGO_ENABLED := 0
FLAGS := -trimpath -gcflags=all=-dwarf=false -tags=disable_grpc_modules,grpcnotrace
export GOFLAGS := $(strip $(filter-out $(FLAGS),$(shell go env GOFLAGS)) $(FLAGS))
LDFLAGS := -s -w
BIN := $(CURDIR)/bin
CACHE := $(or $(QUORATE_CACHE),$(HOME)/.cache/quorate)
TOOLS := $(CACHE)/tools
GOLANGCI := $(TOOLS)/golangci-lint-v2.15.0
HELM3 := $(TOOLS)/helm-v3.22.0
COSIGN := $(TOOLS)/cosign-v3.1.3
GORELEASER := $(TOOLS)/goreleaser-v2.15.1
SANDBOX := $(BIN)/sandbox
# The release of the sandbox's Kubernetes, such as 1.30; the newest if it is empty.
export QUORATE_KUBERNETES := $(or $(KUBERNETES),$(QUORATE_KUBERNETES))
# What the demo needs of the sandbox, built while it is compiled itself.
DEMO_NEEDS := versitygw,kustomize,etcd-v3.5.35,etcd-v3.6.16
# What the tests of `make unit` start beside Go, by the names of the sandbox's tool.
SERVERS := etcd-v3.4.34 etcd-v3.5.35 etcd-v3.6.16 etcd-v3.7.3 versitygw fake-gcs-server azurite
# `make verify` vets, so that the tests need not. Where a target runs tests, none of them is skipped.
TEST := QUORATE_TEST_ALL=yes go test -vet=off
# Compiling without collecting garbage takes a sixth less; what needs more memory than the limit collects it.
LEAN := GOGC=off GOMEMLIMIT=1GiB
# The packages of the main module, first those that mostly wait for servers: Go begins with them.
PACKAGES := ./sources/... ./reconciler/backup/... ./cmd/... ./docs ./reconciler/... ./schema/... ./test/checkout ./test/freeport ./test/mutants/... ./test/needs ./test/perturb ./test/perturb/etcds ./test/perturb/score ./test/picture ./test/tlsmodes
# What is left to `make gitea` and `make minio`, whose servers take minutes to build.
APART := ^TestGitea|^TestMinIO
# The tests of deploy/image that release-test runs, because their tools take minutes to build.
RELEASE_TESTS := Archives?$$|^TestAReleaseIsSigned$$
# What needs a cluster, or the programs of one.
CLUSTER_PACKAGES := ./test/lab ./test/demo ./test/bench/... ./test/editor ./test/admission ./test/perturb/live

.PHONY: help env build quick servers unit sim mutants perturb test nightly release-check release-test verify demo picture e2e gitea minio screenshots bench image archives archives-test chart helm3 signatures race vulnerabilities sandbox sandbox-down sandbox-test fmt tidy

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: ## Print the flags of all builds for a shell: eval "$(make env)"
	@echo "export CGO_ENABLED='$(CGO_ENABLED)' GOFLAGS='$(GOFLAGS)'"

build: ## Build bin/quorate and bin/quorate-guard
	$(LEAN) go build -ldflags='$(LDFLAGS)' -o $(BIN)/ ./cmd/quorate ./cmd/quorate-guard

quick: ## Test what needs no server and no root, briefly: `go test -short ./...`
	go test -vet=off -short ./...

servers: $(SANDBOX) sshd chromium promtool jq ## Build and install what the tests start: etcd, object stores, Prometheus, a browser
	@$(SANDBOX) build $(SERVERS)

unit: servers compiled ## Test everything that needs no Kubernetes
	@# One package more at a time than there are processors: several mostly wait, for stores, servers and members.
	$(TEST) -p=$$(($$(nproc) + 1)) -timeout=40m -skip='$(APART)' $(PACKAGES)
	cd test/dashboards && $(TEST) ./...
	cd test/deploy && $(TEST) ./...
	cd deploy/image && $(TEST) -timeout=30m -skip='$(RELEASE_TESTS)' ./...

sim: mutants ## Try to break the planner, longer than the tests do, and write docs/simulation.md
	cd reconciler/plan && $(TEST) -run 'Simulation|Reachable|Mutant' -count=1 -timeout=1h -deep -write $(CURDIR)/docs/simulation.md

mutants: ## Spoil each clause of the planner in turn, tell what notices, and write docs/mutants.md
	go run ./test/mutants -judges -write docs/mutants.md

perturb: ## Disturb each write and each call of quorate's, try each pair of changes of a spec, and write docs/perturbations.md
	$(TEST) ./test/perturb -count=1 -timeout=2h -v -args -all -write $(CURDIR)/docs/perturbations.md | grep -v '^ *\(===\|--- PASS\)'
	$(TEST) ./test/perturb/etcds -count=1 -timeout=1h -v -args -all -write $(CURDIR)/docs/perturbations.md | grep -v '^ *\(===\|--- PASS\)'
	$(TEST) ./test/perturb/live -count=1 -timeout=1h -v -args -all -write $(CURDIR)/docs/perturbations.md | grep -v '^ *\(===\|--- PASS\)'

# The cluster comes up after the unit tests: it takes a part of the machine even at rest.
test: unit release-check cluster ## Run the tests, and some end to end on a real Kubernetes; leaves nothing running
	. test/env.sh && $(TEST) $(CLUSTER_PACKAGES) -count=1 -timeout=30m
	. test/env.sh && $(TEST) ./test/e2e -count=1 -timeout=60m -parallel=2 -v
	. test/env.sh && if [ -n "$$QUORATE_SANDBOX" ]; then "$$QUORATE_SANDBOX" down; fi

nightly: nightly-unit sim perturb race gitea minio e2e release-test ## Search longer and wider than `make test`, for hours; .github/workflows/nightly.yaml runs the parts

# -count=1 lets tests that draw histories draw new ones, and -all runs what `make unit` takes samples of.
.PHONY: nightly-unit
nightly-unit: servers
	$(TEST) -p=$$(($$(nproc) + 1)) -timeout=1h -count=1 -skip='$(APART)' $(PACKAGES)
	$(TEST) -timeout=2h -count=1 -skip='$(APART)' ./reconciler/backup ./test/tlsmodes -args -all

release-check: $(SANDBOX) ## Compare the catalogue of releases with real etcd binaries, 3.3 to 3.7
	@$(SANDBOX) build etcd-v3.3.27 etcd-v3.5.21 etcd-v3.6.12 $(filter etcd-%,$(SERVERS))
	$(TEST) ./test/release -count=1 -timeout=30m

release-test: archives-test helm3 signatures ## Test what a release publishes: archives by goreleaser, the chart by Helm 3, signatures

archives-test: $(GORELEASER) ## Test that a release's archives are whole, and the same from each clone
	cd deploy/image && $(TEST) -timeout=30m -run='Archives?$$' ./...

e2e: cluster alertmanager $(if $(RUN),,gitea minio) ## Run all end-to-end tests; RUN='regexp' chooses some, KUBERNETES=1.30 the oldest release, NAMESPACED=1 gives quorate a RoleBinding in each namespace only
	. test/env.sh && $(TEST) ./test/e2e -count=1 -timeout=90m -parallel=2 -v -run '$(RUN)' -args -long $(if $(NAMESPACED),-namespaced)

gitea: servers ## Test Git, webhooks, statuses and pull requests with a real Gitea; builds it the first time
	QUORATE_GITEA=$$($(SANDBOX) exec-path --build gitea) $(TEST) ./cmd/quorate -run TestGitea -count=1 -timeout=15m -v

minio: servers ## Test backups with a real MinIO; builds it the first time
	QUORATE_MINIO=yes $(TEST) ./reconciler/backup -run TestMinIO -count=1 -timeout=40m -v

screenshots: chromium ## Make pictures of the page, and of an upgrade on it, in bin/screenshots and docs
	@rm -rf $(BIN)/screenshots && mkdir -p $(BIN)/screenshots
	$(TEST) ./cmd/quorate/internal/page -run 'Browser|Upgrade' -count=1 -artifacts -outputdir $(BIN)/screenshots
	@cp $$(find $(BIN)/screenshots -name 'objects-*-light.png') docs/page.png
	@find $(BIN)/screenshots -name '*.png'

verify: $(GOLANGCI) compiled ## Check format, lint and modules
	$(GOLANGCI) run ./...
	go mod tidy -diff
	cd test/sandbox && $(GOLANGCI) run --config ../../.golangci.yml ./... && go mod tidy -diff
	test/sandbox/align.sh -check
	cd test/bench/etcd && go mod tidy -diff
	cd test/dashboards && $(GOLANGCI) run --config ../../.golangci.yml ./... && go mod tidy -diff
	cd test/deploy && $(GOLANGCI) run --config ../../.golangci.yml ./... && go mod tidy -diff
	cd deploy/image && $(GOLANGCI) run --config ../../.golangci.yml ./... && go mod tidy -diff

demo: machine ## Watch a commit upgrade a real etcd cluster, end to end
	@if $(SANDBOX) preflight >/dev/null 2>&1; then beside=--beside-up=$(DEMO_NEEDS); fi; \
	$(SANDBOX) compile $${beside:-} -o $(BIN)/ ./test/demo ./cmd/quorate ./cmd/quorate-guard
	. test/env.sh && $(BIN)/demo $(if $(PICTURE),-picture $(PICTURE))

picture: ## Draw the upgrade of the README anew, from a run of the demo
	$(MAKE) demo PICTURE=docs/upgrade.svg

bench: cluster ## Print what users feel as one table; ROLLS=10 of each kind
	. test/env.sh && go run ./test/bench -rolls $(or $(ROLLS),10)

# The layout bin/image has all platforms, bin/image.tar this machine's alone.
image: ## Build quorate's container image, bin/image, without Docker; TAG=v0.1.0, PUSH=registry/repository sends it there
	@mkdir -p $(BIN)
	cd deploy/image && go run . -o $(BIN) -tag $(or $(TAG),dev) $(if $(PUSH),-push $(PUSH))

# A commit without a tag is built as a snapshot.
archives: $(GORELEASER) ## Build the archives of a release, bin/archives: the binary, man pages and completions for each platform
	$(GORELEASER) release --clean --skip=publish $$(git describe --tags --exact-match >/dev/null 2>&1 || echo --snapshot)

chart: ## Package the Helm chart into bin; TAG=v0.1.0 makes it that of a release
	@mkdir -p $(BIN)
	cd test/deploy && go tool helm package ../../deploy/helm/quorate --destination $(BIN) $(if $(TAG),--version $(TAG:v%=%) --app-version $(TAG))

helm3: $(HELM3) cluster ## Test the chart with Helm 3 as the other tests do with Helm 4, and install it on the sandbox
	@# Helm 3 asks a Kubernetes before it shows notes, so that the second command looks at these.
	cd test/deploy && QUORATE_HELM=$(HELM3) $(TEST) -count=1 -skip=TestTheNotesTellTheNextStep ./...
	. test/env.sh && QUORATE_HELM=$(HELM3) $(TEST) ./test/e2e -run TestEveryWayToInstallQuorate -count=1 -timeout=30m -parallel=2 -v -args -long

signatures: $(COSIGN) ## Sign and verify what a release has, as its workflow does, with a real cosign
	cd deploy/image && QUORATE_COSIGN=$(COSIGN) $(TEST) -run TestAReleaseIsSigned -count=1 -v

# The packages whose goroutines share memory. It takes too long for each run of the tests.
race: servers ## Run the tests of what goroutines share under the race detector; PKG='./reconciler/queue' chooses
	CGO_ENABLED=1 $(TEST) -race -timeout=60m $(or $(PKG),./reconciler ./reconciler/etcd ./reconciler/memo ./reconciler/observe ./reconciler/queue ./reconciler/rounds ./reconciler/scheduler ./reconciler/statuses ./reconciler/stores ./sources/... ./cmd/quorate/internal/...)

vulnerabilities: ## Look for known vulnerabilities in what quorate calls; needs vuln.go.dev
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./cmd/...

sandbox: $(SANDBOX) ## Bring up a real Kubernetes on this machine; prints KUBECONFIG
	@$(SANDBOX) up --all

sandbox-down: $(SANDBOX) ## Remove every trace of it
	@$(SANDBOX) down

sandbox-test: sandbox ## Test the sandbox itself; leaves nothing running
	cd test/sandbox && $(TEST) -count=1 -timeout=30m ./... -args -down

fmt: $(GOLANGCI) ## Format
	$(GOLANGCI) fmt ./...

tidy: ## Tidy every module
	for m in . test/sandbox test/bench/etcd test/dashboards test/deploy deploy/image; do (cd $$m && go mod tidy); done
	test/sandbox/align.sh

# compiled has the packages and tests of the main module in Go's cache.
.PHONY: compiled
compiled:
	@echo "compiling quorate and its tests, some minutes the first time"
	@$(LEAN) go list -export -deps -test ./... >/dev/null

# machine looks whether there can be a cluster: the sandbox, or one that KUBECONFIG names.
.PHONY: machine
machine: $(SANDBOX)
	@if ! why=$$($(SANDBOX) preflight 2>&1); then \
	  if [ -z "$${KUBECONFIG:-}" ]; then echo "$$why" >&2; exit 1; fi; \
	  echo "no sandbox ($$why); using the cluster of KUBECONFIG=$$KUBECONFIG"; fi

# cluster brings the sandbox up where that is possible, with all that tests need of it.
.PHONY: cluster
cluster: machine
	@if $(SANDBOX) preflight >/dev/null 2>&1; then $(SANDBOX) up --all >/dev/null; else $(SANDBOX) build; fi

# sshd is what the tests of Git over SSH talk to.
.PHONY: sshd
sshd:
	@test -x /usr/sbin/sshd || { echo "installing openssh-server"; apt-get -qq update; \
	  DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends openssh-server; }

# chromium is what the tests of the page load it in.
.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || { echo "installing chromium"; apt-get -qq update; \
	  DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends chromium fonts-dejavu-core; }

# jq is what the CI examples call, which a test runs.
.PHONY: jq
jq:
	@command -v jq >/dev/null || { echo "installing jq"; apt-get -qq update; \
	  DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends jq; }

# promtool is what the tests of the alerts run; it comes with Prometheus, which the end-to-end
# test of them starts beside an Alertmanager.
.PHONY: promtool alertmanager
promtool:
	@test -x /usr/bin/promtool || { echo "installing prometheus"; apt-get -qq update; \
	  DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends prometheus; }

alertmanager: promtool
	@test -x /usr/bin/prometheus-alertmanager || { echo "installing prometheus-alertmanager"; apt-get -qq update; \
	  DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends prometheus-alertmanager; }

.PHONY: $(SANDBOX)
$(SANDBOX):
	@mkdir -p $(BIN); test -e $@ || echo "building the sandbox's program, half a minute the first time"
	@cd test/sandbox && $(LEAN) go build -o $@ .

# Programs beside the modules, each with its release at the end of its name.
$(GOLANGCI): PROGRAM := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(HELM3): PROGRAM := helm.sh/helm/v3/cmd/helm
# Helm's Makefile says by these which Kubernetes it renders for; without them that is 1.20.
$(HELM3): LINK := $(foreach package,chartutil lint/rules,-X helm.sh/helm/v3/pkg/$(package).k8sVersionMinor=37)
$(COSIGN): PROGRAM := github.com/sigstore/cosign/v3/cmd/cosign
$(GORELEASER): PROGRAM := github.com/goreleaser/goreleaser/v2
$(GOLANGCI) $(HELM3) $(COSIGN) $(GORELEASER):
	@mkdir -p $(TOOLS)
	@echo "building $(@F), some minutes the first time"
	GOBIN=$(TOOLS) $(LEAN) go install -ldflags='-s -w $(LINK)' $(PROGRAM)@v$(lastword $(subst -v, ,$(@F)))
	@mv $(TOOLS)/$(firstword $(subst -v, ,$(@F))) $@
