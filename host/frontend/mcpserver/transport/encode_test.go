package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestEncode: a response is encoded as the SDK does, and a long result is copied once. It counts allocations and so is
// not parallel.
func TestEncode(t *testing.T) {
	text, number := jsonrpc.ID{}, jsonrpc.ID{}
	for value, id := range map[any]*jsonrpc.ID{"a \"quoted\" one": &text, float64(7): &number} {
		var err error
		if *id, err = jsonrpc.MakeID(value); err != nil {
			t.Fatal(err)
		}
	}
	long := json.RawMessage(`{"tools":["` + strings.Repeat("long ", 100_000) + `"]}`)
	for name, response := range map[string]*jsonrpc.Response{
		"text":  {ID: text, Result: json.RawMessage(`{"a":[1,"<b>"]}`)},
		"long":  {ID: number, Result: long},
		"error": {ID: number, Error: &jsonrpc.Error{Code: -32602, Message: "no"}},
		"other": {ID: text, Error: errors.New("no")},
		"empty": {ID: number},
	} {
		want, err := jsonrpc.EncodeMessage(response)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := encode(response)
		if err != nil {
			t.Fatal(err)
		}
		if got := encoded([]byte("data: ")); !bytes.Equal(got, append([]byte("data: "), want...)) {
			t.Errorf("%s: %.200s, want %.200s", name, got, want)
		}
	}
	dst := make([]byte, 0, len(long)+100)
	if n := testing.AllocsPerRun(5, func() {
		encoded, _ := encode(&jsonrpc.Response{ID: number, Result: long})
		dst = encoded(dst[:0])
	}); n > 3 {
		t.Errorf("%v allocations for a long result", n)
	}
}
