#!/bin/sh
# Builds code.wasm from engine.c, prelude.js and QuickJS-ng, whose C sources are in a crate:
#
#	plugins/code/build.sh [OUTPUT]
#
# It needs clang with lld, wasi-libc and the compiler's runtime for wasm32, as Debian has them, curl and tar. The same
# versions give the same bytes; the README has those of the committed file.
set -eu
crate=rquickjs-sys-0.14.0
digest=cee271d0eeba64f0915b846cb7ae02e16faf3dfdffdca91731101d9d30fe3423
here=$(cd "$(dirname "$0")" && pwd)
output=${1:-$here/code.wasm}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

curl -sSfL --retry 5 -o "$work/crate" "https://static.crates.io/crates/rquickjs-sys/$crate.crate"
echo "$digest  $work/crate" | sha256sum --check --quiet
tar xzf "$work/crate" -C "$work"
{
	echo 'static const unsigned char prelude_js[] = {'
	od -An -v -tx1 "$here/prelude.js" | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'
	echo '0};' # JS_Eval wants a NUL at the end
	echo 'enum { prelude_js_len = sizeof prelude_js - 1 };'
} >"$work/prelude.h"
cp "$here/engine.c" "$work/engine.c"
cd "$work"
quickjs=$crate/quickjs
# QuickJS does not check its stack on WASI. Here the stack is in linear memory, where the check works.
sed -i '/^static void update_stack_limit/,/^}/s/defined(__wasi__)/0/' "$quickjs/quickjs.c"
clang --target=wasm32-wasi --sysroot=/usr -mexec-model=reactor -Os -DNDEBUG -D_GNU_SOURCE -D_WASI_EMULATED_SIGNAL \
	-Wno-everything -I"$quickjs" -I. \
	engine.c "$quickjs/quickjs.c" "$quickjs/libregexp.c" "$quickjs/libunicode.c" "$quickjs/dtoa.c" \
	-lwasi-emulated-signal -Wl,-z,stack-size=1048576 -Wl,--stack-first -Wl,--strip-all -Wl,--gc-sections -o "$output"
