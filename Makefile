# Targets that people and CI rely on: run test build check conformance bench. They need Go and make; conformance also needs Node.

GO          ?= go
export CGO_ENABLED = 0
export GOFLAGS ?= -buildvcs=false -trimpath

# Pinned tools; each runs with "go run", so nothing has to be installed.
STATICCHECK  = honnef.co/go/tools/cmd/staticcheck@v0.8.2
ERRORLINT    = github.com/polyfloyd/go-errorlint@v1.8.0
GOVULNCHECK  = golang.org/x/vuln/cmd/govulncheck@v1.8.0

VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS      = -s -w -X main.version=$(VERSION)

.PHONY: run build plugins examples test race check clients conformance bench fuzz clean

run: build ## build host and plugins, serve with the embedded default configuration
	./bin/hako serve

build: plugins ## bin/hako and dist/plugins/*.wasm
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/hako ./cmd/hako

plugins: ## the shipped plugins, with their manifests inside
	$(GO) run ./scripts/plugins

examples: build ## the example plugins, into dist/examples
	for dir in examples/*/; do ./bin/hako plugin build "$$dir" -o "dist/examples/$$(basename "$$dir").wasm" || exit 1; done

test: plugins ## all tests
	$(GO) test -timeout 30m ./...

race: plugins ## all tests with the race detector, which needs a C compiler
	CGO_ENABLED=1 $(GO) test -race -shuffle=on -timeout 30m ./...

check: ## format, vet, staticcheck, errorlint, govulncheck, tidy, generated files without a diff
	./scripts/check.sh '$(STATICCHECK)' '$(ERRORLINT)' '$(GOVULNCHECK)'

clients: build ## the MCP Inspector and the official TypeScript SDK against bin/hako
	./scripts/clients.sh

conformance: build ## the official MCP conformance suite, both frozen sets
	./scripts/conformance.sh

bench: build ## benchmarks; writes bench/results.json and docs/performance.md
	mkdir -p bench
	$(GO) test ./host/internal/bench -run TestBench -count=1 -timeout 30m -v -hako.out $(CURDIR)/bench/results.json
	$(GO) run ./scripts/performance

fuzz: ## every fuzz target for a short while
	./scripts/fuzz.sh

clean:
	rm -rf bin dist cmd/hako/shipped/*.wasm
