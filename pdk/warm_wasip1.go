package pdk

import (
	"bytes"
	"encoding/json"

	"github.com/hako-run/hako/pdk/abi"
)

// Every call starts from the memory that _initialize left, so work done here is done once for all calls: encoding/json builds an
// encoder or decoder at the first use of a type.

func init() {
	var request abi.Request
	_ = json.Unmarshal([]byte(`{"method":"","name":"","arguments":{},"config":{},"deadlineMs":1,"variables":{"a":"b"}}`), &request)
	blob, size := 0, int64(0)
	encoder := json.NewEncoder(new(bytes.Buffer))
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(&abi.Response{
		Content:           []Content{{Type: abi.Text, Text: "text", Blob: &blob, Size: &size}},
		StructuredContent: json.RawMessage("{}"),
	})
}

// warm prepares encoding/json for a tool's types. What their own methods do with nothing must not stop the plugin.
func warm[In, Out any]() {
	defer func() { _ = recover() }()
	var in In
	var out Out
	_ = json.Unmarshal([]byte("{}"), &in)
	_, _ = json.Marshal(&out)
}
