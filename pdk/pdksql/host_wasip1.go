package pdksql

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/hako-run/hako/pdk/abi"
)

//go:wasmimport hako:core/1 take
func importTake(p unsafe.Pointer)

//go:wasmimport hako:sql/1 query
func importQuery(head unsafe.Pointer, headLength uint32, blobs unsafe.Pointer, blobsLength uint32) uint32

//go:wasmimport hako:sql/1 exec
func importExec(head unsafe.Pointer, headLength uint32, blobs unsafe.Pointer, blobsLength uint32) uint32

//go:wasmimport hako:sql/1 blobs
func importBlobs() uint32

//go:wasmimport hako:sql/1 begin
func importBegin(write int32) uint32

//go:wasmimport hako:sql/1 commit
func importCommit() uint32

//go:wasmimport hako:sql/1 rollback
func importRollback() uint32

func hostQuery(_ context.Context, s *abi.SQLStatement) (*abi.SQLResult, error) {
	head, blobs, err := s.Encode()
	if err != nil {
		return nil, err
	}
	return takeResult(importQuery(pointer(head), uint32(len(head)), pointer(blobs), uint32(len(blobs))))
}

func hostExec(_ context.Context, s *abi.SQLStatement) (*abi.SQLResult, error) {
	head, blobs, err := s.Encode()
	if err != nil {
		return nil, err
	}
	return takeResult(importExec(pointer(head), uint32(len(head)), pointer(blobs), uint32(len(blobs))))
}

func hostBegin(_ context.Context, write bool) error {
	if write {
		return takeError(importBegin(1))
	}
	return takeError(importBegin(0))
}

func hostCommit(context.Context) error { return takeError(importCommit()) }

func hostRollback(context.Context) error { return takeError(importRollback()) }

func pointer(data []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(data)) }

func take(length uint32) []byte {
	data := make([]byte, length)
	importTake(pointer(data))
	return data
}

func takeResult(length uint32) (*abi.SQLResult, error) {
	head := take(length)
	var blobs []byte
	if length := importBlobs(); length > 0 {
		blobs = take(length)
	}
	result, err := abi.DecodeSQLResult(head, blobs)
	if err != nil {
		return nil, fmt.Errorf("decode the database's answer: %w", err)
	}
	return result, nil
}

// takeError takes an error of length bytes from the host; 0 means none.
func takeError(length uint32) error {
	if length == 0 {
		return nil
	}
	result, err := abi.DecodeSQLResult(take(length), nil)
	switch {
	case err != nil:
		return fmt.Errorf("decode the database's error: %w", err)
	case result.Error == nil:
		return errors.New("the database failed without saying why")
	}
	return result.Error
}
