#!/usr/bin/env bash
# Drives hako's pages in a headless Chromium: bin/hako itself, and pages with answers that a host cannot be brought to. Screenshots of all views go to
# dist/browser. Needs npm, a built bin/hako and bin/hako-dev, and Chromium (CHROMIUM, default /usr/bin/chromium); installs Playwright and axe, pinned, into
# scripts/browser/node_modules. Arguments are specs to run instead of all; a spec for another page is one more NAME.test.mjs, with what chromium.mjs has.
set -euo pipefail
cd "$(dirname "$0")/browser"
../npm.sh browser
export PATH="$PWD/node_modules/node/bin:$PATH"
[ $# -gt 0 ] || set -- ./*.test.mjs
exec node --test --test-timeout=900000 --test-reporter=spec --test-concurrency=2 "$@"
