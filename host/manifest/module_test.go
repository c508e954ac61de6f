package manifest_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

var wasmHeader = []byte("\x00asm\x01\x00\x00\x00")

// wasm joins a header and sections.
func wasm(sections ...[]byte) []byte {
	return slices.Concat(wasmHeader, slices.Concat(sections...))
}

func uleb(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func sized(b []byte) []byte { return append(uleb(len(b)), b...) }

func section(id byte, entries ...[]byte) []byte {
	content := append(uleb(len(entries)), slices.Concat(entries...)...)
	return append([]byte{id}, sized(content)...)
}

func custom(name, content string) []byte {
	return append([]byte{0}, sized(append(sized([]byte(name)), content...))...)
}

func named(name string, rest ...byte) []byte { return append(sized([]byte(name)), rest...) }

func imported(module, name string, rest ...byte) []byte {
	return append(sized([]byte(module)), named(name, rest...)...)
}

var (
	// types are () -> (), (i32) -> i32, (i32) -> (), (i32, i32, i32, i32) -> i32 and (i64) -> i64.
	types = section(1, []byte{0x60, 0, 0}, []byte{0x60, 1, 0x7F, 1, 0x7F}, []byte{0x60, 1, 0x7F, 0},
		[]byte{0x60, 4, 0x7F, 0x7F, 0x7F, 0x7F, 1, 0x7F}, []byte{0x60, 1, 0x7E, 1, 0x7E})
	memory = section(5, []byte{0, 2})
)

// plugin is a module with the exports of ABI 1, the imports given and the custom sections given.
func plugin(imports [][]byte, customs ...[]byte) []byte {
	functions := byte(0)
	for _, i := range imports {
		if i[len(i)-2] == 0 {
			functions++
		}
	}
	parts := [][]byte{
		types, section(2, imports...), section(3, []byte{0}, []byte{1}), memory,
		section(7, named("memory", 2, 0), named("hako_abi_1", 0, functions), named("hako_call", 0, functions+1),
			named("_initialize", 0, functions)),
	}
	return wasm(append(parts, customs...)...)
}

func TestRead(t *testing.T) {
	t.Parallel()
	m, err := manifest.Read(plugin([][]byte{
		imported("hako:core/1", "take", 0, 2),
		imported("wasi_snapshot_preview1", "fd_write", 0, 1),
	}, custom("name", "x"), custom(abi.ManifestSection, minimal), custom(abi.RecordingsSection, "[]")))
	if err != nil {
		t.Fatal(err)
	}
	var imports []string
	for _, i := range m.Imports {
		imports = append(imports, fmt.Sprint(i.Module, " ", i.Name, " ", i.Kind, " ", i.Type))
	}
	want := []string{"hako:core/1 take func (i32) -> ()", "wasi_snapshot_preview1 fd_write func (i32) -> (i32)"}
	if !slices.Equal(imports, want) {
		t.Errorf("imports: %q", imports)
	}
	var exports []string
	for _, e := range m.Exports {
		text := e.Kind.String() + " " + e.Name
		if e.Type != nil {
			text += " " + e.Type.String()
		}
		exports = append(exports, text)
	}
	if got, want := strings.Join(exports, ", "), "memory memory, func hako_abi_1 () -> (), func hako_call (i32) -> (i32), func _initialize () -> ()"; got != want {
		t.Errorf("exports: got %s, want %s", got, want)
	}
	if m.Memory == nil || *m.Memory != (manifest.Memory{Min: 2}) {
		t.Errorf("memory: %v", m.Memory)
	}
	if string(m.Manifest) != minimal || string(m.Recordings) != "[]" {
		t.Errorf("custom sections: %q, %q", m.Manifest, m.Recordings)
	}
	if len(m.Digest) != len("sha256:")+64 || !strings.HasPrefix(m.Digest, "sha256:") {
		t.Errorf("digest: %s", m.Digest)
	}
	if version, err := m.ABI(); version != 1 || err != nil {
		t.Errorf("ABI: %d, %v", version, err)
	}
}

func TestReadRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, want string }{
		{"empty", "", "the file is empty"},
		{"cut header", "\x00asm\x01", "ends within the header"},
		{"other version", "\x00asm\x02\x00\x00\x00", "version is 02000000"},
		{"WAT", "\n(module\n)", "it is the text format: convert it with wat2wasm"},
		{"WAT with comment", ";; hi\n(module)", "it is the text format"},
		{"HTML", "<!DOCTYPE html><html>404</html>", "it is an HTML page"},
		{"gzip", "\x1f\x8b\x08\x00", "compressed with gzip"},
		{"zstd", "\x28\xb5\x2f\xfd\x00", "compressed with zstd"},
		{"zip", "PK\x03\x04", "a zip archive"},
		{"ELF", "\x7fELF\x02\x01", "a native program"},
		{"text", "hello", `does not start with "\0asm"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := manifest.Read([]byte(c.file))
			if !errors.Is(err, manifest.ErrNotModule) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestReadRefusesMalformedModules(t *testing.T) {
	t.Parallel()
	huge := []byte{0xFF, 0xFF, 0xFF, 0xFF, 0x0F}
	for _, c := range []struct {
		name string
		wasm []byte
		want string
	}{
		{"section beyond the end", wasm([]byte{1, 0x20, 0}), "offset 0x9: unexpected end: length 32, and 1 bytes are left"},
		{"huge section", wasm(append([]byte{1}, huge...)), "offset 0x9: unexpected end: length 4294967295"},
		{"number too long", wasm([]byte{1, 0x80, 0x80, 0x80, 0x80, 0x80, 0}), "more than 32 bits"},
		{"number too large", wasm([]byte{1, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F}), "more than 32 bits"},
		{"huge vector", wasm(append([]byte{1, 5}, huge...)), "offset 0xa: unexpected end: 4294967295 types"},
		{"too many entries", wasm(append([]byte{3}, sized(append(uleb(500_001), make([]byte, 500_001)...))...)),
			"more than 500000 functions"},
		{"vector beyond the section", wasm([]byte{3, 1, 5}), "offset 0xa: unexpected end: 5 functions"},
		{"more than its entries", wasm([]byte{1, 2, 0, 0}), "offset 0xb: 1 bytes are left over in the section of types"},
		{"unknown section", wasm([]byte{99, 0}), "offset 0x8: section 99 is unknown"},
		{"repeated section", wasm(memory, memory), "unknown, repeated or out of order"},
		{"out of order", wasm(memory, types), "unknown, repeated or out of order"},
		{"custom section without name", wasm([]byte{0, 1, 9}), "offset 0xa: unexpected end: length 9"},
		{"name not UTF-8", wasm(custom("\xff", "")), "not valid UTF-8"},
		{"unknown type", wasm(section(3, []byte{7})), "function 0 has the unknown type 7"},
		{"unknown function", wasm(section(7, named("f", 0, 3))), "export f is the unknown function 3"},
		{"two manifests", wasm(custom(abi.ManifestSection, "a"), custom(abi.ManifestSection, "a")),
			"hako:manifest occurs twice"},
		{"two recordings", wasm(custom(abi.RecordingsSection, ""), custom(abi.RecordingsSection, "")),
			"hako:recordings occurs twice"},
		{"GC type", wasm(section(1, []byte{0x5F, 0})), "without the GC proposal"},
		{"GC value", wasm(section(1, []byte{0x60, 1, 0x64, 0})), "a value of type 0x64"},
		{"64-bit memory", wasm(section(5, []byte{4, 1})), "build for wasm32"},
		{"shared memory", wasm(section(5, []byte{3, 1, 1})), "without threads"},
		{"two memories", wasm(section(5, []byte{0, 1}, []byte{0, 1})), "several memories"},
		{"imported and own memory", wasm(section(2, imported("env", "m", 2, 0, 1)), memory), "several memories"},
		{"tag", wasm(section(2, imported("env", "t", 4, 0, 0))), "without the exceptions proposal"},
		{"exported tag", wasm(section(7, named("t", 4, 0))), "without the exceptions proposal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := manifest.Read(c.wasm); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestReadCutOff checks that every proper prefix of a module either ends between two sections or is refused.
func TestReadCutOff(t *testing.T) {
	t.Parallel()
	whole := plugin([][]byte{imported("env", "table", 1, 0x70, 1, 2, 9), imported("env", "global", 3, 0x7F, 0)},
		custom("name", "x"))
	boundaries := 0
	for n := range whole {
		if _, err := manifest.Read(whole[:n]); err == nil {
			boundaries++
		}
	}
	if boundaries != 6 {
		t.Errorf("%d prefixes are accepted; the module has 6 boundaries before its end", boundaries)
	}
}

func TestEmbed(t *testing.T) {
	t.Parallel()
	plain := plugin(nil, custom("name", "x"))
	embed := func(wasm []byte, sections map[string][]byte) []byte {
		t.Helper()
		out, err := manifest.Embed(wasm, sections)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	large := bytes.Repeat([]byte("x"), 300)
	once := embed(plain, map[string][]byte{abi.ManifestSection: []byte(minimal), abi.RecordingsSection: large})
	m, err := manifest.Read(once)
	if err != nil || string(m.Manifest) != minimal || !bytes.Equal(m.Recordings, large) {
		t.Fatalf("got %v, %v", m, err)
	}
	if !bytes.HasPrefix(once, plain) {
		t.Error("the rest of the module changed")
	}
	if again := embed(once, map[string][]byte{abi.ManifestSection: []byte(minimal), abi.RecordingsSection: large}); !bytes.Equal(again, once) {
		t.Error("embedding again changed the module")
	}
	if removed := embed(once, map[string][]byte{abi.ManifestSection: nil, abi.RecordingsSection: nil}); !bytes.Equal(removed, plain) {
		t.Error("removing the sections does not give the module back")
	}
	twice := wasm(custom(abi.ManifestSection, "a"), custom(abi.ManifestSection, "b"))
	if got := embed(twice, map[string][]byte{abi.ManifestSection: []byte("c")}); !bytes.Equal(got, wasm(custom(abi.ManifestSection, "c"))) {
		t.Errorf("a repeated section: got %q", got)
	}
	if _, err := manifest.Embed([]byte("hello"), nil); !errors.Is(err, manifest.ErrNotModule) {
		t.Errorf("not a module: got %v", err)
	}
	if _, err := manifest.Embed(wasm([]byte{0, 9}), nil); err == nil {
		t.Error("a malformed module is accepted")
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := plugin(nil)
	packed, err := manifest.Embed(plain, map[string][]byte{abi.ManifestSection: []byte(minimal)})
	if err != nil {
		t.Fatal(err)
	}
	write("beside.yaml", []byte(minimal))
	write("both.yaml", []byte(minimal))
	write("differ.yaml", []byte("name: other\n"))
	write("huge.yaml", make([]byte, manifest.MaxBytes+1))
	for _, c := range []struct {
		name  string
		path  string
		limit int64
		want  []byte
		err   string
	}{
		{"packed", write("packed.wasm", packed), 0, packed, ""},
		{"beside", write("beside.wasm", plain), 0, packed, ""},
		{"both", write("both.wasm", packed), 0, packed, ""},
		{"both differ", write("differ.wasm", packed), 0, nil, "contains a manifest that differs from the one beside it"},
		{"neither", write("neither.wasm", plain), 0, plain, ""},
		{"at the limit", write("limit.wasm", plain), int64(len(plain)), plain, ""},
		{"beyond the limit", write("beyond.wasm", plain), int64(len(plain)) - 1, nil, "bytes allowed: raise the limit"},
		{"huge manifest", write("huge.wasm", plain), 0, nil, "huge.yaml has more than the 1048576 bytes allowed"},
		{"missing", filepath.Join(dir, "missing.wasm"), 0, nil, "no such file"},
		{"folder", dir, 0, nil, "is not a regular file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := manifest.ReadFile(c.path, c.limit)
			if !bytes.Equal(got, c.want) {
				t.Errorf("got %d bytes, want %d", len(got), len(c.want))
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %v, want %s", err, c.err)
			}
		})
	}
}

func TestABI(t *testing.T) {
	t.Parallel()
	exports := func(entries ...[]byte) []byte {
		return wasm(types, section(3, []byte{0}, []byte{1}), memory, section(7, entries...))
	}
	mem, call := named("memory", 2, 0), named("hako_call", 0, 1)
	for _, c := range []struct {
		name string
		wasm []byte
		want string
	}{
		{"several versions", exports(mem, call, named("hako_abi_1", 0, 0), named("hako_abi_7", 0, 0)), ""},
		{"future", exports(mem, call, named("hako_abi_7", 0, 0)),
			"built for ABI 7, and this host speaks ABI 1: update the host"},
		{"past", exports(mem, call, named("hako_abi_0", 0, 0)),
			"built for ABI 0, and this host speaks ABI 1: rebuild the plugin with a newer PDK"},
		{"odd marker", exports(mem, call, named("hako_abi_1x", 0, 0)), "exports no hako_abi_1"},
		{"command", exports(mem, named("_start", 0, 0)),
			"is a command (it exports _start), not a plugin: build it as a library"},
		{"no entry", exports(mem, named("hako_abi_1", 0, 0)), "must export the function hako_call (i32) -> (i32)"},
		{"entry of another type", exports(mem, named("hako_abi_1", 0, 0), named("hako_call", 0, 0)),
			"exports the function hako_call () -> (); ABI 1 wants (i32) -> (i32)"},
		{"marker of another type", exports(mem, call, named("hako_abi_1", 0, 1)),
			"exports the function hako_abi_1 (i32) -> (i32)"},
		{"initialize of another type", exports(mem, call, named("hako_abi_1", 0, 0), named("_initialize", 0, 1)),
			"exports the function _initialize"},
		{"no memory", exports(call, named("hako_abi_1", 0, 0)), "must export its memory"},
		{"Extism by import", wasm(types, section(2, imported("extism:host/env", "length", 0, 0))),
			"speaks the Extism ABI"},
		{"Extism by export", exports(mem, named("describe", 0, 0), named("call", 0, 1)), "speaks the Extism ABI"},
		{"nothing", wasm(), "exports no hako_abi_1: build it with a hako PDK"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := manifest.Read(c.wasm)
			if err != nil {
				t.Fatal(err)
			}
			version, err := m.ABI()
			switch {
			case c.want == "" && (version != 1 || err != nil):
				t.Errorf("got %d, %v", version, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			case errors.Is(err, manifest.ErrExtism) != strings.HasPrefix(c.name, "Extism"):
				t.Errorf("matches ErrExtism: %v", err)
			}
		})
	}
}

func TestCheckImports(t *testing.T) {
	t.Parallel()
	http := manifest.Permissions{HTTP: []manifest.HTTPPermission{{Name: "a"}}}
	for _, c := range []struct {
		name        string
		imports     [][]byte
		permissions manifest.Permissions
		want        string
	}{
		{"core and WASI", [][]byte{imported("hako:core/1", "take", 0, 2), imported("wasi_snapshot_preview1", "fd_read",
			0, 3)}, manifest.Permissions{}, ""},
		{"http with permission", [][]byte{imported("hako:http/1", "request", 0, 3)}, http, ""},
		{"http without permission", [][]byte{imported("hako:http/1", "request", 0, 3),
			imported("hako:http/1", "read", 0, 0)}, manifest.Permissions{},
			`the module imports "hako:http/1", but the manifest does not ask for the permission "http" that links it: add it under permissions, or remove what uses it`},
		{"future version", [][]byte{imported("hako:http/2", "request", 0, 0)}, http,
			`imports version "2" of "hako:http", and this host has version 1`},
		{"unknown hako module", [][]byte{imported("hako:gpio/1", "set", 0, 0)}, http,
			`unknown import module "hako:gpio/1": known are hako:core/1, hako:exec/1, hako:http/1, hako:sql/1, hako:tools/1, wasi_snapshot_preview1`},
		{"browser", [][]byte{imported("gojs", "run", 0, 0)}, http,
			"build for WASI preview 1 (wasip1), not for a browser"},
		{"memory", [][]byte{imported("hako:core/1", "memory", 2, 0, 1)}, http,
			`imports the memory "memory" from "hako:core/1", which has functions only`},
		{"two", [][]byte{imported("env", "f", 0, 0), imported("sys", "f", 0, 0)}, http, `unknown import module "sys"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := manifest.Read(wasm(types, section(2, c.imports...)))
			if err != nil {
				t.Fatal(err)
			}
			err = m.CheckImports(c.permissions)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if err != nil && strings.Count(err.Error(), "\n") > 1 {
				t.Errorf("the same import is reported more than once: %v", err)
			}
		})
	}
}
