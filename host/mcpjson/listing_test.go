package mcpjson_test

import (
	"testing"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/mcpjson"
)

var granting = &manifest.Manifest{Name: "guest", Version: "1.0.0"}

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
	m, _, err := mcpjson.Complete(granting, []byte(list))
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
		if _, _, err := mcpjson.Complete(granting, []byte(broken)); err == nil {
			t.Errorf("%s can be offered", broken)
		}
	}
}

// FuzzComplete completes arbitrary listings.
func FuzzComplete(f *testing.F) {
	f.Add([]byte(`{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`))
	f.Add([]byte(`{"prompts":[{"name":"p"}],"resources":[{"uri":"a:b","name":"n"}]}`))
	f.Fuzz(func(t *testing.T, list []byte) {
		m, _, err := mcpjson.Complete(granting, list)
		if err != nil {
			return
		}
		if err := m.Validate(); err != nil {
			t.Errorf("it is complete, but not valid: %v", err)
		}
	})
}
