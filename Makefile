# Everything that is done with this repository. `make` alone lists it.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# Without this tag kubectl's drain brings kustomize's plug-ins, and with them twice the binary.
TAGS    := kustomize_disable_go_plugin_support
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# The time of the source, in seconds since 1970: what is packed has it, not the time of the packing.
EPOCH   ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
# Asked once: the tree may change meanwhile.
VERSION := $(VERSION)
REVISION := $(REVISION)
EPOCH   := $(EPOCH)
export VERSION
# What the controller of a release asks for (pkg/edge/settings).
EDGE_TAG := $(shell [[ '$(VERSION)' =~ ^v?[0-9]+\.[0-9]+\.[0-9]+(-[a-z]+\.?[0-9]+)?$$ ]] && echo '$(VERSION)' || echo latest)
OUT     ?= bin/zedkube
IMAGE   ?= zedkube:$(VERSION)

# Nothing is compiled with DWARF, which takes a fifth of the compiler's time: no program is linked with it, and
# stack traces, profiles and the race detector do without. For a debugger: `go build`, `dlv test`.
NO_DWARF := -gcflags=all=-dwarf=false
export GOFLAGS := $(filter-out $(NO_DWARF),$(shell go env GOFLAGS 2>/dev/null)) $(NO_DWARF)
# The compiler takes some more memory, and less time.
BUILD   := GOGC=400 go build

# The same source gives the same bytes, whatever the directory.
LDFLAGS := -s -w -X main.version=$(VERSION)
RELEASE := -trimpath -buildvcs=false -tags $(TAGS) -ldflags '$(LDFLAGS)'
# Everything compiles as that does, but for the race detector: what one step has compiled is there for the next.
ALIKE   := CGO_ENABLED=0 GOFLAGS="$$GOFLAGS -trimpath"
PROGRAM := cmd docs kubeapi pkg pubsub types

# What an image says of itself, in its annotations; its labels are in the Dockerfile.
ABOUT   := version=$(VERSION) revision=$(REVISION) licenses=Apache-2.0 source=https://github.com/zedkube/zedkube

# The race detector needs a C compiler.
RACE     := $(if $(shell command -v "$$(go env CC)" 2>/dev/null),-race)
# How the program for the tests that run it as a process is built: without the race detector, but in `make race`.
RACED    := $(ALIKE)
GOTEST    = TAGS=$(TAGS) RACE=$(RACE) ZEDKUBE_PROGRAM=$(CURDIR)/bin/tested/zedkube ZEDKUBE_FAILPOINTS_PROGRAM=$(CURDIR)/bin/tested/zedkube-failpoints bin/tools/gotestsum --format standard-quiet \
            --jsonfile bin/test.json --raw-command -- .ci/tests $(if $(CI),-count=1)
NOT_RUN  := bin/not-run
GORELEASER := v2.14.0
AXE      := 4.10.3
# Debian's qemu-user and qemu-user-static name it differently.
QEMU     := $(firstword $(foreach name,qemu-aarch64 qemu-aarch64-static,$(shell command -v $(name) 2>/dev/null)))

.PHONY: help build edge edge-image run recording bin/demo test race lint govulncheck fmt bench soak test-upgrade test-edge check image release clean begin compiler vet docs archs sbom repro arm64tests tested axe packed cluster clusters releases kubeedge coredns bin/tools/goreleaser

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the program, bin/zedkube; GOARCH=arm64 for the other architecture
	CGO_ENABLED=0 GOOS=linux $(BUILD) $(RELEASE) -o $(OUT) ./cmd/zedkube

edge: ## the program that runs KubeEdge in a cluster, bin/zedkube-edge (docs/edge.md); OUT, GOARCH as with build
	CGO_ENABLED=0 GOOS=linux $(BUILD) $(RELEASE) -o $(if $(filter bin/zedkube,$(OUT)),bin/zedkube-edge,$(OUT)) ./cmd/zedkube-edge

edge-image: ## its image for both architectures, without network, by buildah or podman; an archive of each in bin/edge
	@engine=$$(command -v buildah || command -v podman) || { echo 'edge-image: neither buildah nor podman is installed' >&2; exit 1; }; \
	for arch in amd64 arm64; do \
		$(MAKE) --no-print-directory edge GOARCH=$$arch OUT=bin/linux-$$arch/zedkube-edge && \
		"$$engine" build --platform "linux/$$arch" --timestamp "$(EPOCH)" -f cmd/zedkube-edge/Dockerfile -t "docker.io/zedkube/zedkube-edge:$(EDGE_TAG)" \
			--build-arg VERSION="$(VERSION)" --build-arg REVISION="$(REVISION)" . && \
		mkdir -p bin/edge && rm -f "bin/edge/zedkube-edge-$$arch.tar" && \
		"$$engine" push --quiet "docker.io/zedkube/zedkube-edge:$(EDGE_TAG)" "docker-archive:bin/edge/zedkube-edge-$$arch.tar:docker.io/zedkube/zedkube-edge:$(EDGE_TAG)" || exit 1; done

run: ## three nodes on a real control plane, live in this terminal; KEEP=1 leaves them up, STORY=help lists more. A recorded run as long as it builds
	@$(ALIKE) $(BUILD) -o bin/run ./test/run
	@exec bin/run $(if $(KEEP),-keep) $(if $(STORY),-story "$(STORY)")

recording: build cluster bin/demo ## record a run again, for `make run` to show while it builds
	bin/demo -record

test: begin lint docs archs sbom repro arm64tests compiler clusters tested axe bin/tools/gotestsum ## everything that proves it: lint with vet, house rules, all tests but soak
	$(GOTEST)
	@.ci/not-run

race: RACED := $(if $(RACE),CGO_ENABLED=1,$(ALIKE))
race: begin vet compiler clusters tested axe bin/tools/gotestsum ## all tests with the race detector, the program they run too: an hour
	EVERYTHING=yes $(GOTEST)
	@.ci/not-run

check: vet docs archs repro coredns ## the quick round: vet, both builds, the tests without a cluster
	$(ALIKE) go test -vet=off -p 2 -tags $(TAGS) $$(go list -tags $(TAGS) -f '{{.ImportPath}} {{.Imports}} {{.TestImports}} {{.XTestImports}}' ./... \
		| sed 's|[[ ][^ ]*/test/cmdtest\>||g' | grep -v zedkube/test/ | cut -d ' ' -f 1)
	$(ALIKE) go test -vet=off -tags $(TAGS) -skip '^TestStories$$' ./cmd/zedkube

lint: bin/tools/golangci-lint ## golangci-lint and gofumpt by .golangci.yml, the import rules, no dead code
	$(ALIKE) go test -vet=off ./test/house
	$(ALIKE) bin/tools/golangci-lint run ./...
	cd test/browser && $(ALIKE) ../../bin/tools/golangci-lint run ./...
	@dead=$$($(ALIKE) bin/tools/deadcode -tags $(TAGS) ./cmd/zedkube ./cmd/zedkube-edge) && echo "$$dead" && test -z "$$dead"

govulncheck: bin/tools/govulncheck ## known vulnerabilities that the program can reach; asks vuln.go.dev, or the database VULNDB
	@TAGS=$(TAGS) $(ALIKE) .ci/govulncheck

fmt: bin/tools/golangci-lint ## format as lint wants it
	bin/tools/golangci-lint fmt

bench: build clusters ## measure; writes docs/performance.md
	$(ALIKE) go run -tags $(TAGS) ./test/bench

soak: clusters releases kubeedge tested ## scenes with kills and faults, judged by rules: writes docs/reliability.md. FOR=8h; CONTINUE=1 goes on with the last one; SCENE=name SEED=n repeats one
	$(ALIKE) ZEDKUBE_PROGRAM=$(CURDIR)/bin/tested/zedkube go run -tags $(TAGS) ./test/soak \
		$(if $(SCENE),-scene '$(SCENE)') $(if $(SEED),-seed '$(SEED)') $(if $(FOR),-for '$(FOR)') $(if $(SHORT),-short) $(if $(CONTINUE),-continue)

test-upgrade: cluster releases tested ## three real servers from Kubernetes 1.34 to 1.35, and from etcd 3.5 to 3.6; as root; a part of soak
	$(ALIKE) ZEDKUBE_PROGRAM=$(CURDIR)/bin/tested/zedkube go test -vet=off -tags $(TAGS),soak -run '^TestSoak' -count=1 -timeout 3h -v ./test/upgrade

test-edge: cluster kubeedge edge ## three servers and two devices behind routers with KubeEdge's own cloudcore and edgecore; as root; a part of soak
	$(ALIKE) ZEDKUBE_EDGE_PROGRAM=$(CURDIR)/bin/zedkube-edge go test -vet=off -tags $(TAGS),soak -run '^TestSoak' -count=1 -timeout 1h -v ./test/edge

image: archs ## an image for both architectures, without network, by buildah or podman; also in bin/image, as an OCI layout
	@engine=$$(command -v buildah || command -v podman) || { echo 'image: neither buildah nor podman is installed' >&2; exit 1; }; \
	"$$engine" manifest rm "$(IMAGE)" >/dev/null 2>&1 || true; \
	for arch in amd64 arm64; do \
		"$$engine" build --platform "linux/$$arch" --manifest "$(IMAGE)" --timestamp "$(EPOCH)" \
			--build-arg VERSION="$(VERSION)" --build-arg REVISION="$(REVISION)" $(ABOUT:%=--annotation org.opencontainers.image.%) .; done; \
	rm -rf bin/image; \
	"$$engine" manifest push --quiet --all "$(IMAGE)" "oci:bin/image:$(VERSION)"
	$(ALIKE) go run ./test/image -version "$(VERSION)" -revision "$(REVISION)" -qemu "$(QEMU)" bin/image
ifeq ($(QEMU),)
	@echo 'image for arm64: no qemu-user' | tee -a $(NOT_RUN)
endif

release: bin/tools/goreleaser ## archives, checksums and bills of materials in bin/release; signed with GPG_KEY or COSIGN_KEY, if given
	$(ALIKE) go test -count=1 -tags $(TAGS),release -run Release ./test/packaging
	@$(MAKE) --no-print-directory packed
	$(ALIKE) go test -count=1 -tags $(TAGS),release -run Packed ./test/packaging

clean: ## remove what was built here; Go's cache and the control plane's stay
	rm -rf bin

# ---- steps of the above ----

begin:
	@mkdir -p bin && rm -f $(NOT_RUN) bin/test.json

compiler:
ifeq ($(RACE),)
	@echo 'race detector: no C compiler' | tee -a $(NOT_RUN)
	@test "$${CI:-}" != true
endif

# The tags add the long tests and leave nothing out; the last one is that of the test build.
vet:
	$(ALIKE) go vet -tags $(TAGS),soak,release ./...
	$(ALIKE) go vet -tags $(TAGS),failpoints ./cmd/zedkube ./kubeapi/access ./pkg/base/failpoint
	cd test/browser && $(ALIKE) go vet -tags $(TAGS) ./...

# What code cites of docs/wire.md must stand there, and what the documents link to must exist.
docs:
	@bad=; while IFS= read -r title; do \
		grep -qE "^#+ $$title\$$" docs/wire.md || { echo "docs/wire.md has no section \"$$title\", which code cites" >&2; bad=1; }; \
	done < <(grep -rhoE 'docs/wire\.md, "[^"]+"' --include='*.go' . | cut -d '"' -f 2 | sort -u); \
	while IFS=: read -r file link; do \
		test -e "$$(dirname "$$file")/$$link" || { echo "$$file links to $$link, which is not there" >&2; bad=1; }; \
	done < <(grep -HoE '\]\([^)#:]+\)' *.md docs/*.md docs/decisions/*.md | tr -d '])('); \
	test -z "$$bad"

archs:
	@for arch in amd64 arm64; do \
		$(MAKE) --no-print-directory build GOARCH=$$arch OUT=bin/linux-$$arch/zedkube; \
		$(MAKE) --no-print-directory edge GOARCH=$$arch OUT=bin/linux-$$arch/zedkube-edge; done

# What each program is made of; an error where a licence is none that it may contain.
sbom: archs
	@for program in bin/linux-{amd64,arm64}/zedkube{,-edge}; do \
		SOURCE_DATE_EPOCH=$(EPOCH) $(ALIKE) go run ./test/sbom -version "$(VERSION)" -notices "$$program.licenses" "$$program" "$$program.cdx.json"; done

repro: archs
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && cp -R go.mod go.sum $(PROGRAM) "$$dir" && cd "$$dir" && \
	for program in {amd64,arm64}/zedkube{,-edge}; do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$${program%/*} $(BUILD) $(RELEASE) -o program ./cmd/$${program#*/}; \
		cmp program "$(CURDIR)/bin/linux-$$program"; echo "$$program: built twice, the same bytes"; done

# Sockets, inotify and JSON on the other processor.
arm64tests:
ifeq ($(QEMU),)
	@echo 'arm64 tests: no qemu-user' | tee -a $(NOT_RUN)
else
	GOARCH=arm64 $(ALIKE) EMULATOR=$(QEMU) go test $(if $(CI),-count=1) -exec $(QEMU) ./types ./pubsub
endif

# Linked once for all tests that run it as a process. The second one is the test build, which can be killed at its kill points.
tested:
	$(RACED) $(BUILD) $(if $(findstring CGO_ENABLED=1,$(RACED)),-race) -tags $(TAGS) -o bin/tested/zedkube ./cmd/zedkube
	$(RACED) $(BUILD) $(if $(findstring CGO_ENABLED=1,$(RACED)),-race) -tags $(TAGS),failpoints -o bin/tested/zedkube-failpoints ./cmd/zedkube

bin/demo:
	@$(ALIKE) $(BUILD) -tags $(TAGS) -o bin/demo ./test/demo

# The control plane is built once per machine, before the tests, so that no test's time limit pays for it.
cluster:
	$(ALIKE) go run -tags $(TAGS) ./test/devcluster/cmd/devcluster build --source $(CURDIR)/test/devcluster

# And what only some tests want.
clusters: coredns
	$(ALIKE) go run -tags $(TAGS) ./test/devcluster/cmd/devcluster build --source $(CURDIR)/test/devcluster --all

# And what only long tests want: another minor version of Kubernetes, of which nothing is compiled for the rest.
releases:
	$(ALIKE) go run -tags $(TAGS) ./test/devcluster/cmd/devcluster build --source $(CURDIR)/test/devcluster --releases

# KubeEdge's programs, kube-proxy and metrics-server, for edge hosts: minutes once.
kubeedge:
	$(ALIKE) go run -tags $(TAGS) ./test/devcluster/cmd/devcluster build --source $(CURDIR)/test/devcluster --edge

# Its modules are fetched here, and it is compiled, so that no test waits for either.
coredns:
	$(ALIKE) go build -C test/coredns -buildvcs=false -o /dev/null .

bin/tools/%: test/tools/go.mod test/tools/go.sum
	@mkdir -p bin/tools
	cd test/tools && CGO_ENABLED=0 GOOS= GOARCH= $(BUILD) -trimpath -o ../../bin/tools/ tool
	@touch bin/tools/*

packed: archs sbom bin/tools/goreleaser
	@rm -rf bin/release
	TAGS='$(TAGS)' LDFLAGS='$(LDFLAGS)' EPOCH='$(EPOCH)' MTIME="$$(date -u -d '@$(EPOCH)' +%FT%TZ)" \
		REVISION='$(REVISION)' bin/tools/goreleaser release --snapshot --clean $(if $(GPG_KEY)$(COSIGN_KEY),,--skip=sign)
	@install -D -m 644 -t bin/release bin/dist/*.tar.gz bin/dist/*.cdx.json bin/dist/SHA256SUMS* \
		$(if $(GPG_KEY)$(COSIGN_KEY),bin/dist/*.provenance.json*)
	@cat bin/release/SHA256SUMS

# axe-core judges the page in test/browser. It is a file of JavaScript: where npm or its registry is out of reach, that test
# skips itself, and .ci/not-run says so.
axe:
	@[ -e bin/axe/$(AXE)/axe.min.js ] || { \
		mkdir -p bin/axe/$(AXE) && cd bin/axe/$(AXE) && npm pack --silent axe-core@$(AXE) && \
		tar -xzf axe-core-$(AXE).tgz --strip-components=1 package/axe.min.js && rm axe-core-$(AXE).tgz && \
		{ echo "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb  axe.min.js" | sha256sum --quiet -c || { rm axe.min.js; false; }; } \
	} >/dev/null || echo "axe: out of reach"

# Only a release needs it, and it takes minutes to build: not one of the above.
bin/tools/goreleaser:
	@go version -m $@ 2>/dev/null | grep "goreleaser/v2.$(GORELEASER)\s" >/dev/null || \
		GOBIN=$(CURDIR)/bin/tools CGO_ENABLED=0 GOOS= GOARCH= go install -trimpath github.com/goreleaser/goreleaser/v2@$(GORELEASER)
