package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/hako-run/hako/host/wasm"
	"github.com/hako-run/hako/internal/wholefile"
	"github.com/hako-run/hako/pdk/abi"
)

// Image files let a later process skip the start of a plugin. An image is readable by this user only, contains nothing
// of any call, and is used only if its digest and its key match.

// imageHeader starts an image file. It is followed by the SHA-256 of the rest, the key, the number of globals, their
// values, the capture time, the number of memories, and for each its size, the number of its runs, and the runs
// (offset, length, bytes). Numbers are 64-bit little-endian.
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
		p.spec.Name, mounts, modules, fmt.Sprint(p.environment(code)), p.spec.Limits.Memory, p.spec.Limits.OpenFiles,
		uint64(wasm.Features),
	})
	return sha256.Sum256(data)
}

// imagePath is the path of the image file, or empty if the image is not stored. A start under a pinned clock is not
// representative, and what another Adapter shows a guest during its start is not part of the key.
func (p *Plugin) imagePath(key [sha256.Size]byte) string {
	if p.engine.images == "" || p.spec.Clock != nil || p.spec.Adapter != nil {
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
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var image *image
	if err == nil {
		defer file.Close()
		image, err = decodeImage(file, key, code.globals(), code.memories(), p.spec.Limits.Memory)
	}
	if err == nil && image.capturedAt > p.engine.Nanotime() {
		err = errors.Join(errors.New("it is from the future"), image.close())
	}
	if err != nil {
		p.logger.Warn("the stored image of the plugin is invalid: creating it again", "path", path, "err", err)
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

// decodeImage reads an image file once, in parts, into the memories of the image. The image has that many globals and
// memories, and limit bounds the bytes of the memories.
func decodeImage(file io.Reader, key [sha256.Size]byte, globals, memories int, limit int64) (*image, error) {
	var start [len(imageHeader) + sha256.Size]byte
	if _, err := io.ReadFull(file, start[:]); err != nil || !bytes.HasPrefix(start[:], []byte(imageHeader)) {
		return nil, errDamagedImage
	}
	digest := sha256.New()
	r := &imageReader{Reader: bufio.NewReaderSize(io.TeeReader(file, digest), imagePart)}
	var found [sha256.Size]byte
	if r.fill(found[:]); found != key {
		return nil, cmp.Or(r.err, errors.New("it is that of something else"))
	}
	image, err := r.image(globals, memories, uint64(limit))
	if err == nil && !bytes.Equal(digest.Sum(nil), start[len(imageHeader):]) {
		err = errDamagedImage
	}
	if err != nil {
		return nil, errors.Join(err, image.close())
	}
	return image, nil
}

// imagePart is the part of an image file that is in memory at once, in bytes.
const imagePart = 64 << 10

// imageReader reads an image file. After an error, numbers are zero.
type imageReader struct {
	*bufio.Reader
	err error
}

// image reads to the end of the file. If it fails, the image has the memories that have been made.
func (r *imageReader) image(globals, memories int, limit uint64) (*image, error) {
	image := new(image)
	if r.number() != uint64(globals) {
		return image, cmp.Or(r.err, errDamagedImage)
	}
	for range globals {
		image.globals = append(image.globals, r.number())
	}
	image.capturedAt = int64(r.number())
	if r.number() != uint64(memories) {
		return image, cmp.Or(r.err, errDamagedImage)
	}
	for range memories {
		size := r.number()
		if r.err != nil || size > limit || size%page != 0 {
			return image, cmp.Or(r.err, errDamagedImage)
		}
		limit -= size
		memory, err := newImageMemory(int(size), r.parts(size))
		if err != nil {
			return image, err
		}
		image.memories = append(image.memories, memory)
	}
	if _, err := r.Peek(1); r.err == nil && !errors.Is(err, io.EOF) {
		return image, cmp.Or(err, errDamagedImage)
	}
	return image, r.err
}

// parts yields the runs of a memory of this size that are not zero, in parts.
func (r *imageReader) parts(size uint64) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		buffer := make([]byte, imagePart)
		for range r.number() {
			offset, length := r.number(), r.number()
			if r.err == nil && (offset > size || length > size-offset) {
				r.err = errDamagedImage
			}
			for length > 0 && r.err == nil {
				part := buffer[:min(length, imagePart)]
				if r.fill(part); r.err != nil || !yield(int(offset), part) {
					return
				}
				offset += uint64(len(part))
				length -= uint64(len(part))
			}
			if r.err != nil {
				return
			}
		}
	}
}

func (r *imageReader) fill(data []byte) {
	if r.err != nil {
		return
	}
	if _, r.err = io.ReadFull(r.Reader, data); errors.Is(r.err, io.EOF) || errors.Is(r.err, io.ErrUnexpectedEOF) {
		r.err = errDamagedImage
	}
}

func (r *imageReader) number() uint64 {
	var number [8]byte
	if r.fill(number[:]); r.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(number[:])
}
