package chat

import (
	"encoding/json"
	"testing"

	"github.com/hako-run/hako/host/frontend/llm"
)

// TestHostileChat: different calls are never treated as repeats of one another, however similar.
func TestHostileChat(t *testing.T) {
	t.Parallel()
	call := func(name, arguments string) llm.Call {
		return llm.Call{Name: name, Arguments: json.RawMessage(arguments)}
	}
	for name, test := range map[string]struct {
		a, b llm.Call
		same bool
	}{
		"integers beyond floats": {call("pay", `{"id":9007199254740992}`),
			call("pay", `{"id":9007199254740993}`), false},
		"negative ones": {call("pay", `{"id":-9007199254740993}`),
			call("pay", `{"id":-9007199254740992}`), false},
		"integers of many digits": {call("pay", `{"id":123456789012345678901234567890}`),
			call("pay", `{"id":123456789012345678901234567891}`), false},
		"in a list": {call("pay", `{"ids":[1,9007199254740992]}`),
			call("pay", `{"ids":[1,9007199254740993]}`), false},
		"deep": {call("pay", `{"a":{"b":{"c":18446744073709551615}}}`),
			call("pay", `{"a":{"b":{"c":18446744073709551614}}}`), false},
		"fractions of many digits": {call("pay", `{"n":0.1}`), call("pay", `{"n":0.10000000000000000001}`),
			false},
		"beyond the largest float":        {call("pay", `{"n":1e400}`), call("pay", `{"n":1e401}`), false},
		"a number and a text":             {call("pay", `{"n":1}`), call("pay", `{"n":"1"}`), false},
		"a key twice":                     {call("pay", `{"n":1,"n":2}`), call("pay", `{"n":2}`), false},
		"the name takes of the arguments": {call("pay\x00{}", ``), call("pay", `{}`), false},
		"the length is in the name":       {call("2:{}", ``), call("", `2:{}`), false},
		"another order and other blanks":  {call("pay", `{"a":1,"b":2}`), call("pay", `{ "b" : 2, "a" : 1 }`), true},
		"escape sequences":                {call("pay", `{"a":"\u0041"}`), call("pay", `{"a":"A"}`), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := key(test.a) == key(test.b); got != test.same {
				t.Errorf("the same: %t", got)
			}
		})
	}
}
