package pdk

import (
	"bytes"
	"encoding/json"
	"io"
	"unsafe"

	"github.com/hako-run/hako/pdk/abi"
)

// Every call starts from the memory after _initialize, so work done here is done once for all calls: encoding/json
// builds encoders and decoders at the first use of a type and keeps a buffer, and the heap is large enough for common
// calls.

func init() {
	growBuffer()
	var request abi.Request
	_ = json.Unmarshal([]byte(
		`{"method":"","name":"","arguments":{},"config":{},"deadlineMs":1,"variables":{"a":"b"}}`), &request)
	blob, size := 0, int64(0)
	encoder := json.NewEncoder(new(bytes.Buffer))
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(&abi.Response{
		Content:           []Content{{Type: abi.Text, Text: "text", Blob: &blob, Size: &size}},
		StructuredContent: json.RawMessage("{}"),
	})
	growHeap()
}

// growHeap grows the heap beyond its initial size, so that a common call need not grow it.
//
// On Wasm the heap grows in units of 512 KiB, each at a multiple of that. Allocating the first unit after the initial
// heap clears up to 512 KiB before it; done during a call, that would be repeated in every call. Later units have
// nothing before them. The allocated blocks are never written, so they are not part of the image, and the first garbage
// collection frees them.
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

// allocated makes the blocks of growHeap escape to the heap.
var allocated []byte

// growBuffer makes encoding/json keep a buffer for 32 KiB, which would otherwise grow from 64 bytes in every call. The
// encoded text consists of white space, which is not copied to the buffer: it stays zero and is not part of the image.
func growBuffer() {
	text := bytes.Repeat([]byte(" "), 32<<10)
	text[0] = '0'
	_ = json.NewEncoder(io.Discard).Encode(json.RawMessage(text))
	clear(text)
}

// warm prepares encoding/json for a tool's types. It ignores panics of their methods on zero values.
func warm[In, Out any]() {
	defer func() { _ = recover() }()
	var in In
	var out Out
	_ = json.Unmarshal([]byte("{}"), &in)
	_, _ = json.Marshal(&out)
}
