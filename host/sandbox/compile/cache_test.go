package compile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/sandbox/compile"
)

// large returns a module like answer, behind 400 functions that make about 200 KiB of code.
func large() []byte {
	const functions = 400
	vector := func(items [][]byte) []byte {
		return append(binary.AppendUvarint(nil, uint64(len(items))), bytes.Join(items, nil)...)
	}
	sized := func(data []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(data))), data...) }
	section := func(id byte, data []byte) []byte { return append([]byte{id}, sized(data)...) }
	types, bodies := [][]byte{}, [][]byte{}
	for i := range functions {
		body := []byte{0, 0x20, 0} // no locals; local.get 0
		for range 50 {
			body = append(body, 0x20, 0, 0x41, byte(i%64), 0x6c, 0x6a) // local.get 0; i32.const; i32.mul; i32.add
		}
		types, bodies = append(types, []byte{1}), append(bodies, sized(append(body, 0x0b)))
	}
	types, bodies = append(types, []byte{0}), append(bodies, []byte("\x04\x00\x41\x2a\x0b"))
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte("\x02\x60\x00\x01\x7f\x60\x01\x7f\x01\x7f")),
		section(3, vector(types)),
		section(7, append([]byte("\x01\x01f\x00"), binary.AppendUvarint(nil, functions)...)),
		section(10, vector(bodies)),
	}, nil)
}

const largeFunctions = 401

// checkAnswer checks that the large module in the cache at dir returns 42.
func checkAnswer(t *testing.T, dir string) {
	t.Helper()
	r := runtimeAt(t, dir)
	module, err := compile.Load(t.Context(), r, stub(t, large()))
	if err != nil {
		t.Fatal(err)
	}
	defer module.Close(t.Context())
	instance, err := r.InstantiateModule(t.Context(), module, wazero.NewModuleConfig())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := instance.ExportedFunction("f").Call(t.Context()); err != nil || got[0] != 42 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestHostileMappedCode damages a file whose code is mapped. It also loads one without a prefix, as wazero writes them.
func TestHostileMappedCode(t *testing.T) {
	t.Parallel()
	origin := t.TempDir()
	path, err := new(compile.Compiler).Compile(t.Context(), origin, large(), stub(t, large()), largeFunctions)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(at int, value byte) []byte {
		file := bytes.Clone(file)
		file[at] = value
		return file
	}
	wazeros := bytes.Index(file, []byte("WAZEVO"))
	code := wazeros + 7 + int(file[wazeros+6]) + 4 + 8*largeFunctions + 8
	if wazeros <= 0 || code%os.Getpagesize() != 0 {
		t.Fatalf("the prefix has %d bytes, the code begins at %d", wazeros, code)
	}
	for name, test := range map[string]struct {
		file []byte
		want string
	}{
		"as wazero writes it":        {file[wazeros:], ""},
		"not at a page":              {append([]byte("HAKOCODE\x0d\x00\x00\x00\x00"), file[wazeros:]...), ""},
		"a byte of the code":         {changed(code+100_000, file[code+100_000]+1), "checksum of the code"},
		"the last byte of the code":  {changed(len(file)-10, file[len(file)-10]+1), "checksum of the code"},
		"the checksum":               {changed(len(file)-7, file[len(file)-7]+1), "checksum of the code"},
		"the code ends early":        {file[:len(file)-10_000], "shorter than its code"},
		"half a GB of code":          {changed(code-5, 0x20), "shorter than its code"},
		"nothing after the code":     {file[:len(file)-9], "checksum"},
		"a prefix of four GB":        {changed(11, 0xff), "prefix"},
		"a prefix longer than it is": {changed(10, 1), "invalid magic number"},
		"a prefix of one byte":       {append([]byte("HAKOCODE\x01\x00\x00\x00"), file[12:]...), "prefix"},
		"a prefix and nothing else":  {file[:wazeros], "reading header"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			copied := filepath.Join(dir, filepath.Base(filepath.Dir(path)), filepath.Base(path))
			err := errors.Join(os.Mkdir(filepath.Dir(copied), 0o700), os.WriteFile(copied, test.file, 0o600))
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" {
				checkAnswer(t, dir)
				return
			}
			_, err = compile.Load(t.Context(), runtimeAt(t, dir), stub(t, large()))
			if !errors.Is(err, compile.ErrNotCached) || !strings.Contains(err.Error(), test.want) {
				t.Error(err)
			}
		})
	}
}
