package component_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/wasm/component"
)

var update = flag.Bool("update", false, "write the golden files")

// TestWorld compares the worlds of components with golden files.
func TestWorld(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"shapes", "counter", "files"} {
		wasm, err := os.ReadFile("testdata/" + name + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		c, err := component.Decode(wasm)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		golden := "testdata/" + name + ".wit"
		if *update {
			if err := os.WriteFile(golden, []byte(c.World()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.World(); got != string(want) {
			t.Errorf("%s: the world is\n%s", name, got)
		}
	}
}

// TestLongText: the text of a function is bounded, however often it mentions a type.
func TestLongText(t *testing.T) {
	t.Parallel()
	wide := section(7, vec("\x6f\x64"+strings.Repeat("\x73", 100), "\x6f\x64"+strings.Repeat("\x00", 100),
		"\x40\x01\x01p\x01\x01\x00"))
	c, err := component.Decode([]byte(preamble + wide + section(10, vec("\x00\x01f\x01\x02"))))
	if err != nil {
		t.Fatal(err)
	}
	if text := c.Imports[0].Func.String(); len(text) > 11_000 || !strings.HasPrefix(text, "func(p: tuple<tuple<string, ") {
		t.Errorf("%d bytes: %.100s", len(text), text)
	}
}

// TestLongConstructor: the text of a constructor may end before its result.
func TestLongConstructor(t *testing.T) {
	t.Parallel()
	wide := section(7, vec("\x6f\x64"+strings.Repeat("\x73", 100), "\x6f\x64"+strings.Repeat("\x00", 100),
		"\x42"+vec("\x04\x00\x01r\x03\x01", "\x02\x03\x02\x01\x01", "\x01\x69\x00", "\x01\x40\x01\x01p\x01\x00\x02",
			"\x04\x00\x0e[constructor]r\x01\x03")))
	c, err := component.Decode([]byte(preamble + wide + section(10, vec("\x00\x05a:b/c\x05\x02"))))
	if err != nil {
		t.Fatal(err)
	}
	if text := c.World(); len(text) > 11_000 || !strings.Contains(text, "constructor(p: tuple<tuple<string, ") {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
}
