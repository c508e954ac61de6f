package wasmbin_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// read calls f with a Reader of data, and returns the error and the number of bytes that are read.
func read(data []byte, f func(*wasmbin.Reader)) (n int, err error) {
	defer wasmbin.Catch(&err)
	r := wasmbin.New(data, 10)
	f(r)
	return r.Pos, nil
}

// TestNumbers tries the limits of LEB128: at most as many bytes as the bits need, without bits besides in the last one.
func TestNumbers(t *testing.T) {
	t.Parallel()
	u32 := func(r *wasmbin.Reader) { r.Uint32() }
	u64 := func(r *wasmbin.Reader) { r.Uint64() }
	signed := func(bits int) func(*wasmbin.Reader) { return func(r *wasmbin.Reader) { r.Signed(bits) } }
	const nine = "\xff\xff\xff\xff\xff\xff\xff\xff\xff"
	for _, test := range []struct {
		name, data string
		read       func(*wasmbin.Reader)
		want       string
	}{
		{"largest u32", "\xff\xff\xff\xff\x0f", u32, ""},
		{"padded u32", "\x80\x80\x80\x80\x00", u32, ""},
		{"u32 with a bit more", "\xff\xff\xff\xff\x1f", u32, "offset 0x0: a number has more than 32 bits"},
		{"u32 of 6 bytes", "\x80\x80\x80\x80\x80\x00", u32, "offset 0x0: a number has more than 32 bits"},
		{"u32 cut off", "\x80\x80", u32, "offset 0x2: unexpected end"},
		{"largest u64", nine + "\x01", u64, ""},
		{"u64 with a bit more", nine + "\x02", u64, "offset 0x0: a number has more than 64 bits"},
		{"u64 of 11 bytes", nine + "\x80\x00", u64, "offset 0x0: a number has more than 64 bits"},
		{"least s32", "\x80\x80\x80\x80\x78", signed(32), ""},
		{"largest s32", "\xff\xff\xff\xff\x07", signed(32), ""},
		{"s32 with another sign", "\xff\xff\xff\xff\x0f", signed(32), "offset 0x0: a signed number has more than 32 bits"},
		{"s32 of 6 bytes", "\xff\xff\xff\xff\xff\x7f", signed(32), "offset 0x0: a signed number has more than 32 bits"},
		{"least s33", "\x80\x80\x80\x80\x70", signed(33), ""},
		{"s33 with another sign", "\x80\x80\x80\x80\x10", signed(33), "offset 0x0: a signed number has more than 33 bits"},
		{"least s64", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", signed(64), ""},
		{"s64 with another sign", nine + "\x01", signed(64), "offset 0x0: a signed number has more than 64 bits"},
		{"s64 cut off", "\xff", signed(64), "offset 0x1: unexpected end"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n, err := read([]byte(test.data), test.read)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.want || err == nil && n != len(test.data) {
				t.Errorf("%d bytes read, error %q, want %q", n, got, test.want)
			}
		})
	}
}

// TestParts reads names, vectors and sections that are longer than allowed, or than what is there.
func TestParts(t *testing.T) {
	t.Parallel()
	name := func(r *wasmbin.Reader) { _ = r.Name() }
	list := func(r *wasmbin.Reader) { wasmbin.Vector(r, "bytes", 2, r.Byte) }
	nested := func(r *wasmbin.Reader) { r.Section().Section() }
	for data, test := range map[string]struct {
		read func(*wasmbin.Reader)
		want string
	}{
		"\x02hi":                   {name, ""},
		"\x03hi":                   {name, "offset 0x0: unexpected end: length 3, and 2 bytes are left"},
		"\x01\xff":                 {name, "offset 0x0: a name is not valid UTF-8"},
		"\x0b12345678901":          {name, "offset 0xc: more than 10 bytes in a name: at most that many are accepted"},
		"\x02ab":                   {list, ""},
		"\x03abc":                  {list, "offset 0x1: more than 2 bytes: at most that many are accepted"},
		"\xff\xff\xff\xff\x0f":     {list, "offset 0x0: unexpected end: 4294967295 bytes, and 0 bytes are left"},
		"\x02\x02ab":               {nested, "offset 0x1: unexpected end: length 2, and 1 bytes are left"},
		"\x01\xff\xff\xff\xff\x0f": {nested, "offset 0x2: unexpected end"},
	} {
		_, err := read([]byte(data), test.read)
		if err == nil && test.want != "" || err != nil && err.Error() != test.want {
			t.Errorf("%q: error %v, want %q", data, err, test.want)
		}
	}
}

// TestCatch checks that only errors of a Reader are caught.
func TestCatch(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() != "other" {
			t.Error("another panic was caught")
		}
	}()
	_, _ = read(nil, func(*wasmbin.Reader) { panic("other") })
}

// FuzzReader calls the methods that operations name, and compares numbers with encoding/binary.
func FuzzReader(f *testing.F) {
	f.Add([]byte("\x05\x03abc\x01\x80\x01"), []byte("\x05\x00\x06\x02\x03"))
	f.Add([]byte("\xff\xff\xff\xff\x0f\x80\x80\x80\x80\x78"), []byte("\x01\x04"))
	f.Add([]byte("\x02hi\x02ab\x00\x01"), []byte("\x06\x07\x08\x09"))
	f.Fuzz(func(t *testing.T, data, operations []byte) {
		_, err := read(data, func(r *wasmbin.Reader) {
			for _, operation := range operations {
				before := r.Pos
				switch operation % 10 {
				case 0:
					r.Byte()
				case 1, 2:
					want, n := binary.Uvarint(r.Rest())
					got := uint64(0)
					if operation%10 == 1 {
						got = uint64(r.Uint32())
					} else {
						got = r.Uint64()
					}
					if got != want || r.Pos != before+n {
						t.Errorf("number %d of %d bytes, want %d of %d", got, r.Pos-before, want, n)
					}
				case 3:
					r.Signed(32)
				case 4:
					r.Signed(64)
				case 5:
					r = r.Section()
				case 6:
					if name := r.Name(); !utf8.ValidString(name) || len(name) > 10 {
						t.Errorf("name %q", name)
					}
				case 7:
					if list := wasmbin.Vector(r, "bytes", 20, r.Byte); len(list) > 20 {
						t.Errorf("%d entries", len(list))
					}
				case 8:
					r.Next(3)
				case 9:
					r.Finish("the test")
				}
				if r.Pos < before && operation%10 != 5 || r.Pos > len(data) || len(r.Rest()) > len(data)-r.Pos {
					t.Fatalf("position %d after %d, of %d bytes", r.Pos, before, len(data))
				}
			}
		})
		var refused *wasmbin.Error
		if err != nil && (!errors.As(err, &refused) || refused.Offset < 0 || refused.Offset > len(data)) {
			t.Errorf("error %v", err)
		}
	})
}
