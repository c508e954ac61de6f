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
	return answer(importQuery(start(head), uint32(len(head)), start(blobs), uint32(len(blobs))))
}

func hostExec(_ context.Context, s *abi.SQLStatement) (*abi.SQLResult, error) {
	head, blobs, err := s.Encode()
	if err != nil {
		return nil, err
	}
	return answer(importExec(start(head), uint32(len(head)), start(blobs), uint32(len(blobs))))
}

func hostBegin(_ context.Context, write bool) error {
	if write {
		return failed(importBegin(1))
	}
	return failed(importBegin(0))
}

func hostCommit(context.Context) error { return failed(importCommit()) }

func hostRollback(context.Context) error { return failed(importRollback()) }

func start(data []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(data)) }

func take(length uint32) []byte {
	data := make([]byte, length)
	importTake(start(data))
	return data
}

func answer(length uint32) (*abi.SQLResult, error) {
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

// failed takes the error of that length; 0 means none.
func failed(length uint32) error {
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
