package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// TestSuccessor checks that a call whose plugin was replaced after the lookup goes to the new one if the tool is
// unchanged.
func TestSuccessor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(string) string
		outcome pipeline.Outcome
		want    string
	}{
		"the same": {func(s string) string { return s }, pipeline.OK, "the new one"},
		"another tool": {func(s string) string {
			return strings.Replace(s, "properties: {n: {type: integer}}", "properties: {n: {type: number}}", 1)
		}, pipeline.NotFound, "nothing was called"},
		"no such tool": {func(s string) string { return strings.Replace(s, "name: free", "name: freed", 1) },
			pipeline.NotFound, "nothing was called"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			next := &backend{answer: func() (*abi.Response, error) { return text("the new one"), nil }}
			f.backend.answer = func() (*abi.Response, error) {
				m, err := manifest.Parse([]byte(test.change(offered)))
				if err == nil {
					err = f.catalog.Put(catalog.Source{Name: "test", Prefix: "q_", Config: []byte(`{"k":3}`),
						Backend: next}, m)
				}
				if err != nil {
					t.Error(err)
				}
				return nil, fmt.Errorf("plugin test: %w", catalog.ErrClosed)
			}
			result, err := f.Call(t.Context(),
				&pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: "p_free",
					Arguments: []byte(`{"n":1}`)}})
			if err != nil || result.Outcome != test.outcome ||
				!strings.Contains(result.Response.Content[0].Text, test.want) {
				t.Fatalf("%+v, %v", result, err)
			}
			if config := string(next.last.Config); test.outcome == pipeline.OK && config != `{"k":3}` {
				t.Errorf("configuration is %s", config)
			}
		})
	}
	f := newFixture(t)
	f.backend.answer = func() (*abi.Response, error) { f.catalog.Remove("test"); return nil, catalog.ErrClosed }
	if result, err := f.Call(t.Context(), &pipeline.Call{Request: abi.Request{Method: abi.ReadResource,
		URI: "test://fixed"}}); err == nil || result != nil {
		t.Errorf("%+v, %v", result, err)
	}
}
