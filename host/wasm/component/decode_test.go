package component_test

import (
	"testing"

	"github.com/hako-run/hako/host/wasm/component"
)

const preamble = "\x00asm\x0d\x00\x01\x00"

func TestIsComponent(t *testing.T) {
	t.Parallel()
	for wasm, want := range map[string]bool{
		preamble:                           true,
		"\x00asm\x01\x00\x01\x00":          true, // Decode names the version
		"\x00asm\x01\x00\x00\x00":          false,
		"\x00asm\x0d\x00\x01":              false,
		"":                                 false,
		"\x7fELF\x0d\x00\x01\x00 somewhat": false,
	} {
		if got := component.IsComponent([]byte(wasm)); got != want {
			t.Errorf("%q: %v", wasm, got)
		}
	}
}

// small has a core module whose function f is lifted and exported.
const small = preamble +
	"\x01\x1f\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x05\x01\x01f\x00\x00" +
	"\x0a\x04\x01\x02\x00\x0b" + // core module
	"\x02\x04\x01\x00\x00\x00" + // core instance
	"\x06\x07\x01\x00\x00\x01\x00\x01f" + // alias of its f
	"\x07\x05\x01\x40\x00\x01\x00" + // type (func)
	"\x08\x06\x01\x00\x00\x00\x00\x00" + // lift
	"\x0b\x07\x01\x00\x01f\x01\x00\x00" // export

func TestDecode(t *testing.T) {
	t.Parallel()
	c, err := component.Decode([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Exports) != 1 || c.Exports[0].Name != "f" || c.Exports[0].Func == nil {
		t.Errorf("exports %+v", c.Exports)
	}
	if lift, ok := c.Definitions[3].(*component.Lift); !ok || lift.Options.Memory != -1 || len(c.Definitions) != 5 {
		t.Errorf("definitions %#v", c.Definitions)
	}
}

// TestTruncated cuts a component at each byte. Between sections the rest is valid.
func TestTruncated(t *testing.T) {
	t.Parallel()
	ends := map[int]bool{8: true, 41: true, 47: true, 56: true, 63: true, 71: true}
	for n := range len(small) {
		if _, err := component.Decode([]byte(small[:n])); (err == nil) != ends[n] {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

func TestRewriteModules(t *testing.T) {
	t.Parallel()
	nested := preamble + "\x04" + string(rune(len(small))) + small + small[len(preamble):41]
	out, err := component.RewriteModules([]byte(nested), func(id int, module []byte) ([]byte, error) {
		custom := append([]byte{0, 201, 1, 2, 'i', byte(id)}, make([]byte, 198)...)
		return append(module, custom...), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := component.Decode(out)
	if err != nil {
		t.Fatal(err)
	}
	inner := c.Definitions[0].(*component.Nested).Component.Definitions[0].(*component.Module)
	outer := c.Definitions[1].(*component.Module)
	for i, m := range []*component.Module{inner, outer} {
		if len(m.Code) != 31+204 || m.Code[31+5] != byte(i) || m.ID != i {
			t.Errorf("module %d has number %d and %d bytes", i, m.ID, len(m.Code))
		}
	}
}
