package sandbox

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

// startData holds the data segments that compiled code is loaded without (rewrite.Stub). They are read from the plugin
// when an instance starts, and kept only until there is an image: the instances created from it do not need them.
type startData struct {
	mu sync.Mutex
	// source is the digest of the plugin file, or zero if the code has its data.
	source [sha256.Size]byte
	// segments are the segments of each module, or nil if they have to be read.
	segments [][]rewrite.Segment
}

var errPluginChanged = errors.New("the file has changed since its code was loaded: put the old file back, or call " +
	"again once the new one is in service")

// load returns the segments for a start.
func (d *startData) load(p *Plugin) ([][]rewrite.Segment, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.segments != nil || d.source == [sha256.Size]byte{} {
		return d.segments, nil
	}
	wasm, err := p.spec.Wasm()
	if err == nil && sha256.Sum256(wasm) != d.source {
		err = errPluginChanged
	}
	if err == nil {
		d.segments, err = dataSegments(wasm)
	}
	if err != nil {
		return nil, fmt.Errorf("read the data of the plugin: %w", err)
	}
	return d.segments, nil
}

// dataSegments returns the segments of each core module.
func dataSegments(wasm []byte) ([][]rewrite.Segment, error) {
	if !component.IsComponent(wasm) {
		segments, err := rewrite.Segments(wasm)
		return [][]rewrite.Segment{segments}, err
	}
	decoded, err := component.Decode(wasm)
	if err != nil {
		return nil, err
	}
	var all [][]rewrite.Segment
	for _, module := range decoded.CoreModules() {
		segments, err := rewrite.Segments(module.Code)
		if err != nil {
			return nil, err
		}
		all = append(all, segments)
	}
	return all, nil
}

// drop frees the segments. A later start reads them again: instances that start at the same moment may differ in
// whether they can be copied.
func (d *startData) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.segments = nil
}
