#!/usr/bin/env bash
# Runs every check that is not a test. Arguments: the pinned staticcheck, errorlint and govulncheck.
set -euo pipefail
cd "$(dirname "$0")/.."
staticcheck=$1 errorlint=$2 govulncheck=$3
fail=0
step() { printf '%s\n' "== $*"; }

step gofmt
unformatted=$(gofmt -l $(git ls-files '*.go'))
if [ -n "$unformatted" ]; then
	printf 'not formatted, run gofmt -w:\n%s\n' "$unformatted"
	fail=1
fi

step go vet
go vet ./... || fail=1
# The shipped plugins are built as guests by make plugins; their tests run on the host and import most of it.
GOOS=wasip1 GOARCH=wasm go vet ./pdk/... ./examples/... || fail=1

step types for macOS and Windows
go run ./scripts/typecheck darwin windows || fail=1

step staticcheck
go run "$staticcheck" ./... || fail=1

step errorlint
go run "$errorlint" ./... || fail=1

step govulncheck
# The vulnerability database is on the network. Where it cannot be reached this step says so instead of failing.
if output=$(go run "$govulncheck" ./... 2>&1); then
	printf '%s\n' "$output" | tail -n 3
elif grep -qE 'no such host|connection refused|i/o timeout|network is unreachable' <<<"$output"; then
	printf 'NOT CHECKED: the vulnerability database cannot be reached from here\n'
else
	printf '%s\n' "$output"
	fail=1
fi

step tidy and generated files
before=$(git status --porcelain)
go mod tidy
go generate ./...
if [ "$(git status --porcelain)" != "$before" ]; then
	printf 'go mod tidy or go generate changed files:\n'
	git status --porcelain
	fail=1
fi
exit $fail
