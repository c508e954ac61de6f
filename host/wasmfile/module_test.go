package wasmfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/wasmtest"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// minimal is the content of a manifest, which is not parsed here.
const minimal = "name: minimal\n"

func TestRead(t *testing.T) {
	t.Parallel()
	wasm := wasmtest.Plugin([][]byte{
		wasmtest.Imported("hako:core/1", "take", 0, 2),
		wasmtest.Imported("wasi_snapshot_preview1", "fd_write", 0, 1),
	}, wasmtest.Custom("name", "x"), wasmtest.Custom(abi.ManifestSection, minimal), wasmtest.Custom(abi.RecordingsSection, "[]"))
	m, err := wasmfile.Read(wasm)
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
	if m.Memory == nil || *m.Memory != (wasmfile.Memory{Min: 2}) {
		t.Errorf("memory: %v", m.Memory)
	}
	if string(m.Manifest) != minimal || string(m.Recordings) != "[]" {
		t.Errorf("custom sections: %q, %q", m.Manifest, m.Recordings)
	}
	if recordings, err := wasmfile.Recordings(wasm); err != nil || string(recordings) != "[]" {
		t.Errorf("recordings: %q, %v", recordings, err)
	}
	if recordings, err := wasmfile.Recordings(wasm[:len(wasm)-1]); err == nil {
		t.Errorf("recordings of half a file: %q", recordings)
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
			_, err := wasmfile.Read([]byte(c.file))
			if !errors.Is(err, wasmfile.ErrNotModule) || !strings.Contains(err.Error(), c.want) {
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
		{"section beyond the end", wasmtest.Module([]byte{1, 0x20, 0}), "offset 0x9: unexpected end: length 32, and 1 bytes are left"},
		{"huge section", wasmtest.Module(append([]byte{1}, huge...)), "offset 0x9: unexpected end: length 4294967295"},
		{"number too long", wasmtest.Module([]byte{1, 0x80, 0x80, 0x80, 0x80, 0x80, 0}), "more than 32 bits"},
		{"number too large", wasmtest.Module([]byte{1, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F}), "more than 32 bits"},
		{"huge vector", wasmtest.Module(append([]byte{1, 5}, huge...)), "offset 0xa: unexpected end: 4294967295 types"},
		{"too many entries", wasmtest.Module(append([]byte{3}, wasmtest.Sized(append(wasmtest.Number(500_001), make([]byte, 500_001)...))...)),
			"more than 500000 functions"},
		{"vector beyond the section", wasmtest.Module([]byte{3, 1, 5}), "offset 0xa: unexpected end: 5 functions"},
		{"more than its entries", wasmtest.Module([]byte{1, 2, 0, 0}), "offset 0xb: 1 bytes are left over in the section of types"},
		{"unknown section", wasmtest.Module([]byte{99, 0}), "offset 0x8: section 99 is unknown"},
		{"repeated section", wasmtest.Module(wasmtest.Memory, wasmtest.Memory), "unknown, repeated or out of order"},
		{"out of order", wasmtest.Module(wasmtest.Memory, wasmtest.Types), "unknown, repeated or out of order"},
		{"custom section without name", wasmtest.Module([]byte{0, 1, 9}), "offset 0xa: unexpected end: length 9"},
		{"name not UTF-8", wasmtest.Module(wasmtest.Custom("\xff", "")), "not valid UTF-8"},
		{"unknown type", wasmtest.Module(wasmtest.Section(3, []byte{7})), "function 0 has the unknown type 7"},
		{"unknown function", wasmtest.Module(wasmtest.Section(7, wasmtest.Named("f", 0, 3))), "export f is the unknown function 3"},
		{"two manifests", wasmtest.Module(wasmtest.Custom(abi.ManifestSection, "a"), wasmtest.Custom(abi.ManifestSection, "a")),
			"hako:manifest occurs twice"},
		{"two recordings", wasmtest.Module(wasmtest.Custom(abi.RecordingsSection, ""), wasmtest.Custom(abi.RecordingsSection, "")),
			"hako:recordings occurs twice"},
		{"GC type", wasmtest.Module(wasmtest.Section(1, []byte{0x5F, 0})), "without the GC proposal"},
		{"GC value", wasmtest.Module(wasmtest.Section(1, []byte{0x60, 1, 0x64, 0})), "a value of type 0x64"},
		{"64-bit memory", wasmtest.Module(wasmtest.Section(5, []byte{4, 1})), "build for wasm32"},
		{"shared memory", wasmtest.Module(wasmtest.Section(5, []byte{3, 1, 1})), "without threads"},
		{"two memories", wasmtest.Module(wasmtest.Section(5, []byte{0, 1}, []byte{0, 1})), "several memories"},
		{"imported and own memory", wasmtest.Module(wasmtest.Section(2, wasmtest.Imported("env", "m", 2, 0, 1)), wasmtest.Memory), "several memories"},
		{"tag", wasmtest.Module(wasmtest.Section(2, wasmtest.Imported("env", "t", 4, 0, 0))), "without the exceptions proposal"},
		{"exported tag", wasmtest.Module(wasmtest.Section(7, wasmtest.Named("t", 4, 0))), "without the exceptions proposal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := wasmfile.Read(c.wasm); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestReadCutOff checks that every proper prefix of a module either ends between two sections or is refused.
func TestReadCutOff(t *testing.T) {
	t.Parallel()
	whole := wasmtest.Plugin([][]byte{wasmtest.Imported("env", "table", 1, 0x70, 1, 2, 9), wasmtest.Imported("env", "global", 3, 0x7F, 0)},
		wasmtest.Custom("name", "x"))
	boundaries := 0
	for n := range whole {
		if _, err := wasmfile.Read(whole[:n]); err == nil {
			boundaries++
		}
	}
	if boundaries != 6 {
		t.Errorf("%d prefixes are accepted; the module has 6 boundaries before its end", boundaries)
	}
}

func TestEmbed(t *testing.T) {
	t.Parallel()
	plain := wasmtest.Plugin(nil, wasmtest.Custom("name", "x"))
	embed := func(wasm []byte, sections map[string][]byte) []byte {
		t.Helper()
		out, err := wasmfile.Embed(wasm, sections)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	large := bytes.Repeat([]byte("x"), 300)
	once := embed(plain, map[string][]byte{abi.ManifestSection: []byte(minimal), abi.RecordingsSection: large})
	m, err := wasmfile.Read(once)
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
	twice := wasmtest.Module(wasmtest.Custom(abi.ManifestSection, "a"), wasmtest.Custom(abi.ManifestSection, "b"))
	if got := embed(twice, map[string][]byte{abi.ManifestSection: []byte("c")}); !bytes.Equal(got, wasmtest.Module(wasmtest.Custom(abi.ManifestSection, "c"))) {
		t.Errorf("a repeated section: got %q", got)
	}
	if _, err := wasmfile.Embed([]byte("hello"), nil); !errors.Is(err, wasmfile.ErrNotModule) {
		t.Errorf("not a module: got %v", err)
	}
	if _, err := wasmfile.Embed(wasmtest.Module([]byte{0, 9}), nil); err == nil {
		t.Error("a malformed module is accepted")
	}
}
