package compile

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tetratelabs/wazero"
)

var errOutput = errors.New("the compiler's output is not code")

// install validates the child's output in temp and moves it into the cache at dir. The machine code itself cannot be
// validated: the compiler is trusted to keep the guest in the sandbox. But the child's output can neither crash this
// process, nor make it use much memory, nor become the code of another module.
func install(ctx context.Context, temp, dir string, stub []byte, functions int, largest int64) (string, error) {
	file, err := singleFile(temp)
	if err != nil {
		return "", err
	}
	if err := checkFile(file, functions, largest); err != nil {
		return "", fmt.Errorf("%w: %w", errOutput, err)
	}
	// Only wazero knows the file name of a module's code.
	cache, err := NewCache(temp)
	if err != nil {
		return "", err
	}
	runtime := wazero.NewRuntimeWithConfig(ctx, Config(cache))
	_, err = Load(ctx, runtime, stub)
	if err = errors.Join(err, runtime.Close(ctx), cache.Close(ctx)); err != nil {
		return "", fmt.Errorf("%w: %w", errOutput, err)
	}
	folder := filepath.Join(dir, filepath.Base(filepath.Dir(file)))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(folder, filepath.Base(file))
	return path, os.Rename(file, path)
}

// singleFile returns the only file below dir, in the only directory there.
func singleFile(dir string) (string, error) {
	for depth := range 2 {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return "", err
		}
		if len(entries) != 1 || depth == 0 && !entries[0].IsDir() || depth == 1 && !entries[0].Type().IsRegular() {
			return "", errOutput
		}
		dir = filepath.Join(dir, entries[0].Name())
	}
	return dir, nil
}

// codeMagic starts a file of wazero's.
const codeMagic = "WAZEVO"

// checkFile validates the form of a file of the cache: the prefix of NewCache, if there is one, a magic word, the
// version, the offsets of the functions, the code, its checksum, no source map and no table of exception handlers.
func checkFile(path string, functions int, largest int64) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > largest {
		return fmt.Errorf("it has %d bytes", info.Size())
	}
	r := bufio.NewReader(file)
	prefix, err := discardPrefix(r)
	header := make([]byte, len(codeMagic)+1)
	if err == nil {
		_, err = io.ReadFull(r, header)
	}
	if err != nil || string(header[:len(codeMagic)]) != codeMagic {
		return errors.New("it does not have the header of compiled code")
	}
	version := int64(header[len(codeMagic)])
	if _, err := r.Discard(int(version)); err != nil {
		return err
	}
	number := func(size int) uint64 {
		var bytes [8]byte
		if _, readErr := io.ReadFull(r, bytes[:size]); readErr != nil {
			err = errors.Join(err, readErr)
		}
		return binary.LittleEndian.Uint64(bytes[:])
	}
	if count := number(4); count != uint64(functions) {
		return fmt.Errorf("it has the code of %d functions instead of %d", count, functions)
	}
	last := uint64(0)
	for range functions {
		offset := number(8)
		if offset < last || err != nil {
			return errors.New("its functions are out of order")
		}
		last = offset
	}
	const checksum, noMap, noHandlers = 4, 1, 4
	code := number(8)
	before := prefix + int64(len(header)) + version + 4 + 8*int64(functions) + 8
	rest := info.Size() - before - checksum - noMap - noHandlers
	switch {
	case err != nil:
		return err
	case rest < 0 || code != uint64(rest) || functions > 0 && last >= code:
		return errors.New("the sizes of its parts are inconsistent")
	}
	if _, err := r.Discard(int(code) + checksum); err != nil {
		return err
	}
	if number(noMap) != 0 || number(noHandlers) != 0 || err != nil {
		return errors.New("it has data after the code")
	}
	return nil
}
