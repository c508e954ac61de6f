package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hako-run/hako/host/component"
	"github.com/hako-run/hako/pdk/abi"
)

// MaxModuleBytes is the default limit of ReadFile: 64 MiB.
const MaxModuleBytes = 64 << 20

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

// I32 is the type of 32-bit integers.
const I32 ValueType = 0x7F

var valueTypeNames = map[ValueType]string{
	I32: "i32", 0x7E: "i64", 0x7D: "f32", 0x7C: "f64", 0x7B: "v128", 0x70: "funcref", 0x6F: "externref",
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

// ReadFile returns the bytes of the plugin file at path. Where a manifest lies beside it, NAME.yaml next to NAME.wasm,
// the bytes are those with that manifest embedded, so that packing a plugin later changes neither its digest nor a
// consent to it. A component without a manifest gets one with the name of the file and the permissions of wassette's
// policy beside it; SidePaths has the names of these files.
//
// It is an error if the file is not a regular file, if it has more than limit bytes (zero means MaxModuleBytes), or if
// there is a manifest inside and another one beside it.
func ReadFile(path string, limit int64) ([]byte, error) {
	if limit == 0 {
		limit = MaxModuleBytes
	}
	wasm, err := readRegular(path, limit)
	if err != nil {
		return nil, err
	}
	beside := SidePaths(path)[0]
	manifest, err := readRegular(beside, MaxBytes)
	if errors.Is(err, os.ErrNotExist) {
		if manifest, err = draft(path, wasm); manifest == nil && err == nil {
			return wasm, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if inside, ok := Inside(wasm); ok && !bytes.Equal(inside, manifest) {
		return nil, fmt.Errorf("%s contains a manifest that differs from the one beside it: remove %s, or embed it "+
			"with: hako plugin pack", path, beside)
	}
	if wasm, err = Embed(wasm, map[string][]byte{abi.ManifestSection: manifest}); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return wasm, nil
}

func readRegular(path string, limit int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than the %d bytes allowed: raise the limit if it is meant to", path, limit)
	}
	return data, nil
}

// openRegular opens path without waiting for a writer if it is a named pipe.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.Open(path)
}
