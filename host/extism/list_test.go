package extism_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/extism"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
)

var granting = &manifest.Manifest{Name: "guest", Version: "1.0.0"}

func TestList(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, wasm []byte) {
		list, err := extism.List(t.Context(), load(t, setup{wasm: wasm}))
		if err != nil {
			t.Fatal(err)
		}
		m, err := extism.Complete(granting, list)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Tools) < 20 || m.Name != "guest" || len(granting.Tools) != 0 {
			t.Errorf("%+v", m)
		}
		second := 0
		if strings.HasSuffix(t.Name(), "v2") {
			second = 1
		}
		if len(m.Prompts) != second || len(m.Resources) != second || len(m.ResourceTemplates) != second {
			t.Errorf("prompts %v, resources %v, templates %v", m.Prompts, m.Resources, m.ResourceTemplates)
		}
	})
}

// TestListFails lists guests that fail.
func TestListFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ answer, want string }{
		"no JSON":    {"tools", "gave an answer to list_tools that is not the JSON expected"},
		"nothing":    {"-", "gave an answer to list_tools that is not the JSON expected"},
		"a failure":  {"file:/none", "failed in list_tools: open /none"},
		"other JSON": {`{"tools":{"a":1}}`, "gave an answer to list_tools that is not the JSON expected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := json.Marshal(object{"tools": test.answer})
			if err != nil {
				t.Fatal(err)
			}
			_, err = extism.List(t.Context(), load(t, setup{wasm: second(t, guest(t)), config: string(config)}))
			var broken *sandbox.GuestError
			if !errors.As(err, &broken) {
				t.Errorf("%v", err)
			}
			wants(t, err, test.want)
		})
	}
}

// TestListsAreSeparate lists a guest that returns one list and nothing for the next.
func TestListsAreSeparate(t *testing.T) {
	t.Parallel()
	_, err := extism.List(t.Context(), load(t, setup{wasm: second(t, guest(t)), config: `{"prompts":"-"}`}))
	wants(t, err, "gave an answer to list_prompts that is not the JSON expected")
}

// TestComplete completes listings that are not in the form of manifests.
func TestComplete(t *testing.T) {
	t.Parallel()
	const list = `{
		"tools": [
			{"name": "bare"},
			{"name": "old", "title": "Two\nlines", "description": "a\r\nb", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"z": {}, "a": {}}},
			 "outputSchema": {"type": "object"}, "annotations": {"title": "unused", "readOnlyHint": true, "destructiveHint": true}},
			{"name": "null", "description": " ", "inputSchema": null, "outputSchema": null, "annotations": {"title": "Used"}}
		],
		"prompts": [{"name": "p", "arguments": [{"name": "a", "required": true}]}],
		"resources": [{"uri": "a:b"}],
		"resourceTemplates": [{"uriTemplate": "a:{b}", "mimeType": "text/plain"}]
	}`
	m, err := extism.Complete(granting, []byte(list))
	if err != nil {
		t.Fatal(err)
	}
	bare, old, null := m.Tools[0], m.Tools[1], m.Tools[2]
	if bare.Description.In("en") != "bare" || string(bare.InputSchema) != `{"type":"object"}` ||
		bare.OutputSchema != nil || bare.Input() == nil {
		t.Errorf("%+v", bare)
	}
	if old.Title.In("en") != "Two lines" || old.Description.In("en") != "a\nb" ||
		string(old.InputSchema) != `{"properties":{"z":{},"a":{}},"type":"object"}` ||
		old.Output() == nil || !*old.Annotations.ReadOnlyHint || old.Annotations.DestructiveHint != nil {
		t.Errorf("%+v", old)
	}
	if null.Title.In("en") != "Used" || null.Description.In("en") != "null" || null.OutputSchema != nil {
		t.Errorf("%+v", null)
	}
	if p := m.Prompts[0]; p.Name != "p" || !p.Arguments[0].Required {
		t.Errorf("%+v", p)
	}
	if m.Resources[0].Name != "a:b" || m.ResourceTemplates[0].MIMEType != "text/plain" {
		t.Errorf("%+v %+v", m.Resources, m.ResourceTemplates)
	}
	for _, broken := range []string{``, `[]`, `{}`, `{"tools":[{"name":"a b"}]}`,
		`{"tools":[{"name":"a","inputSchema":[]}]}`} {
		if _, err := extism.Complete(granting, []byte(broken)); err == nil {
			t.Errorf("%s can be offered", broken)
		}
	}
}

// FuzzComplete completes arbitrary listings.
func FuzzComplete(f *testing.F) {
	f.Add([]byte(`{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`))
	f.Add([]byte(`{"prompts":[{"name":"p"}],"resources":[{"uri":"a:b","name":"n"}]}`))
	f.Fuzz(func(t *testing.T, list []byte) {
		m, err := extism.Complete(granting, list)
		if err != nil {
			return
		}
		if err := m.Validate(); err != nil {
			t.Errorf("it is complete, but not valid: %v", err)
		}
	})
}
