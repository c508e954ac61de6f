package pdk

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"unsafe"

	"github.com/hako-run/hako/pdk/abi"
)

// The linker drops functions that are not called. So only plugins that use Fetch or Send import this module.

//go:wasmimport hako:http/1 request
func importHTTPRequest(head unsafe.Pointer, headLength uint32, body unsafe.Pointer, bodyLength uint32) uint32

//go:wasmimport hako:http/1 start
func importHTTPStart(head unsafe.Pointer, headLength uint32, body unsafe.Pointer, bodyLength uint32) int32

//go:wasmimport hako:http/1 wait
func importHTTPWait(handle int32) uint32

//go:wasmimport hako:http/1 read
func importHTTPRead(handle int32, p unsafe.Pointer, capacity uint32) int32

//go:wasmimport hako:http/1 close
func importHTTPClose(handle int32)

func hostSend(_ context.Context, head *abi.HTTPRequest, body []byte) (*abi.HTTPResponse, io.ReadCloser, error) {
	encoded, err := json.Marshal(head)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the request: %w", err)
	}
	return response(importHTTPRequest(unsafe.Pointer(unsafe.SliceData(encoded)), uint32(len(encoded)),
		unsafe.Pointer(unsafe.SliceData(body)), uint32(len(body))))
}

// started is a request that the host sends.
type started struct{ handle int32 }

func hostStart(_ context.Context, head *abi.HTTPRequest, body []byte) (*started, error) {
	encoded, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	handle := importHTTPStart(unsafe.Pointer(unsafe.SliceData(encoded)), uint32(len(encoded)),
		unsafe.Pointer(unsafe.SliceData(body)), uint32(len(body)))
	if handle < 0 {
		return nil, takeError(uint32(-handle))
	}
	return &started{handle}, nil
}

func (s *started) wait() (*abi.HTTPResponse, io.ReadCloser, error) {
	return response(importHTTPWait(s.handle))
}

func (s *started) cancel() { importHTTPClose(s.handle) }

// response takes the head of a response.
func response(length uint32) (*abi.HTTPResponse, io.ReadCloser, error) {
	var answer abi.HTTPResponse
	if err := json.Unmarshal(take(length), &answer); err != nil {
		return nil, nil, fmt.Errorf("decode the response head: %w", err)
	}
	if answer.Error != nil {
		return nil, nil, answer.Error
	}
	return &answer, &responseBody{handle: answer.Handle}, nil
}

// responseBody reads a response body from the host.
type responseBody struct {
	handle int32
	err    error
}

func (b *responseBody) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	n := importHTTPRead(b.handle, unsafe.Pointer(unsafe.SliceData(p)), uint32(len(p)))
	switch {
	case n > 0:
		return int(n), nil
	case n == 0:
		b.err = io.EOF
	default:
		b.err = takeError(uint32(-n))
	}
	return 0, b.err
}

// takeError takes an error of that length.
func takeError(length uint32) *abi.Error {
	failure := new(abi.Error)
	if err := json.Unmarshal(take(length), failure); err != nil {
		return &abi.Error{Code: abi.CodeInternal, Message: "unreadable error from the host"}
	}
	return failure
}

func (b *responseBody) Close() error {
	importHTTPClose(b.handle)
	return nil
}
