package pdktools

import (
	"context"
	"encoding/json"
	"fmt"
	"unsafe"

	"github.com/hako-run/hako/pdk/abi"
)

//go:wasmimport hako:core/1 take
func importTake(p unsafe.Pointer)

//go:wasmimport hako:tools/1 start
func importStart(call unsafe.Pointer, length uint32) int32

//go:wasmimport hako:tools/1 wait
func importWait() uint32

//go:wasmimport hako:tools/1 list
func importList(query unsafe.Pointer, length uint32) uint32

// ends are the ends of calls that came while another one was waited for, by handle.
var ends = map[int32]*abi.ToolEnd{}

func hostStart(_ context.Context, call *abi.ToolCall) (wait func() (*abi.ToolEnd, error), err error) {
	encoded, err := json.Marshal(call)
	if err != nil {
		return nil, fmt.Errorf("encode the call of %s: %w", call.Name, err)
	}
	handle := importStart(unsafe.Pointer(unsafe.SliceData(encoded)), uint32(len(encoded)))
	if handle < 0 {
		failure := new(abi.Error)
		if err := takeJSON(uint32(-handle), failure); err != nil {
			return nil, err
		}
		return nil, failure
	}
	delete(ends, handle) // of an earlier call of the plugin, if the instance has served one
	return func() (*abi.ToolEnd, error) { return waitFor(handle) }, nil
}

// waitFor waits until the call with the handle has ended. The host returns whichever call ends first.
func waitFor(handle int32) (*abi.ToolEnd, error) {
	for {
		if end := ends[handle]; end != nil {
			delete(ends, handle)
			return end, nil
		}
		end := new(abi.ToolEnd)
		if err := takeJSON(importWait(), end); err != nil {
			return nil, err
		}
		if end.Handle == 0 {
			return end, nil
		}
		ends[end.Handle] = end
	}
}

func hostList(_ context.Context, query *abi.ToolQuery) (*abi.ToolList, error) {
	encoded, err := json.Marshal(query)
	if err != nil {
		return nil, fmt.Errorf("encode the query: %w", err)
	}
	list := new(abi.ToolList)
	return list, takeJSON(importList(unsafe.Pointer(unsafe.SliceData(encoded)), uint32(len(encoded))), list)
}

// takeJSON takes length bytes from the host and decodes them.
func takeJSON(length uint32, into any) error {
	data := make([]byte, length)
	importTake(unsafe.Pointer(unsafe.SliceData(data)))
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decode the host's answer: %w", err)
	}
	return nil
}
