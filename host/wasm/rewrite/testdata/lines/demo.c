// clang --target=wasm32-wasi -gdwarf-4 -O1 -nostdlib -Wl,--no-entry -fdebug-compilation-dir=/src/demo -o dwarf4.wasm demo.c
// and the same with -gdwarf-5 and dwarf5.wasm.
#include "lib/divide.h"

__attribute__((import_module("env"), import_name("note"))) void note(int);

__attribute__((export_name("run"))) int run(int a, int b) {
	note(a);
	return divide(a, b) + 1;
}
