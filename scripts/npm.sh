#!/usr/bin/env bash
# Installs the packages that scripts/DIR/package.json pins, unless they are there. Argument: DIR. Needs npm.
set -euo pipefail
cd "$(dirname "$0")/$1"
for package in $(sed -n '/"dependencies"/,/}/s/^ *"\([^"]*\)": "[0-9].*/\1/p' package.json); do
	[ -d "node_modules/$package" ] || missing=1
done
if [ -n "${missing:-}" ] || ! node_modules/node/bin/node --version >/dev/null 2>&1; then
	npm install --no-audit --no-fund --no-package-lock --loglevel=error
fi
