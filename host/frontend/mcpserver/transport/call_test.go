package transport

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// FuzzCall: the SDK decodes what is taken for a Call to the same request.
func FuzzCall(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,{"b":null}]}}}`,
		`{"params":{"_meta":{"progressToken":"p","x":{}},"name":"\u0065"},"method":"tools/call","id":"a","jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","id":-7,"method":"tools/call","params":{"name":"","requestState":"s","inputResponses":{}}}`,
		`{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"x","arguments":null}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		call, ok := parseCall(body)
		if !ok {
			return
		}
		message, err := jsonrpc.DecodeMessage(body)
		request, isRequest := message.(*jsonrpc.Request)
		if err != nil || !isRequest || request.ID != call.ID || request.Method != methodCallTool {
			t.Fatalf("%+v, the SDK has %+v, %v", call, message, err)
		}
		var params struct {
			Name         string          `json:"name"`
			Arguments    json.RawMessage `json:"arguments"`
			RequestState string          `json:"requestState"`
		}
		if err := json.Unmarshal(request.Params, &params); err != nil || params.Name != call.Name ||
			string(params.Arguments) != string(call.Arguments) || params.RequestState != call.RequestState {
			t.Errorf("%+v, the SDK has %+v, %v", call, params, err)
		}
	})
}

// TestBracketsInText: brackets within strings, and many values beside each other, do not nest.
func TestBracketsInText(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]bool{
		`{"text":"` + strings.Repeat(`{[\"`, 5000) + `"}`:                                 true,
		`{"list":[` + strings.Repeat(`{},`, 5000) + `{}]}`:                                true,
		`{"a":` + strings.Repeat(`[`, 990) + strings.Repeat(`]`, 990) + `}`:               true,
		`{"a":` + strings.Repeat(`[`, maxNesting) + strings.Repeat(`]`, maxNesting) + `}`: false,
	} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":` + arguments + `}}`
		if _, ok := parseCall([]byte(body)); ok != want {
			t.Errorf("%.50s: %t", arguments, ok)
		}
	}
}

// TestByteOrderMark: a mark before the body does not matter, to a call, to another message or to a batch.
func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
	} {
		body, refused := Decode([]byte("\ufeff" + text))
		if refused != nil || string(body.Raw) != text {
			t.Errorf("%s: %+v, %+v", text, body, refused)
		}
	}
}
