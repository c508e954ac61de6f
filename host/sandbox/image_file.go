package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hako-run/hako/host/sandbox/compile"
	"github.com/hako-run/hako/internal/wholefile"
	"github.com/hako-run/hako/pdk/abi"
)

// Image files let a later process skip the start of a plugin. An image is readable by this user only, contains nothing
// of any call, and is used only if its digest and its key match.

// imageHeader starts an image file. It is followed by the SHA-256 of the rest, the key, the number of globals, their
// values, the capture time, the number of memories, and for each its size, the number of its runs, and the runs (offset,
// length, bytes). Numbers are 64-bit little-endian.
const imageHeader = "hako image 2\n"

// imageKey is a digest of everything that an image depends on: the code, what its start could see, and its limits.
func (p *Plugin) imageKey(code *code) [sha256.Size]byte {
	mounts := []string{"/"}
	for _, mount := range p.spec.Mounts {
		mounts = append(mounts, mount.GuestPath())
	}
	modules := []string{}
	for _, module := range p.spec.Modules {
		modules = append(modules, module.Name)
	}
	data, _ := json.Marshal([]any{ // plain data always marshals
		imageHeader, abi.Version, runtimeVersion(), fmt.Sprintf("%x", code.digest),
		p.spec.Name, mounts, modules, fmt.Sprint(p.environment(code)), p.spec.Limits.Memory, p.spec.Limits.OpenFiles, uint64(compile.Features),
	})
	return sha256.Sum256(data)
}

// runtimeVersion is wazero's version in this program.
func runtimeVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == "github.com/tetratelabs/wazero" {
			return module.Version
		}
	}
	return ""
}

// imagePath is the path of the image file, or empty if the image is not stored. A start under a pinned clock is not
// representative, and what another Contract shows a guest during its start is not part of the key.
func (p *Plugin) imagePath(key [sha256.Size]byte) string {
	if p.engine.images == "" || p.spec.Clock != nil || p.spec.Contract != nil {
		return ""
	}
	return filepath.Join(p.engine.images, fmt.Sprintf("%x%s", key, imageSuffix))
}

const imageSuffix = ".image"

// loadImage returns the stored image, or nil.
func (p *Plugin) loadImage(code *code) *image {
	key := p.imageKey(code)
	path := p.imagePath(key)
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var image *image
	if err == nil {
		image, err = decodeImage(data, key, code.globals(), code.memories(), p.spec.Limits.Memory)
	}
	if err == nil && image.capturedAt > p.engine.nanotime() {
		err = errors.Join(errors.New("it is from the future"), image.close())
	}
	if err != nil {
		p.logger.Warn("the image of the plugin's start cannot be used and is made anew", "path", path, "err", err)
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // for Prune
	return image
}

// saveImage stores the image for later processes.
func (p *Plugin) saveImage(code *code, image *image) {
	key := p.imageKey(code)
	path := p.imagePath(key)
	if path == "" {
		return
	}
	if err := wholefile.Write(path, encodeImage(image, key)); err != nil {
		p.logger.Warn("store the image of the plugin's start", "err", err)
	}
}

func encodeImage(image *image, key [sha256.Size]byte) []byte {
	out := append([]byte(imageHeader), make([]byte, sha256.Size)...)
	out = append(out, key[:]...)
	number := func(n uint64) { out = binary.LittleEndian.AppendUint64(out, n) }
	number(uint64(len(image.globals)))
	for _, global := range image.globals {
		number(global)
	}
	number(uint64(image.capturedAt))
	number(uint64(len(image.memories)))
	for _, memory := range image.memories {
		number(uint64(len(memory.data)))
		number(uint64(len(memory.parts)))
		for _, part := range memory.parts {
			number(uint64(part.from))
			number(uint64(part.to - part.from))
			out = append(out, memory.data[part.from:part.to]...)
		}
	}
	body := out[len(imageHeader)+sha256.Size:]
	digest := sha256.Sum256(body)
	copy(out[len(imageHeader):], digest[:])
	return out
}

var errDamagedImage = errors.New("it is damaged")

// decodeImage validates the whole file before it creates an image. The image has that many globals and memories, and
// limit bounds the bytes of the memories.
func decodeImage(data []byte, key [sha256.Size]byte, globals, memories int, limit int64) (*image, error) {
	body, ok := bytes.CutPrefix(data, []byte(imageHeader))
	if !ok || len(body) < 2*sha256.Size {
		return nil, errDamagedImage
	}
	if digest := sha256.Sum256(body[sha256.Size:]); !bytes.Equal(digest[:], body[:sha256.Size]) {
		return nil, errDamagedImage
	}
	body = body[sha256.Size:]
	if !bytes.Equal(body[:sha256.Size], key[:]) {
		return nil, errors.New("it is that of something else")
	}
	r := &numbers{data: body[sha256.Size:]}
	if r.next() != uint64(globals) {
		return nil, errDamagedImage
	}
	image := new(image)
	for range globals {
		image.globals = append(image.globals, r.next())
	}
	image.capturedAt = int64(r.next())
	if r.next() != uint64(memories) {
		return nil, errDamagedImage
	}
	stored := make([]storedMemory, memories)
	for i := range stored {
		var err error
		if stored[i], err = r.memory(uint64(limit)); err != nil {
			return nil, err
		}
		limit -= int64(stored[i].size)
	}
	if r.short || len(r.data) > 0 {
		return nil, errDamagedImage
	}
	for _, s := range stored {
		memory, err := newImageMemory(int(s.size), s.parts)
		if err != nil {
			return nil, errors.Join(err, image.close())
		}
		image.memories = append(image.memories, memory)
	}
	return image, nil
}

// storedMemory is a linear memory in an image file: its size and the runs of it that are not zero.
type storedMemory struct {
	size uint64
	runs []run
}

type run struct {
	offset int
	bytes  []byte
}

func (s *storedMemory) parts(yield func(int, []byte) bool) {
	for _, run := range s.runs {
		if !yield(run.offset, run.bytes) {
			return
		}
	}
}

// memory reads a memory of at most limit bytes.
func (r *numbers) memory(limit uint64) (storedMemory, error) {
	m := storedMemory{size: r.next()}
	if m.size > limit || m.size%page != 0 {
		return m, errDamagedImage
	}
	for range r.next() {
		offset, length := r.next(), r.next()
		if r.short || offset > m.size || length > m.size-offset || length > uint64(len(r.data)) {
			return m, errDamagedImage
		}
		m.runs = append(m.runs, run{int(offset), r.data[:length]})
		r.data = r.data[length:]
	}
	return m, nil
}

// numbers reads integers. Past the end it returns zero and sets short.
type numbers struct {
	data  []byte
	short bool
}

func (r *numbers) next() uint64 {
	if len(r.data) < 8 {
		r.data, r.short = nil, true
		return 0
	}
	n := binary.LittleEndian.Uint64(r.data)
	r.data = r.data[8:]
	return n
}

// Prune removes images and notes that have not been used for 30 days, and temporary files of interrupted processes.
func (e *Engine) Prune() error {
	if e.images == "" {
		return nil
	}
	entries, err := os.ReadDir(e.images)
	for _, entry := range entries {
		info, infoErr := entry.Info()
		name := entry.Name()
		ours := slices.Contains([]string{imageSuffix, readySuffix, refusedSuffix, outlineSuffix}, filepath.Ext(name))
		if infoErr == nil && ours && time.Since(info.ModTime()) > unusedFileAge {
			err = errors.Join(err, os.Remove(filepath.Join(e.images, entry.Name())))
		}
	}
	return errors.Join(err, wholefile.RemoveLeftovers(e.images), compile.Clean(e.cache.dir))
}

// unusedFileAge is how long an unused image or note is kept.
const unusedFileAge = 30 * 24 * time.Hour
