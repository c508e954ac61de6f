package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// MaxModuleBytes is the default limit of ReadFile: 64 MiB.
const MaxModuleBytes = 64 << 20

// ReadFile returns the bytes of the plugin file at path. Where a manifest lies beside it, NAME.yaml next to NAME.wasm,
// the bytes are those with that manifest embedded, so that packing a plugin later changes neither its digest nor a
// consent to it. A component or a plugin made for Extism without a manifest gets one with the name of the file, which asks
// for what wassette's policy or Extism's manifest beside it allows; SidePaths has the names of these files.
//
// It is an error if the file is not a regular file, if it has more than limit bytes (zero means MaxModuleBytes), or if
// there is a manifest inside and another one beside it.
func ReadFile(path string, limit int64) ([]byte, error) {
	if limit == 0 {
		limit = MaxModuleBytes
	}
	wasm, err := readRegular(path, limit)
	if err != nil {
		return nil, err
	}
	beside := SidePaths(path)[0]
	manifest, err := readRegular(beside, MaxBytes)
	if errors.Is(err, os.ErrNotExist) {
		if manifest, err = draft(path, wasm); manifest == nil && err == nil {
			return wasm, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if inside, ok := Inside(wasm); ok && !bytes.Equal(inside, manifest) {
		return nil, fmt.Errorf("%s contains a manifest that differs from the one beside it: remove %s, or embed it "+
			"with: hako plugin pack", path, beside)
	}
	if wasm, err = wasmfile.Embed(wasm, map[string][]byte{abi.ManifestSection: manifest}); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return wasm, nil
}

// SidePaths are the files beside the plugin file at path that ReadFile reads, if they exist: its manifest NAME.yaml and,
// for a plugin without a manifest, wassette's policy as NAME.policy.yaml or policy.yaml, or Extism's manifest.json. The
// last two may be for several plugins of the folder.
func SidePaths(path string) [4]string {
	base, dir := strings.TrimSuffix(path, ".wasm"), filepath.Dir(path)
	return [4]string{base + ".yaml", base + ".policy.yaml", filepath.Join(dir, "policy.yaml"),
		filepath.Join(dir, "manifest.json")}
}

// Inside returns the manifest in a plugin file, and whether it has one.
func Inside(wasm []byte) ([]byte, bool) { return wasmfile.CustomSection(wasm, abi.ManifestSection) }

func readRegular(path string, limit int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than the %d bytes allowed: raise the limit if it is meant to", path, limit)
	}
	return data, nil
}

// openRegular opens path without waiting for a writer if it is a named pipe.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.Open(path)
}
