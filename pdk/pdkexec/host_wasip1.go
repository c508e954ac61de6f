package pdkexec

import (
	"context"
	"encoding/json"
	"fmt"
	"unsafe"

	"github.com/hako-run/hako/pdk/abi"
)

//go:wasmimport hako:core/1 take
func importTake(p unsafe.Pointer)

//go:wasmimport hako:exec/1 start
func importStart(head unsafe.Pointer, length uint32) uint32

//go:wasmimport hako:exec/1 read
func importRead(handle int32, p unsafe.Pointer, capacity uint32) int64

//go:wasmimport hako:exec/1 wait
func importWait(handle int32) uint32

//go:wasmimport hako:exec/1 close
func importClose(handle int32)

// handle is a command of the host.
type handle int32

func hostStart(_ context.Context, request *abi.ExecRequest) (source, error) {
	encoded, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encode the command: %w", err)
	}
	var started abi.ExecStarted
	if err := takeJSON(importStart(unsafe.Pointer(unsafe.SliceData(encoded)), uint32(len(encoded))),
		&started); err != nil {
		return nil, err
	}
	if started.Error != nil {
		return nil, started.Error
	}
	return handle(started.Handle), nil
}

func (h handle) read(p []byte) (stream, n int, err error) {
	got := importRead(int32(h), unsafe.Pointer(unsafe.SliceData(p)), uint32(len(p)))
	if got >= 0 {
		return int(got >> 32), int(uint32(got)), nil
	}
	failure := new(abi.Error)
	if err := takeJSON(uint32(-got), failure); err != nil {
		return 0, 0, err
	}
	return 0, 0, failure
}

func (h handle) wait() (*abi.ExecExit, error) {
	exit := new(abi.ExecExit)
	return exit, takeJSON(importWait(int32(h)), exit)
}

func (h handle) close() { importClose(int32(h)) }

// takeJSON takes length bytes from the host and decodes them.
func takeJSON(length uint32, into any) error {
	data := make([]byte, length)
	importTake(unsafe.Pointer(unsafe.SliceData(data)))
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decode the host's answer: %w", err)
	}
	return nil
}
