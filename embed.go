// Package hako holds what the hako command carries with it: the sources of the Go PDK, so that a new plugin builds
// without a network. The host is in package host, the PDK in package pdk.
package hako

import "embed"

// PDK holds the sources of the Go PDK and their licence, at their paths in this module.
//
//go:embed LICENSE pdk/*.go pdk/abi/*.go pdk/internal/nativeexec/*.go pdk/internal/nativesql/*.go pdk/internal/updates/*.go pdk/internal/wire/*.go pdk/locale/*.go pdk/pdkexec/*.go pdk/pdkhttp/*.go pdk/pdksql/*.go pdk/pdktest/*.go
var PDK embed.FS
