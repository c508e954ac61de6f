package wasmbin_test

import (
	"testing"

	"github.com/hako-run/hako/host/internal/wasmbin"
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
