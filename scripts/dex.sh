#!/usr/bin/env bash
# The login of a real MCP client through hako's authorization server, with a real Dex and a browser. Builds Dex, pinned in a module of its own
# (scripts/dex), into dist/dex. Needs npm, a C compiler (Dex has SQLite), Chromium and a built bin/hako.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p ../dist
CGO_ENABLED=1 go build -C dex -o ../../dist/dex github.com/dexidp/dex/cmd/dex
./npm.sh browser
./npm.sh clients
cd clients
export PATH="$PWD/node_modules/node/bin:$PATH"
exec node --test --test-timeout=900000 --test-reporter=spec dex.test.mjs
