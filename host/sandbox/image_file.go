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
// values, the capture time, the size of the memory, and the runs of it (offset, length, bytes). Numbers are 64-bit
// little-endian.
const imageHeader = "hako image 1\n"

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
		abi.Version, runtimeVersion(), fmt.Sprintf("%x", code.digest),
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
		image, err = decodeImage(data, key, len(code.globals), p.spec.Limits.Memory)
	}
	if err == nil && image.capturedAt > p.engine.nanotime() {
		err = errors.Join(errors.New("it is from the future"), image.memory.close())
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
	number(uint64(len(image.memory.data)))
	for _, part := range image.memory.parts {
		number(uint64(part.from))
		number(uint64(part.to - part.from))
		out = append(out, image.memory.data[part.from:part.to]...)
	}
	body := out[len(imageHeader)+sha256.Size:]
	digest := sha256.Sum256(body)
	copy(out[len(imageHeader):], digest[:])
	return out
}

var errDamagedImage = errors.New("it is damaged")

// decodeImage validates the whole file before it creates an image.
func decodeImage(data []byte, key [sha256.Size]byte, globals int, limit int64) (*image, error) {
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
	size := r.next()
	if size > uint64(limit) || size%page != 0 || size == 0 {
		return nil, errDamagedImage
	}
	runs, err := r.runs(size)
	if err != nil {
		return nil, err
	}
	image.memory, err = newImageMemory(int(size), func(yield func(int, []byte) bool) {
		for _, run := range runs {
			if !yield(run.offset, run.bytes) {
				return
			}
		}
	})
	return image, err
}

// run is a non-zero part of a linear memory.
type run struct {
	offset int
	bytes  []byte
}

// runs reads the remaining runs of a memory of this size.
func (r *numbers) runs(size uint64) ([]run, error) {
	var list []run
	for len(r.data) > 0 {
		offset, length := r.next(), r.next()
		if offset > size || length > size-offset || length > uint64(len(r.data)) {
			return nil, errDamagedImage
		}
		list = append(list, run{int(offset), r.data[:length]})
		r.data = r.data[length:]
	}
	if r.short {
		return nil, errDamagedImage
	}
	return list, nil
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
