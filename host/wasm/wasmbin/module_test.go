package wasmbin_test

import (
	"testing"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// TestModule reads modules whose header or order of sections is wrong, and sizes in every form.
func TestModule(t *testing.T) {
	t.Parallel()
	module := func(r *wasmbin.Reader) { r.Module(func(wasmbin.Section) {}) }
	sizes := func(want wasmbin.Limits) func(*wasmbin.Reader) {
		return func(r *wasmbin.Reader) {
			if got := r.Limits(); got != want {
				t.Errorf("limits %+v, want %+v", got, want)
			}
		}
	}
	for _, test := range []struct {
		name, data string
		read       func(*wasmbin.Reader)
		want       string
	}{
		{"a module", wasmbin.Header + "\x00\x02\x01a\x05\x00\x0d\x00\x00\x01\x00\x06\x00\x0c\x00\x0a\x00\x0b\x00", module, ""},
		{"a component", "\x00asm\x0d\x00\x01\x00", module, "offset 0x0: it is not a core Wasm module of version 1"},
		{"cut off", wasmbin.Header[:7], module, "offset 0x0: it is not a core Wasm module of version 1"},
		{"twice", wasmbin.Header + "\x01\x00\x01\x00", module, "offset 0xa: section 1 is unknown, repeated or out of order"},
		{"order", wasmbin.Header + "\x0a\x00\x0c\x00", module, "offset 0xa: section 12 is unknown, repeated or out of order"},
		{"unknown", wasmbin.Header + "\x0e\x00", module, "offset 0x8: section 14 is unknown, repeated or out of order"},
		{"least", "\x00\x01", sizes(wasmbin.Limits{Min: 1}), ""},
		{"most", "\x01\x01\x02", sizes(wasmbin.Limits{Flags: wasmbin.LimitsMax, Min: 1, Max: 2}), ""},
		{"33 bits", "\x00\x80\x80\x80\x80\x10", sizes(wasmbin.Limits{}), "offset 0x1: a number has more than 32 bits"},
		{"33 bits of 64", "\x04\x80\x80\x80\x80\x10", sizes(wasmbin.Limits{Flags: wasmbin.Limits64, Min: 1 << 32}), ""},
		{"pages", "\x08\x01\x00", sizes(wasmbin.Limits{Flags: wasmbin.LimitsPageSize, Min: 1}), ""},
		{"flags", "\x10\x01", sizes(wasmbin.Limits{}), "offset 0x0: flags 0x10 of a size do not exist"},
	} {
		n, err := read([]byte(test.data), test.read)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want || err == nil && n != len(test.data) {
			t.Errorf("%s: %d bytes read, error %q, want %q", test.name, n, got, test.want)
		}
	}
}

// TestHostileModules reads modules with wrong sizes, numbers and names, one for each part of the format. Each is
// refused with an offset, and none is read beyond its end.
func TestHostileModules(t *testing.T) {
	t.Parallel()
	const most = "\xff\xff\xff\xff\x0f" // 2^32-1
	whole := func(r *wasmbin.Reader) {
		r.Module(func(s wasmbin.Section) {
			switch s.ID {
			case wasmbin.TypeSection:
				wasmbin.Vector(s.Content, "types", 1<<32-1, func() []byte { return s.Content.Bytes() })
				s.Content.Finish("the types")
			case wasmbin.MemorySection:
				for range s.Content.Count("memories", 2) {
					s.Content.Limits()
				}
				s.Content.Finish("the memories")
			case wasmbin.CodeSection:
				s.Content.Next(int(s.Content.Uint32()))
				s.Content.Signed(33)
			}
		})
	}
	for data, want := range map[string]string{
		"\x00":                                     "offset 0x9: unexpected end",
		"\x00" + most:                              "offset 0x9: unexpected end: length 4294967295, and 0 bytes are left",
		"\x00" + most + "\x01a":                    "offset 0x9: unexpected end: length 4294967295, and 2 bytes are left",
		"\x00\x80\x80\x80\x80\x80\x00":             "offset 0x9: a number has more than 32 bits",
		"\x00\xff\xff\xff\xff\x1f":                 "offset 0x9: a number has more than 32 bits",
		"\x00\x80\x80":                             "offset 0xb: unexpected end",
		"\x00\x00":                                 "offset 0xa: unexpected end",
		"\x00\x01\x01a":                            "offset 0xa: unexpected end: length 1, and 0 bytes are left",
		"\x00\x05" + most:                          "offset 0xa: unexpected end: length 4294967295, and 0 bytes are left",
		"\x00\x02\x01\xff":                         "offset 0xa: a name is not valid UTF-8",
		"\x01\x05" + most:                          "offset 0xa: unexpected end: 4294967295 types, and 0 bytes are left",
		"\x01\x07\x02" + most + "a":                "offset 0xb: unexpected end: length 4294967295, and 1 bytes are left",
		"\x01\x02\x00\x00":                         "offset 0xb: 1 bytes are left over in the types",
		"\x05\x07\x01\x00" + most:                  "",
		"\x05\x08\x01\x00\x80\x80\x80\x80\x80\x00": "offset 0xc: a number has more than 32 bits",
		"\x05\x03\x01\x01\x00":                     "offset 0xd: unexpected end",
		"\x05\x03\x01\xff\x00":                     "offset 0xb: flags 0xff of a size do not exist",
		"\x05\x04\x03\x00\x00\x00":                 "offset 0xb: more than 2 memories: at most that many are accepted",
		"\x0a\x05" + most:                          "offset 0xf: unexpected end: 0 bytes are left, and 4294967295 belong here",
		"\x0a\x07\x00\x80\x80\x80\x80\x80\x00":     "offset 0xb: a signed number has more than 33 bits",
		"\x0a\x02\x00\x80":                         "offset 0xc: unexpected end",
		"\x05\x01\x00\x01\x00":                     "offset 0xb: section 1 is unknown, repeated or out of order",
		"\x0d\x00\x05\x00":                         "offset 0xa: section 5 is unknown, repeated or out of order",
		"\xff\x00":                                 "offset 0x8: section 255 is unknown, repeated or out of order",
	} {
		data = wasmbin.Header + data
		_, err := read([]byte(data), whole)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: error %q, want %q", data[len(wasmbin.Header):], got, want)
		}
		for n := range len(data) { // it may be cut off anywhere
			if n, err := read([]byte(data)[:n:n], whole); err == nil && n > len(data) {
				t.Errorf("%q: %d bytes are read", data[:n], n)
			}
		}
	}
}

func TestSigned(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]int64{
		"\x00": 0, "\x3f": 63, "\x40": -64, "\x7f": -1, "\xff\x00": 127, "\x80\x7f": -128, "\xff\x7f": -1,
		"\x80\x80\x80\x80\x78": -1 << 31, "\xff\xff\xff\xff\x07": 1<<31 - 1,
		"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f": -1 << 63, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00": 1<<63 - 1,
	} {
		bits := 64
		if len(data) <= 5 {
			bits = 32
		}
		got := int64(0)
		n, err := read([]byte(data), func(r *wasmbin.Reader) { got = r.Signed(bits) })
		if got != want || n != len(data) || err != nil {
			t.Errorf("%q is %d of %d bytes, %v; want %d", data, got, n, err, want)
		}
	}
}
