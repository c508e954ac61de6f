# Targets that people and CI rely on: run test build check conformance bench. They need Go and make; conformance also needs Node.

GO          ?= go
export CGO_ENABLED = 0
export GOFLAGS ?= -buildvcs=false -trimpath

# Pinned tools; each runs with "go run", so nothing has to be installed.
STATICCHECK  = honnef.co/go/tools/cmd/staticcheck@v0.8.2
ERRORLINT    = github.com/polyfloyd/go-errorlint@v1.8.0
HELM         = helm.sh/helm/v4/cmd/helm@v4.3.1
GORELEASER   = github.com/goreleaser/goreleaser/v2@v2.14.3
GOVULNCHECK  = golang.org/x/vuln/cmd/govulncheck@v1.8.0
GOTESTSUM    = gotest.tools/gotestsum@v1.13.0

VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS      = -s -w -X main.version=$(VERSION)

IMAGE       ?= hako
BUILDER     ?= $(firstword $(foreach b,docker podman buildah,$(shell command -v $(b))))

# UNRACED are packages that the race detector leaves out: compilers, a translated SQLite and parsers, which compute on memory of their own. They
# took more than half of the time of the tests. A package that has copies of the generic functions of sync or sync/atomic must not be among them,
# as wazero's interpreter has them of sync.Map ("go tool nm" lists them): the linker may take its copies for all packages, and the detector would
# see races where there are none.
HAKO     = github.com/hako-run/hako
WAZEVO   = github.com/tetratelabs/wazero/internal/engine/wazevo
UNRACED  = $(foreach p,$(HAKO)/host/wasm/rewrite $(HAKO)/host/wasm/wasmbin $(WAZEVO)/ssa $(WAZEVO)/frontend $(WAZEVO)/backend/... \
	github.com/ncruces/go-sqlite3-wasm/... go.yaml.in/yaml/v3,-gcflags=$(p)=-race=false)

# RACED are the packages with concurrency of their own: dev/repository computes the list and says how. PLAIN are the others.
RACED    = $(shell sed 's,^,./,' dev/repository/testdata/raced.txt)
PLAIN    = $(filter-out $(patsubst ./%,$(HAKO)/%,$(RACED)),$(shell $(GO) list ./...))

# What "make check" vets is not vetted again by go test. Without their symbols, programs of tests are linked in half the time. Nothing here makes
# results of tests uncacheable (-count, -shuffle, what differs with every run): go test repeats only those whose code or files have changed.
TESTFLAGS = -vet=off -ldflags=-s -timeout 40m

# raced runs tests under the race detector, with their events in a file: $(call raced,NAME,FLAGS AND PACKAGES)
raced = CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(GO) run $(GOTESTSUM) --format pkgname --hide-summary skipped --jsonfile dist/$(1).json -- \
	-race $(UNRACED) $(TESTFLAGS) $(2)

.PHONY: run build plugins examples test race hostile check clients dex tutorials code browser recordings conformance bench bench-growth bench-peers fuzz fuzz-changed postgres image dist deploy chaos scaling soak race-all weekly clean

run: build ## build host and plugins, serve with the embedded default configuration
	./bin/hako serve

# BUILT=1 says that both are built already, as in .ci/run.
ifdef BUILT
build plugins:
else
build: plugins ## bin/hako, bin/hako-dev and dist/plugins/*.wasm
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/hako ./cmd/hako-dev

plugins: ## the shipped plugins, with their manifests inside
	$(GO) run ./scripts/plugins
endif

examples: build ## the example plugins, into dist/examples
	for dir in examples/*/; do ./bin/hako plugin build "$$dir" -o "dist/examples/$$(basename "$$dir").wasm" || exit 1; done

test: plugins ## all tests
	$(GO) test $(TESTFLAGS) ./...

race: plugins ## all tests, with the race detector (which needs a C compiler) where there is concurrency, and the table of the hostile suite
	mkdir -p dist && rm -f dist/race.json dist/plain.json
	$(call raced,race,$(RACED)) && held=0 || held=1; \
	$(GO) run $(GOTESTSUM) --format pkgname --hide-summary skipped --jsonfile dist/plain.json -- $(TESTFLAGS) $(PLAIN) || held=1; \
	cat dist/race.json dist/plain.json | $(GO) run ./scripts/hostile && exit $$held

hostile: plugins ## the tests that attack hako, and a table of them by class
	$(GO) test -json $(TESTFLAGS) -run '^TestHostile' ./... | $(GO) run ./scripts/hostile

check: ## format, vet, staticcheck, errorlint, govulncheck, tidy, generated files without a diff
	./scripts/check.sh '$(STATICCHECK)' '$(ERRORLINT)' '$(GOVULNCHECK)'

clients: build ## the MCP Inspector and the official TypeScript SDK against bin/hako
	./scripts/clients.sh

code: ## builds the plugin code again and compares it with the committed file
	scripts/code.sh

dex: build ## the company login: a client of the TypeScript SDK and a browser, through hako, with a real Dex (built from the Go module proxy)
	./scripts/dex.sh

tutorials: plugins ## the commands of docs/writing-a-component.md and docs/languages.md with their toolchains, and the PDKs' conformance
	TEST_TOOLCHAINS=1 $(GO) test $(TESTFLAGS) ./cmd/hako -run 'TestDocuments/^(writing-a-component.*|languages)[.]md$$'
	TEST_TOOLCHAINS='c assemblyscript' $(GO) test $(TESTFLAGS) ./host/app/conformance

browser: build ## the console and the other pages in a headless Chromium; screenshots in dist/browser
	./scripts/browser.sh

recordings: build ## one approval as a sequence of pictures in the console, the terminal, Slack's fake and the form of an MCP client; in dist/browser
	./scripts/recordings.sh

conformance: plugins ## the official MCP conformance suite, both frozen sets, against a build that has its fixtures
	$(GO) build -tags conformance -ldflags '$(LDFLAGS)' -o bin/hako-conformance ./cmd/hako
	./scripts/conformance.sh

bench: build ## benchmarks; writes bench/results.json and docs/performance.md. BENCH='-hako.duration 100ms -hako.settle 1s' tries it out
	mkdir -p bench
	$(GO) test ./dev/bench -run TestBench -count=1 -timeout 30m -v \
		-hako.program $(CURDIR)/bin/hako -hako.out $(CURDIR)/bench/results.json $(BENCH)
	$(GO) run ./dev/performance

bench-growth: ## curves of how time and memory grow, in two minutes; writes bench/growth.json, docs/performance.md and its pictures
	mkdir -p bench
	$(GO) test ./dev/bench -run TestGrowth -count=1 -timeout 30m -v -hako.out $(CURDIR)/bench/growth.json
	$(GO) run ./dev/performance

bench-peers: build ## hako beside other hosts, where they are; writes bench/peers.json and docs/performance.md, which says how
	mkdir -p bench
	$(GO) test ./dev/bench -run TestPeers -count=1 -timeout 30m -v \
		-hako.program $(CURDIR)/bin/hako -hako.out $(CURDIR)/bench/peers.json $(BENCH)
	$(GO) run ./dev/performance

image: build ## a container image; BUILDER is docker, podman or buildah
	rm -rf dist/image && mkdir -p dist/image/state && cp bin/hako dist/image/
	$(BUILDER) build -q -t $(IMAGE) -f deploy/container/Dockerfile dist/image

dist: ## the files of a release, for six platforms, into dist/release
	$(GO) run $(GORELEASER) release --snapshot --clean

deploy: build ## the Helm chart, the image, the unit and the bundle against the tools that they are for
	./scripts/deploy.sh $(HELM)

postgres: ## the tests of what uses the store once more, over PostgreSQL
	TEST_REQUIRE=1 TEST_STORE=postgres $(GO) test $(TESTFLAGS) ./host/govern/approval ./host/frontend/chat ./host/frontend/mcpserver/authserver ./host/govern/quota ./host/frontend/slackbot

CHAOS_FLAGS ?= -chaos.for 40s
chaos: build ## three replicas over PostgreSQL behind nginx, killed under load, their clocks moved, and a ledger; CHAOS_FLAGS='-chaos.for 10m -chaos.pooler'
	TEST_REQUIRE=1 $(GO) test ./dev/chaos -run TestChaos -count=1 -v -timeout 60m -chaos.hako $(CURDIR)/bin/hako $(CHAOS_FLAGS)

scaling: build ## what one, two and three replicas do in a second; writes bench/scaling.md
	TEST_REQUIRE=1 $(GO) test ./dev/chaos -run TestScaling -count=1 -v -timeout 30m -chaos.hako $(CURDIR)/bin/hako -chaos.scaling $(CURDIR)/bench/scaling.md \
		-chaos.results $(CURDIR)/bench/replicas.json $(SCALING)

soak: build ## half an hour under load; writes bench/soak
	$(GO) run ./dev/soak -duration $(or $(DURATION),30m)

fuzz: ## every fuzz target for a short while
	./scripts/fuzz.sh

fuzz-changed: ## the fuzz targets of packages that have changed since FUZZBASE (by default what main has), or all very shortly if that is unknown
	FUZZCHANGED=1 ./scripts/fuzz.sh

race-all: plugins ## all tests under the race detector in random order, and the table of the hostile suite
	mkdir -p dist && rm -f dist/race-all.json
	$(call raced,race-all,-shuffle=on -count=1 ./...) && held=0 || held=1; \
	$(GO) run ./scripts/hostile <dist/race-all.json && exit $$held

# Results of other runs do not count here.
weekly: export GOFLAGS += -count=1
weekly: build ## what takes longer than CI may: all tests under the race detector in random order, fuzz, replicas and load for minutes
	failed=; \
	for stage in race-all postgres tutorials 'fuzz FUZZTIME=$(or $(FUZZTIME),1m)' 'chaos CHAOS_FLAGS="-chaos.for 5m"' 'soak DURATION=$(or $(DURATION),10m)'; do \
		eval "$(MAKE) BUILT=1 $$stage" || failed="$$failed $${stage%% *}"; \
	done; \
	if [ -n "$$failed" ]; then echo "FAILED:$$failed"; exit 1; fi

clean:
	rm -rf bin dist cmd/hako/shipped/*.wasm* cmd/hako/shipped/*.json
