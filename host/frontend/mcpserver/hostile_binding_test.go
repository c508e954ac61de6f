package mcpserver

import (
	"testing"

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// TestHostileBinding: a request goes on with the very call that waits, and with none that only looks like it.
func TestHostileBinding(t *testing.T) {
	t.Parallel()
	binding := func(arguments string) string {
		return bindingOf(&pipeline.Call{Request: abi.Request{Method: "tools/call", Name: "pay",
			Arguments: []byte(arguments)}})
	}
	for name, test := range map[string]struct {
		a, b string
		same bool
	}{
		"integers beyond floats": {`{"id":9007199254740992}`, `{"id":9007199254740993}`, false},
		"integers of many digits": {`{"id":123456789012345678901234567890}`, `{"id":123456789012345678901234567891}`,
			false},
		"an integer as a float": {`{"n":1}`, `{"n":1.0}`, true},
		"in a list":             {`{"a":[18446744073709551615]}`, `{"a":[18446744073709551614]}`, false},
		"a number and a text":   {`{"n":1}`, `{"n":"1"}`, false},
		"another order":         {`{"a":1,"b":2}`, `{ "b":2, "a":1 }`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := binding(test.a) == binding(test.b); got != test.same {
				t.Errorf("the same: %t", got)
			}
		})
	}
	for name, topics := range map[string][2]string{
		"a separator in the tenant": {topic("a\x00b", "c"), topic("a", "b\x00c")},
		"a length in the tenant":    {topic("1:a", "b"), topic("1", "ab")},
		"no tenant":                 {topic("", "1:ab"), topic("a", "b")},
	} {
		t.Run("topic with "+name, func(t *testing.T) {
			t.Parallel()
			if topics[0] == topics[1] {
				t.Errorf("both are %q", topics[0])
			}
		})
	}
}
