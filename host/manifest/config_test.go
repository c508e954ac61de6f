package manifest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/manifest"
)

func TestConfigure(t *testing.T) {
	t.Parallel()
	m, err := manifest.Parse([]byte(minimal + `config:
  url: {type: url, default: "https://example.com/a?b"}
  text: {type: string, enum: [short, long]}
  whole: {type: integer, default: 3, enum: [3, 4]}
  ratio: {type: number}
  on: {type: boolean}
  list: {type: array, default: [a]}
  key: {type: string, required: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		values map[string]any
		want   string
	}{
		{"defaults", map[string]any{"key": "k"}, `{"key":"k","list":["a"],"url":"https://example.com/a?b","whole":3}`},
		{"all set", map[string]any{"key": "", "url": "http://localhost:9000", "text": "long", "whole": 4, "ratio": 1,
			"on": false, "list": []any{}},
			`{"key":"","list":[],"on":false,"ratio":1,"text":"long","url":"http://localhost:9000","whole":4}`},
		{"numbers of other types", map[string]any{"key": "k", "whole": 4.0, "ratio": uint8(2), "list": []string{"x"}},
			`{"key":"k","list":["x"],"ratio":2,"url":"https://example.com/a?b","whole":4}`},
		{"numbers from JSON", map[string]any{"key": "k", "whole": json.Number("4"), "ratio": json.Number("0.5")},
			`{"key":"k","list":["a"],"ratio":0.5,"url":"https://example.com/a?b","whole":4}`},
		{"required", nil, "key: is missing: plugin greet needs a text"},
		{"unknown", map[string]any{"key": "k", "txt": "x"}, `unknown configuration key "txt": did you mean "text"?`},
		{"text", map[string]any{"key": 1}, "key: must be a text"},
		{"not in enum", map[string]any{"key": "k", "text": "medium"}, `text: must be one of "short", "long"`},
		{"whole not in enum", map[string]any{"key": "k", "whole": 5}, `whole: must be one of 3, 4`},
		{"fraction", map[string]any{"key": "k", "whole": 4.5}, "whole: must be a whole number"},
		{"huge number", map[string]any{"key": "k", "ratio": json.Number("1e999")}, "ratio: must be a number"},
		{"number as text", map[string]any{"key": "k", "ratio": "1"}, "ratio: must be a number"},
		{"nothing", map[string]any{"key": nil, "whole": nil}, "key: must be a text\nwhole: must be a whole number"},
		{"boolean", map[string]any{"key": "k", "on": "true"}, "on: must be true or false"},
		{"other scheme", map[string]any{"key": "k", "url": "file:///etc/passwd"},
			`url: must be a URL that starts with "https://" or "http://"`},
		{"no host", map[string]any{"key": "k", "url": "https:///x"}, `url: must be a URL`},
		{"list of numbers", map[string]any{"key": "k", "list": []any{"a", 1}}, "list: must be a list of texts"},
		{"text for a list", map[string]any{"key": "k", "list": "a"}, "list: must be a list of texts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data, err := m.Configure(c.values)
			got := string(data)
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
