package component_test

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/wasm/component"
)

// section returns a section with these bytes.
func section(id byte, parts ...string) string {
	body := strings.Join(parts, "")
	return string(binary.AppendUvarint([]byte{id}, uint64(len(body)))) + body
}

// vec returns a vector of these entries.
func vec(entries ...string) string { return number(len(entries)) + strings.Join(entries, "") }

func number(n int) string { return string(binary.AppendUvarint(nil, uint64(n))) }

// times returns n entries that depend on their number.
func times(n int, entry func(i int) string) []string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = entry(i)
	}
	return entries
}

// memory has a core instance with a memory, and an alias of that.
const memory = "\x01\x14\x00asm\x01\x00\x00\x00\x05\x03\x01\x00\x01\x07\x05\x01\x01m\x02\x00" +
	"\x02\x04\x01\x00\x00\x00" + "\x06\x07\x01\x00\x02\x01\x00\x01m"

const emptyModule = "\x00asm\x01\x00\x00\x00"

// record is the type record { x: u32 }.
const record = "\x72\x01\x01x\x79"

// hostileComponent is a component that a limit or rule refuses.
type hostileComponent struct {
	name string
	body func() string
	want string
}

var hostile = []hostileComponent{
	{"tuple of the type before, twice", func() string {
		return section(7, vec(append([]string{"\x7f"}, times(90, func(i int) string {
			return "\x6f\x02" + number(i) + number(i)
		})...)...))
	}, "more than 100000 types in one type"},
	{"instances of the type before, twice", func() string {
		return section(7, vec(append([]string{"\x42\x00"}, times(40, func(i int) string {
			// an instance type with an outer alias of the one before, and two exports of it
			return "\x42\x03\x02\x03\x02\x01" + number(i) + "\x04\x00\x01a\x05\x00\x04\x00\x01b\x05\x00"
		})...)...))
	}, "more than 100000 types in one type"},
	{"resources of instances of the type before, twice", func() string {
		return section(7, vec(append([]string{"\x42\x01\x04\x00\x01r\x03\x01"}, times(16, func(i int) string {
			return "\x42\x03\x02\x03\x02\x01" + number(i) + "\x04\x00\x01a\x05\x00\x04\x00\x01b\x05\x00"
		})...)...))
	}, "more than 300000 types"},
	{"deep type", func() string {
		return section(7, vec(append([]string{"\x7f"}, times(101, func(i int) string { return "\x70" + number(i) })...)...))
	}, "more than 100 types in each other"},
	{"deep components", func() string {
		body := ""
		for range 60 {
			body = section(4, preamble+body)
		}
		return body
	}, "more than 50 components and their types in each other"},
	{"deep component types", func() string {
		return section(7, "\x01", strings.Repeat("\x41\x01\x01", 60), "\x7f")
	}, "more than 50 components and their types in each other"},
	{"1,500 modules", func() string {
		return strings.Repeat(section(1, emptyModule), 1_500)
	}, "more than 1000 core modules"},
	{"1,500 components", func() string {
		return strings.Repeat(section(4, preamble), 1_500)
	}, "more than 1000 components"},
	{"200,000 functions", func() string {
		return section(8, vec(times(100_000, func(int) string { return "\x05" })...)) +
			section(8, vec(times(100_000, func(int) string { return "\x05" })...))
	}, "more than 100000 definitions"},
	{"a billion types", func() string { return section(7, number(1_000_000_000), "\x7f") }, "1000000000 types, and 1 bytes"},
	{"parameters of 4 GiB", func() string {
		return section(7, "\x01\x40\xff\xff\xff\xff\x0f")
	}, "4294967295 parameters, and 0 bytes"},
	{"name of 4 GiB", func() string { return section(10, "\x01\x00\xff\xff\xff\xff\x0fa") }, "length 4294967295"},
	{"name of 1 MB", func() string {
		return section(10, "\x01\x00", number(1_000_000), strings.Repeat("a", 1_000_000), "\x01\x00")
	}, "more than 10000 bytes in a name"},
	{"type of itself", func() string { return section(7, vec("\x70\x00")) }, "type 0 is used, and 0 are defined before"},
	{"alias of itself", func() string { return section(6, vec("\x03\x02\x00\x00")) }, "type 0 is used, and 0 are defined"},
	{"instance of the component around it", func() string {
		return section(4, preamble, section(6, vec("\x04\x02\x01\x00")))
	}, "component 0 is used, and 0 are defined"},
	{"alias out of everything", func() string {
		return section(6, vec("\x03\x02\xff\xff\xff\xff\x0f\x00"))
	}, "4294967295 enclosing components"},
	{"list of 2^32 records", func() string {
		return section(7, vec("\x67\x7f\xff\xff\xff\xff\x0f"))
	}, "the specification allows less than 2^28"},
	{"33 flags", func() string {
		return section(7, "\x01\x6e", vec(times(33, func(i int) string { return "\x03f" + digits(i) })...))
	}, "more than 32 labels"},
	{"an import that mentions a record without a name", func() string {
		return section(7, vec(record, "\x40\x00\x00\x00")) + section(10, vec("\x00\x01f\x01\x01"))
	}, `import "f" mentions a record without a name`},
	{"an import that mentions a record by its definition, which has a name", func() string {
		return section(7, vec(record)) + section(10, vec("\x00\x01r\x03\x00\x00")) +
			section(7, vec("\x40\x00\x00\x00")) + section(10, vec("\x00\x01f\x01\x02"))
	}, `import "f" mentions a record without a name`},
	{"an export that mentions a resource by its definition, which has a name", func() string {
		return section(7, vec("\x3f\x7f\x00")) + section(11, vec("\x00\x01r\x03\x00\x00")) +
			section(7, vec("\x69\x00")) + section(11, vec("\x00\x01o\x03\x02\x00"))
	}, `export "o" mentions a resource without a name`},
	{"an import that mentions an exported resource", func() string {
		return section(7, vec("\x3f\x7f\x00")) + section(11, vec("\x00\x01r\x03\x00\x00")) +
			section(7, vec("\x69\x01")) + section(10, vec("\x00\x01o\x03\x00\x02"))
	}, `import "o" mentions a resource without a name`},
	{"a method without its resource", func() string {
		return section(7, vec(record, "\x40\x00\x00\x79")) + section(10, vec("\x00\x01f\x01\x01")) +
			section(5, vec("\x01\x01\x00\x0e[constructor]a\x01\x00"))
	}, `"[constructor]a", the function of a resource`},
	{"comparisons without end", func() string {
		// A component that imports a type of 80,000 parts, instantiated 1,000 times.
		big := section(7, vec(append([]string{"\x6f\x28" + strings.Repeat("\x7f", 40)}, times(7, func(i int) string {
			return "\x6f\x03" + strings.Repeat(number(i), 3)
		})...)...))
		nested := preamble + big + section(10, vec("\x00\x01a\x03\x00\x07"))
		return big + section(4, nested) + section(5, vec(times(1_000, func(int) string {
			return "\x00\x00\x01\x01a\x03\x07"
		})...))
	}, "more than 10000000 steps"},
	{"a function with 1,000 parameters, lowered 20,000 times", func() string {
		params := vec(times(1_000, func(i int) string { return "\x05f" + digits(i/100) + digits(i%100) + "\x7f" })...)
		return section(7, vec("\x40"+params+"\x01\x00")) + section(10, vec("\x00\x01f\x01\x00")) + memory +
			section(8, vec(times(20_000, func(int) string { return "\x01\x00\x00\x01\x03\x00" })...))
	}, "more than 10000000 steps"},
}

func digits(i int) string { return string(rune('0'+i/10)) + string(rune('0'+i%10)) }

func (h hostileComponent) wasm() []byte { return []byte(preamble + h.body()) }

// TestHostile: no component costs more than its size warrants, whatever it claims.
func TestHostile(t *testing.T) {
	for _, test := range hostile {
		t.Run(test.name, func(t *testing.T) {
			wasm := test.wasm()
			var err error
			bytes := allocated(func() { _, err = component.Decode(wasm) })
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if limit := uint64(64<<20 + 500*len(wasm)); bytes > limit {
				t.Errorf("a file of %d bytes made Decode allocate %d", len(wasm), bytes)
			}
		})
	}
}

// TestNamedTypes: an import may mention a record by the name that another import gives it, an export also by that of an
// export.
func TestNamedTypes(t *testing.T) {
	t.Parallel()
	composed, err := os.ReadFile("testdata/composed.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"import": section(7, vec(record)) + section(10, vec("\x00\x01r\x03\x00\x00")) +
			section(7, vec("\x40\x00\x00\x01")) + section(10, vec("\x00\x01f\x01\x02")) +
			section(11, vec("\x00\x01g\x01\x00\x00")),
		"export": section(7, vec("\x3f\x7f\x00")) + section(11, vec("\x00\x01r\x03\x00\x00")) +
			section(7, vec("\x69\x01")) + section(11, vec("\x00\x01o\x03\x02\x00")),
		"through an instance that an inner component gets": string(composed[len(preamble):]),
	} {
		if _, err := component.Decode([]byte(preamble + body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestManyModules: 500 core modules with their instances are no reason to refuse a component.
func TestManyModules(t *testing.T) {
	t.Parallel()
	wasm := preamble + strings.Repeat(section(1, emptyModule), 500) +
		section(2, vec(times(500, func(i int) string { return "\x00" + number(i) + "\x00" })...))
	if _, err := component.Decode([]byte(wasm)); err != nil {
		t.Error(err)
	}
}
