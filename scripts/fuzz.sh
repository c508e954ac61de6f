#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (default 5s).
set -euo pipefail
cd "$(dirname "$0")/.."
time=${FUZZTIME:-5s}
grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
	package=$(dirname "$file")
	grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/^func //' | while read -r target; do
		printf '== %s %s\n' "$package" "$target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
	done
done
