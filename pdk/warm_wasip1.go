package pdk

import (
	"bytes"
	"encoding/json"
	"io"
	"unsafe"

	"github.com/hako-run/hako/pdk/abi"
)

// Every call starts from the memory that _initialize left, so work done here is done once for all calls: encoding/json builds an
// encoder or decoder at the first use of a type and keeps a buffer, and Go's heap has room.

func init() {
	growBuffer()
	var request abi.Request
	_ = json.Unmarshal([]byte(`{"method":"","name":"","arguments":{},"config":{},"deadlineMs":1,"variables":{"a":"b"}}`), &request)
	blob, size := 0, int64(0)
	encoder := json.NewEncoder(new(bytes.Buffer))
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(&abi.Response{
		Content:           []Content{{Type: abi.Text, Text: "text", Blob: &blob, Size: &size}},
		StructuredContent: json.RawMessage("{}"),
	})
	growHeap()
}

// growHeap makes the heap grow beyond what the runtime began with, so that a common call finds room.
//
// On Wasm the heap grows in units of 512 KiB, each at a multiple of that. The first one after the runtime's own clears all that lies in
// front of it, up to 512 KiB; a call that did so would do it again in every call. Those after it have nothing in front. Nobody writes to
// the blocks, so they are not part of the image, and the first collection of garbage takes them.
func growHeap() {
	const unit, block = 512 << 10, 32 << 10
	allocate := func(n int) uintptr {
		allocated = make([]byte, n)
		return uintptr(unsafe.Pointer(unsafe.SliceData(allocated)))
	}
	for first := allocate(1) / unit; allocate(block)/unit == first; {
	}
	allocated = nil
}

// allocated keeps the compiler from putting the blocks of growHeap on the stack.
var allocated []byte

// growBuffer makes encoding/json keep a buffer for answers of 32 KiB, which would else grow from 64 bytes by doubling in every call. What
// it is given is as long as that, and next to nothing without its white space: the buffer stays zero, and so not part of the image.
func growBuffer() {
	text := bytes.Repeat([]byte(" "), 32<<10)
	text[0] = '0'
	_ = json.NewEncoder(io.Discard).Encode(json.RawMessage(text))
	clear(text)
}

// warm prepares encoding/json for a tool's types. What their own methods do with nothing must not stop the plugin.
func warm[In, Out any]() {
	defer func() { _ = recover() }()
	var in In
	var out Out
	_ = json.Unmarshal([]byte("{}"), &in)
	_, _ = json.Marshal(&out)
}
