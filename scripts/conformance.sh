#!/usr/bin/env bash
# Holds hako against the official MCP conformance suite: both frozen sets of requirements, each in its own protocol version.
# Installs the suite (pinned) into scripts/conformance/node_modules, with a Node of its own, for it needs 22 or later. Needs npm and a
# bin/hako-conformance, which make builds. Prints how many checks passed and failed; what the suite says in full is left in dist/conformance.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
hako=${HAKO:-$root/bin/hako-conformance}
tools=$root/scripts/conformance/node_modules
results=$root/dist/conformance

scripts/npm.sh conformance
rm -rf "$results"
mkdir -p "$results"

work=$(mktemp -d)
server=
stop() {
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || true
		wait "$server" 2>/dev/null || true
	fi
	rm -rf "$work"
}
trap stop EXIT

# What plugins can offer comes from a plugin, approved like any other; the build tag adds the rest.
"$hako" plugin build dev/kit/guesttest/guests/conformance --output "$work/plugins/conformance.wasm" >"$results/build.log"
cat >"$work/hako.yaml" <<-END
	plugins: [plugins]
	shipped:
	  enabled: false
END
(cd "$work" && "$hako" plugin approve conformance --yes) >>"$results/build.log"
(cd "$work" && exec "$hako" serve --http 127.0.0.1:0) >"$results/hako.log" 2>&1 &
server=$!
url=
while [ -z "$url" ] && kill -0 "$server" 2>/dev/null; do
	sleep 0.1
	url=$(sed -n 's/.* serves MCP at \(http[^ ]*\)$/\1/p' "$results/hako.log")
done
if [ -z "$url" ]; then
	echo "conformance: hako does not serve:" >&2
	cat "$results/hako.log" >&2
	exit 1
fi

# tally prints the scenarios of a set that count, then the sum of their checks. Extensions that hako does not have, and scenarios that
# are newer than the set, are run by the suite but count for nothing.
tally() {
	awk -v set="$1" '
		/^=== SUMMARY ===/ { summary = 1 }
		/^Not scored for/ { unscored = 1 }
		summary && !unscored && match($0, /[0-9]+ passed, [0-9]+ failed/) && $2 ~ /:$/ {
			name = substr($2, 1, length($2) - 1)
			counts[name] = substr($0, RSTART, RLENGTH)
		}
		unscored && $3 ~ /^\(/ { delete counts[$2] }
		END {
			for (name in counts) {
				split(counts[name], n, " ")
				passed += n[1]
				failed += n[3]
				scenarios++
				if (n[3] > 0) print "  " name ": " counts[name]
			}
			printf "MCP %s: %d scenarios, %d passed, %d failed\n", set, scenarios, passed, failed
			exit !(passed > 0 && failed == 0)
		}' "$2"
}

status=0
for set in 2025-11-25 2026-07-28; do
	log=$results/$set.log
	if ! "$tools/node/bin/node" "$tools/@modelcontextprotocol/conformance/dist/index.js" \
		server --url "$url" --requirements "$set" --output-dir "$results/$set" >"$log" 2>&1; then
		status=1
	fi
	tally "$set" "$log" || status=1
done
exit $status
