package toolset_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/manifest"
)

// TestHostileArguments: a caller cannot give an argument that the set fixes or hides, in any spelling that JSON or a
// guest takes for the same, nor change it by the form of the arguments.
func TestHostileArguments(t *testing.T) {
	t.Parallel()
	c := new(catalog.Catalog)
	m, err := manifest.Parse([]byte(plugins))
	if err == nil {
		err = c.Put(catalog.Source{Name: "tickets"}, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	set := &toolset.Set{Name: "own", Tools: []toolset.Tool{{Pattern: "ticket_search",
		Fix: map[string]json.RawMessage{"project": json.RawMessage(`"own"`)}, Hide: []string{"limit"}}}}
	v := set.Apply(c.View())
	for name, test := range map[string]struct {
		given   string
		refused bool
	}{
		"what is fixed":               {`{"words":"a","project":"theirs"}`, true},
		"what is fixed, as it is":     {`{"words":"a","project":"own"}`, true},
		"null":                        {`{"words":"a","project":null}`, true},
		"escaped":                     {`{"words":"a","\u0070roject":"theirs"}`, true},
		"escaped twice":               {`{"words":"a","p\u0072\u006fject":"theirs"}`, true},
		"in capitals":                 {`{"words":"a","PROJECT":"theirs"}`, true},
		"in mixed case":               {`{"words":"a","proJect":"theirs"}`, true},
		"what is hidden":              {`{"words":"a","limit":9}`, true},
		"what is hidden, with İ":      {`{"words":"a","lİmit":9}`, false}, // no fold of it: the schema refuses it
		"what is hidden, in capitals": {`{"words":"a","LIMIT":9}`, true},
		"the last of many":            {`{"words":"a","a":1,"b":2,"c":3,"project":"theirs"}`, true},
		"twice":                       {`{"project":"own","words":"a","project":"theirs"}`, true},
		"after white space":           {" \t\r\n{ \"project\" : \"theirs\" }", true},
		"within a value":              {`{"words":{"project":"theirs"}}`, false},
		"within a text":               {`{"words":"\",\"project\":\"theirs"}`, false},
		"within a name":               {`{"words":"a","x\",\"project":"theirs"}`, false},
		"a list":                      {`[{"project":"theirs"}]`, false},
		"two objects":                 {`{"words":"a"}{"project":"theirs"}`, false},
		"an object that is cut":       {`{"words":"a","project":"theirs"`, false},
		"after a byte order mark":     {"\ufeff" + `{"words":"a"}`, false},
		"after a vertical tab":        {"\v" + `{"words":"a"}`, false},
		"a comment":                   {`{/*"*/"words":"a"/*,"project":"theirs"*/}`, false},
		"no arguments":                {``, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := v.Arguments("ticket_search", json.RawMessage(test.given))
			var taken *toolset.ArgumentError
			if errors.As(err, &taken) != test.refused {
				t.Fatalf("got %s, %v", got, err)
			}
			if test.refused || string(got) == test.given {
				return // it is no object, which the validation refuses
			}
			var read map[string]any
			if err := json.Unmarshal(got, &read); err != nil || read["project"] != "own" || read["limit"] != nil {
				t.Errorf("the tool gets %s, %v", got, err)
			}
		})
	}
}
