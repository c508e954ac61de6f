package abi

import (
	"encoding/json"
	"testing"
)

func TestFillStructured(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		structured string
		texts      []TextMember
		want       string // empty means an error
	}{
		"no texts":        {`[1]`, nil, `[1]`},
		"an empty object": {` { } `, []TextMember{{Name: "a", Data: []byte("x")}}, `{"a":"x"}`},
		"more members": {`{"b":1}`, []TextMember{{Name: "a", Data: []byte("<\"\n\u2028いろは")}},
			`{"a":"<\"\n\u2028いろは","b":1}`},
		"two texts": {`{}`, []TextMember{{Name: "a"}, {Name: "b\"", Data: []byte("y")}},
			`{"a":"","b\"":"y"}`},
		"an array":            {`[]`, []TextMember{{Name: "a"}}, ""},
		"null":                {`null`, []TextMember{{Name: "a"}}, ""},
		"nothing":             {``, []TextMember{{Name: "a"}}, ""},
		"a member that is":    {`{"a":1}`, []TextMember{{Name: "a"}}, ""},
		"a member that is \\": {`{"\u0061":1}`, []TextMember{{Name: "a"}}, ""},
		"the same text twice": {`{}`, []TextMember{{Name: "a"}, {Name: "a"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Response{StructuredContent: json.RawMessage(c.structured), StructuredText: c.texts}
			err := r.FillStructured()
			if (err == nil) != (c.want != "") || err == nil && string(r.StructuredContent) != c.want {
				t.Errorf("%s, %v; want %q", r.StructuredContent, err, c.want)
			}
		})
	}
}
