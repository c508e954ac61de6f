#!/usr/bin/env bash
# Drives bin/hako with real MCP clients: the Inspector's command line and the official TypeScript SDK, in both eras, over stdio and
# HTTP. Installs them (pinned) into scripts/clients/node_modules. Needs npm and a built bin/hako.
set -euo pipefail
cd "$(dirname "$0")/clients"
../npm.sh clients
export PATH="$PWD/node_modules/node/bin:$PATH"
exec node --test --test-timeout=900000 --test-reporter=spec --test-concurrency=1 clients.test.mjs
