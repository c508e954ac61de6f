package extism_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/extism"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/mcpjson"
)

var granting = &manifest.Manifest{Name: "guest", Version: "1.0.0"}

func TestList(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, wasm []byte) {
		list, err := extism.List(t.Context(), load(t, setup{wasm: wasm}))
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := mcpjson.Complete(granting, list)
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
		"no JSON":    {"tools", "returned unexpected JSON for list_tools"},
		"nothing":    {"-", "returned unexpected JSON for list_tools"},
		"a failure":  {"file:/none", "failed in list_tools: open /none"},
		"other JSON": {`{"tools":{"a":1}}`, "returned unexpected JSON for list_tools"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := json.Marshal(object{"tools": test.answer})
			if err != nil {
				t.Fatal(err)
			}
			_, err = extism.List(t.Context(), load(t, setup{wasm: second(t, guest(t)), config: string(config)}))
			var broken *catalog.GuestError
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
	wants(t, err, "returned unexpected JSON for list_prompts")
}
