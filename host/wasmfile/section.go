package wasmfile

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// Embed returns wasm with each of the custom sections set to its content: replaced where the module has it, once or
// more often, appended otherwise, and removed where the content is nil. Everything else stays byte for byte, so that
// embedding the same again changes nothing.
//
// It is an error if wasm is neither a core module nor a component, or if its sections are malformed.
func Embed(wasm []byte, sections map[string][]byte) ([]byte, error) {
	out := append(make([]byte, 0, len(wasm)), wasm[:min(len(wasm), len(wasmbin.Header))]...)
	err := eachSection(wasm, func(s wasmbin.Section) {
		if _, replaced := sections[s.Name]; s.ID != wasmbin.CustomSection || !replaced {
			out = append(out, wasm[s.Start:s.End]...)
		}
	})
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		if sections[name] == nil {
			continue
		}
		if out, err = appendCustom(out, name, sections[name]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// CustomSection returns the content of the first custom section with the name, and whether there is one. Malformed
// files have none after the error; Read reports what is wrong with them.
func CustomSection(wasm []byte, name string) (content []byte, ok bool) {
	_ = eachSection(wasm, func(s wasmbin.Section) {
		if s.ID == wasmbin.CustomSection && s.Name == name && content == nil {
			content = s.Content.Rest()
		}
	})
	return content, content != nil
}

func appendCustom(wasm []byte, name string, content []byte) ([]byte, error) {
	body := append(wasmbin.AppendName(nil, name), content...)
	if uint64(len(body)) > math.MaxUint32 {
		return nil, fmt.Errorf("custom section %s has %d bytes; the format allows less than 4 GiB", name, len(body))
	}
	return wasmbin.AppendSection(wasm, wasmbin.CustomSection, body), nil
}
