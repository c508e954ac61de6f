package manifest

import (
	"testing"

	"github.com/hako-run/hako/host/wasmfile"
)

// TestParseValidated compares the tools of a manifest that is validated with those of one that was validated before.
func TestParseValidated(t *testing.T) {
	t.Parallel()
	text := []byte(`
name: a
version: 1.0.0
description: A.
tools:
  - name: plain
    description: A.
    inputSchema: {type: object, properties: {n: {type: integer}}}
  - name: structured
    description: B.
    inputSchema: {type: object}
    outputSchema: {type: object, required: [text], properties: {text: {type: string}}}
`)
	m := &wasmfile.Module{Manifest: text}
	validated, err := ParseValidated(m)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := ParseModule(m)
	if err != nil {
		t.Fatal(err)
	}
	for i := range parsed.Tools {
		got, want := &validated.Tools[i], &parsed.Tools[i]
		for _, value := range []string{`{}`, `{"n":1}`, `{"n":"one"}`, `[]`} {
			if is, must := got.Input().Validate([]byte(value)), want.Input().Validate([]byte(value)); (is == nil) != (must == nil) {
				t.Errorf("%s: %s is %v, want %v", got.Name, value, is, must)
			}
		}
		if (got.Output() == nil) != (want.Output() == nil) {
			t.Errorf("%s: output schema %v, want %v", got.Name, got.Output(), want.Output())
		}
	}
	if err := validated.Tools[1].Output().Validate([]byte(`{}`)); err == nil {
		t.Error("an output without its text is valid")
	}
	if _, err := ParseValidated(&wasmfile.Module{Manifest: []byte("name: [")}); err == nil {
		t.Error("what is no YAML is parsed")
	}
}
