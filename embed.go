// Package hako holds what the hako command carries with it: the sources of the PDKs, so that a new plugin need not
// fetch its PDK. The host is in package host, the PDK in package pdk.
package hako

import "embed"

// PDK holds the sources of the Go PDK and their licence, at their paths in this module.
//
//go:embed LICENSE pdk/*.go pdk/abi/*.go pdk/internal/nativeexec/*.go pdk/internal/nativehttp/*.go pdk/internal/nativesql/*.go pdk/internal/nativetools/*.go pdk/internal/updates/*.go pdk/internal/wire/*.go pdk/locale/*.go pdk/pdkexec/*.go pdk/pdkhttp/*.go pdk/pdksql/*.go pdk/pdktest/*.go pdk/pdktools/*.go
var PDK embed.FS

// OtherPDKs holds the PDKs of other languages, each in a folder of its own below pdk.
//
//go:embed pdk/c/hako.h pdk/assemblyscript/*.ts pdk/assemblyscript/testing.js pdk/js/*.js pdk/js/*.mjs pdk/wit/tool.wit pdk/zig/hako.zig pdk/rust/Cargo.toml pdk/rust/src/*.rs pdk/rust/macros/Cargo.toml pdk/rust/macros/src/*.rs
var OtherPDKs embed.FS
