// Package wasmfile reads what the Wasm of a plugin file says of it, without compiling or running any of its code.
//
// Read returns a Module: imports, exports, memory, the digest and hako's custom sections, of a core module or of a
// component. Its methods find out which ABI the plugin is made for. Embed changes custom sections. Package manifest
// reads the manifest among them and checks that it asks for what the module imports.
//
// Everything here reads untrusted bytes. All functions and methods may be called concurrently, on a Module that nobody
// changes.
package wasmfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/wasmbin"
	"github.com/hako-run/hako/internal/lazyregexp"
)

// Module describes a plugin file, without running its code.
type Module struct {
	// Digest is the SHA-256 of the file, "sha256:" and 64 hexadecimal digits.
	Digest string
	// Imports and Exports of a component are functions without a type. Import.Module is then the interface, and
	// Export.Name has the form "interface#function", or is the function's name.
	Imports []Import
	Exports []Export
	// Component is the component, nil for a core module. It keeps the file's bytes.
	Component *component.Component `json:"-"`
	// Memory is the module's linear memory, imported or its own. Nil if it has none.
	Memory *Memory
	// Manifest and Recordings are the custom sections of these names. Nil if there is none; they point into the file's
	// bytes.
	Manifest   []byte
	Recordings []byte
}

// Import is one import of a module.
type Import struct {
	Module, Name string
	Kind         Kind
	// Type is the function's type. Nil for other kinds.
	Type *FuncType
}

// Export is one export of a module.
type Export struct {
	Name string
	Kind Kind
	// Type is the function's type. Nil for other kinds.
	Type *FuncType
}

// Kind is the kind of an import or export.
type Kind byte

// Kinds of imports and exports, as the binary format numbers them.
const (
	KindFunc Kind = iota
	KindTable
	KindMemory
	KindGlobal
)

// String returns the kind's name in the text format.
func (k Kind) String() string {
	return [...]string{"func", "table", "memory", "global"}[k]
}

// FuncType is the type of a function.
type FuncType struct {
	Params, Results []ValueType
}

// String returns the type as "(i32) -> (i32)".
func (t FuncType) String() string { return valueTypes(t.Params) + " -> " + valueTypes(t.Results) }

// ValueType is a type of values, as the binary format numbers it.
type ValueType byte

// Types of numbers.
const (
	I32 ValueType = wasmbin.I32
	I64 ValueType = wasmbin.I64
	F64 ValueType = wasmbin.F64
)

var valueTypeNames = map[ValueType]string{
	I32: "i32", I64: "i64", wasmbin.F32: "f32", F64: "f64", wasmbin.V128: "v128", wasmbin.FuncRef: "funcref",
	wasmbin.ExternRef: "externref",
}

// String returns the type's name in the text format.
func (t ValueType) String() string { return valueTypeNames[t] }

func valueTypes(list []ValueType) string {
	s := ""
	for i, t := range list {
		if i > 0 {
			s += ", "
		}
		s += t.String()
	}
	return "(" + s + ")"
}

// Memory is the size of a linear memory in pages of 64 KiB.
type Memory struct {
	Min uint32
	// Max is the most it may grow to, if HasMax.
	Max    uint32
	HasMax bool
}

// ErrNotModule is the error for a file that is neither a core Wasm module nor a component.
var ErrNotModule = errors.New("not a Wasm module")

// Read reads a plugin file without running or compiling it.
//
// It is an error matching ErrNotModule if the bytes are something else (the text says what they look like), and another
// error if the module is cut off or malformed in the sections that are read, has one of hako's custom sections twice,
// or needs a 64-bit or shared memory, several memories, garbage-collected types or exceptions, none of which hako runs,
// or passes one of the limits that bound what it costs to read and to interpret. The same holds for the core modules of
// a component, which component.Decode validates. The types of the code are not checked; the runtime does that.
func Read(wasm []byte) (*Module, error) {
	err := checkHeader(wasm)
	m := &moduleReader{}
	switch {
	case err != nil:
	case component.IsComponent(wasm):
		err = m.readComponent(wasm)
	default:
		err = m.readCore(wasm)
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(wasm)
	m.module.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return &m.module, nil
}

var digest = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)

// ValidDigest reports whether text has the form of Module.Digest.
func ValidDigest(text string) bool { return digest().MatchString(text) }

// ImportsFrom reports whether the module imports anything from the import module or the interface, without its version.
func (m *Module) ImportsFrom(name string) bool {
	return slices.ContainsFunc(m.Imports, func(i Import) bool {
		module, _, _ := strings.Cut(i.Module, "@")
		return module == name
	})
}
