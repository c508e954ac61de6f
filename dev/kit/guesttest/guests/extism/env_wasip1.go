package main

import (
	"encoding/binary"
	"encoding/json"
)

// Host functions of the Extism ABI that the guest uses.

//go:wasmimport extism:host/env alloc
func alloc(n uint64) uint64

//go:wasmimport extism:host/env free
func free(offset uint64)

//go:wasmimport extism:host/env length
func length(offset uint64) uint64

//go:wasmimport extism:host/env load_u8
func loadU8(offset uint64) uint32

//go:wasmimport extism:host/env load_u64
func loadU64(offset uint64) uint64

//go:wasmimport extism:host/env store_u8
func storeU8(offset uint64, value uint32)

//go:wasmimport extism:host/env store_u64
func storeU64(offset, value uint64)

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u8
func inputLoadU8(offset uint64) uint32

//go:wasmimport extism:host/env input_load_u64
func inputLoadU64(offset uint64) uint64

//go:wasmimport extism:host/env output_set
func outputSet(offset, length uint64)

//go:wasmimport extism:host/env error_set
func errorSet(offset uint64)

//go:wasmimport extism:host/env config_get
func configGet(name uint64) uint64

//go:wasmimport extism:host/env var_get
func varGet(name uint64) uint64

//go:wasmimport extism:host/env var_set
func varSet(name, value uint64)

//go:wasmimport extism:host/env log_warn
func logWarn(message uint64)

//go:wasmimport extism:host/env http_request
func httpRequest(request, body uint64) uint64

//go:wasmimport extism:host/env http_status_code
func httpStatusCode() int32

//go:wasmimport extism:host/env http_headers
func httpHeaders() uint64

//go:wasmimport extism:host/user create_elicitation
func createElicitation(request uint64) uint64

//go:wasmimport extism:host/user create_message
func createMessage(request uint64) uint64

//go:wasmimport extism:host/user list_roots
func listRoots() uint64

//go:wasmimport extism:host/user notify_logging_message
func notifyLoggingMessage(message uint64)

//go:wasmimport extism:host/user notify_progress
func notifyProgress(report uint64)

//go:wasmimport extism:host/user notify_tool_list_changed
func notifyToolListChanged()

//go:wasmimport extism:host/user notify_resource_updated
func notifyResourceUpdated(resource uint64)

// input reads the whole input, mostly in steps of eight bytes.
func input() []byte {
	data := make([]byte, inputLength())
	i := 0
	for ; i+8 <= len(data); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], inputLoadU64(uint64(i)))
	}
	for ; i < len(data); i++ {
		data[i] = byte(inputLoadU8(uint64(i)))
	}
	return data
}

// put allocates a block with data.
func put(data []byte) uint64 {
	offset := alloc(uint64(len(data)))
	i := 0
	for ; i+8 <= len(data); i += 8 {
		storeU64(offset+uint64(i), binary.LittleEndian.Uint64(data[i:]))
	}
	for ; i < len(data); i++ {
		storeU8(offset+uint64(i), uint32(data[i]))
	}
	return offset
}

func putString(s string) uint64 { return put([]byte(s)) }

func putJSON(v any) uint64 {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return put(data)
}

// get returns the text of a block; it is empty for offset zero.
func get(offset uint64) string {
	if offset == 0 {
		return ""
	}
	data := make([]byte, length(offset))
	i := 0
	for ; i+8 <= len(data); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], loadU64(offset+uint64(i)))
	}
	for ; i < len(data); i++ {
		data[i] = byte(loadU8(offset + uint64(i)))
	}
	return string(data)
}

// output sets data as the output of the call. It frees the block at once, as some PDKs do.
func output(data []byte) int32 {
	offset := put(data)
	outputSet(offset, uint64(len(data)))
	free(offset)
	return 0
}

func outputJSON(v any) int32 {
	data, err := json.Marshal(v)
	if err != nil {
		return fail(err.Error())
	}
	return output(data)
}

// fail ends the call with an error.
func fail(text string) int32 {
	offset := putString(text)
	errorSet(offset)
	free(offset)
	return -1
}
