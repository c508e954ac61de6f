package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// TestBOM describes the running test program: what it was linked with has to be there, once, and twice the same.
func TestBOM(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := run(binary, t.TempDir(), out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two runs over one binary differ")
	}
	var got cdx.BOM
	if err := json.Unmarshal(first.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, c := range *got.Components {
		seen[c.Name]++
	}
	for _, name := range []string{"std", "github.com/CycloneDX/cyclonedx-go"} {
		if seen[name] != 1 {
			t.Errorf("%s is there %d times, want once", name, seen[name])
		}
	}
}

func TestShippedPluginIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/broken.wasm", []byte("no module"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := shippedPlugins(dir); err == nil {
		t.Error("a file that is no plugin was described")
	}
}
