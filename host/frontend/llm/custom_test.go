package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestCustomTools(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	custom := NewCustomTools(slog.New(slog.NewTextHandler(&log, nil)))
	box := custom.Fit([]Tool{
		{Name: "weather.now", Description: "The weather.",
			Schema: json.RawMessage(`{"type":"object","properties":{"場所":{"type":"string"}},"required":["場所"]}`)},
		{Name: "plain", Schema: json.RawMessage(
			`{"type":"object","anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"string"}}}]}`)},
		{Name: "text", Description: "d", Schema: json.RawMessage(`{"type":"string"}`)},
	})
	definitions := box.Definitions()
	if len(definitions) != 2 || definitions[0].Name != "weather_now" || definitions[1].Description != "plain" {
		t.Fatalf("%+v", definitions)
	}
	if strings.Contains(string(definitions[1].Schema), "anyOf") ||
		!strings.Contains(string(definitions[1].Schema), `"b"`) {
		t.Errorf("the alternatives are not put together: %s", definitions[1].Schema)
	}
	if !strings.Contains(log.String(), "tool=text") {
		t.Errorf("the tool that is left out is not named: %s", log.String())
	}
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal(definitions[0].Schema, &schema); err != nil {
		t.Fatal(err)
	}
	for key := range schema.Properties {
		call := box.Call("1", "weather_now", json.RawMessage(`{"`+key+`":"東京"}`))
		if call.Name != "weather.now" || string(call.Arguments) != `{"場所":"東京"}` {
			t.Errorf("the call is %s %s", call.Name, call.Arguments)
		}
	}
	if call := box.Call("2", "gone", json.RawMessage(`[]`)); call.Name != "gone" || call.Invalid == "" {
		t.Errorf("the call is %+v", call)
	}
}

func TestCustomToolsAreBounded(t *testing.T) {
	t.Parallel()
	tools := make([]Tool, maxCustomTools+1)
	for i := range tools {
		tools[i] = Tool{Name: fmt.Sprintf("tool%d", i), Schema: json.RawMessage(`{"type":"object"}`)}
	}
	if n := len(NewCustomTools(nil).Fit(tools).Definitions()); n != maxCustomTools {
		t.Errorf("%d tools are defined", n)
	}
}
