#!/usr/bin/env bash
# One approval as a sequence of pictures in each frontend, in dist/browser/recording-*.png. Needs npm, Chromium, script (util-linux) and a built bin/hako and bin/hako-dev.
set -euo pipefail
cd "$(dirname "$0")"
./npm.sh browser
./npm.sh clients
cd browser
export PATH="$PWD/node_modules/node/bin:$PATH"
exec node --test --test-timeout=300000 --test-reporter=spec recordings.mjs
