#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (default 5s), as many at once as there are processors. Each package is built once.
#
# With FUZZCHANGED=1 it runs those of packages with a file that differs from FUZZBASE. Its default is where the branch left main or, on main, the
# newest commit that is a day older than the last one, because several commits may land at once. If there is no such commit (a shallow clone), or if what all targets depend on has changed, every target runs for a second.
set -euo pipefail
cd "$(dirname "$0")/.."
export FUZZTIME=${FUZZTIME:-5s} FUZZCACHE=${FUZZCACHE:-$(go env GOCACHE)/fuzz}
binaries=$(mktemp -d)
trap 'rm -rf "$binaries"' EXIT

# What is instrumented guides the fuzzer: hako, and the parsers that it gives untrusted bytes to. "go test -fuzz" would instrument all that a
# package imports, and so build SQLite, the SDKs and the standard library once more, which takes minutes and gigabytes.
instrument=()
for pattern in github.com/hako-run/hako/... github.com/go-json-experiment/json/... go.yaml.in/yaml/v3/... mvdan.cc/sh/v3/... \
	github.com/santhosh-tekuri/jsonschema/v6/... github.com/yosida95/uritemplate/v3/... github.com/bmatcuk/doublestar/v4/...; do
	instrument+=("-gcflags=$pattern=-d=libfuzzer")
done

# fuzz runs one target of a package's test binary and prints its last line, or everything if it fails. By default the engine spends up to a minute
# on shortening each input with new coverage, so that a short run does little else.
fuzz() {
	local binary=$1 package=$2 target=$3 output
	if output=$(cd "$package" && "$binary" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$FUZZTIME" \
		-test.fuzzminimizetime 10x -test.parallel 1 -test.fuzzcachedir "$FUZZCACHE/$package" 2>&1); then
		if grep -q 'without coverage guidance' <<<"$output"; then
			printf 'FAIL  %s %s: the binary is not instrumented\n' "$package" "$target"
			return 255
		fi
		printf 'ok    %s %s: %s\n' "$package" "$target" "$(grep -o 'execs: [0-9]*' <<<"$output" | tail -n 1)"
		return
	fi
	# At the end of its time the engine may report its own deadline as a failure (go.dev/issue/75804, mended in Go 1.27). A target that fails leaves
	# the input that it failed on, and says so.
	if grep -q '^ *context deadline exceeded$' <<<"$output" && ! grep -qE 'Failing input written to|panic|hung or terminated' <<<"$output"; then
		printf 'ok    %s %s: ended by its deadline\n' "$package" "$target"
		return
	fi
	printf 'FAIL  %s %s\n%s\n' "$package" "$target" "$output"
	return 255 # xargs stops
}
export -f fuzz

packages=$(grep -rlE '^func Fuzz' --include='*_test.go' cmd dev host internal pdk plugins examples scripts | xargs -n 1 dirname | sort -u | sed 's,^,./,')

# base prints the commit with which FUZZCHANGED compares, or fails.
base() {
	local head main commit
	if [ -n "${FUZZBASE:-}" ]; then
		git rev-parse -q --verify "$FUZZBASE^{commit}"
		return
	fi
	[ "$(git rev-parse --is-shallow-repository)" = false ] && head=$(git rev-parse HEAD) || return
	for main in origin/main main; do
		commit=$(git merge-base "$main" HEAD 2>/dev/null) || continue
		[ "$commit" = "$head" ] || { echo "$commit" && return; }
	done
	commit=$(git rev-list -1 --before=$(($(git log -1 --format=%ct) - 86400)) HEAD)
	[ -n "$commit" ] && echo "$commit"
}

# changed prints the packages, of those in standard input, that have a changed file: in their folder, in its testdata, or not yet committed.
changed() {
	local files=$1 package
	while read -r package; do
		grep -qE "^${package#./}/([^/]+|testdata/.*)$" <<<"$files" && echo "$package"
	done
	return 0
}

if [ -n "${FUZZCHANGED:-}" ]; then
	if since=$(base) && files=$(git diff --name-only "$since" && git ls-files --others --exclude-standard) && ! grep -qxE 'go[.]mod|scripts/fuzz[.]sh' <<<"$files"; then
		packages=$(changed "$files" <<<"$packages")
		printf 'fuzz targets of %d packages, which have changed since %.12s\n' "$(grep -c . <<<"$packages")" "$since"
		[ -n "$packages" ] || exit 0
	else
		FUZZTIME=1s
		printf 'what has changed is unknown or concerns all: every fuzz target for %s\n' "$FUZZTIME"
	fi
fi

while read -r package; do
	binary=$binaries/${package//\//_}
	go test -c "${instrument[@]}" '-ldflags=-s -w' -o "$binary" "$package" >&2
	cat "$package"/*_test.go | grep -oE '^func Fuzz[A-Za-z0-9_]+' | sed 's/^func //' | while read -r target; do
		printf '%s %s %s\n' "$binary" "$package" "$target"
	done
done <<<"$packages" | xargs -P "$(nproc)" -L 1 bash -c 'fuzz "$@"' fuzz
