#!/usr/bin/env bash
# Builds the plugin code again and compares it with the committed file, if the compiler is the one that built it.
set -euo pipefail
cd "$(dirname "$0")/.."
built=dist/code.wasm
mkdir -p dist
plugins/code/build.sh "$PWD/$built"
clang=$(clang --version | head -1) libc=$(dpkg-query -W -f '${Version}' wasi-libc 2>/dev/null || true)
if [[ $clang != *" 14.0.6"* || $libc != "0.0~git20220510.9886d3d-2" ]]; then
	echo "plugins/code/code.wasm is not compared: it was built by clang 14.0.6 with wasi-libc 0.0~git20220510.9886d3d-2, and here are $clang and ${libc:-none}"
	exit 0
fi
cmp "$built" plugins/code/code.wasm
echo "plugins/code/code.wasm is what its sources give: sha256 $(sha256sum "$built" | cut -d' ' -f1)"
