package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"
)

var (
	wasmMagic = []byte("\x00asm")
	gzipMagic = []byte("\x1f\x8b")
	zstdMagic = []byte("\x28\xb5\x2f\xfd")
)

// pluginFile is the name of the plugin in an image for hyper-mcp.
const pluginFile = "plugin.wasm"

const (
	// maxFiles bounds the entries of a tar that are looked at.
	maxFiles = 10_000
	// maxTarFactor times the size of the largest plugin is the most that is unpacked from the layers of an image.
	maxTarFactor = 2
)

// unpacker looks for the plugin in the layers of one image.
type unpacker struct {
	// limit is the size of the largest plugin.
	limit int64
	// unpacked and files are the remaining bytes that may be unpacked, and read from files. They differ because a tar
	// describes sparse files in a few bytes.
	unpacked, files int64
}

func newUnpacker(limit int64) *unpacker {
	return &unpacker{limit, maxTarFactor * limit, maxTarFactor * limit}
}

// find returns the Wasm file in a layer: the layer itself, or a file of its tar, which may be compressed. In a tar,
// plugin.wasm comes before other names that end in .wasm, and those higher up come first. It returns nil if the layer
// has none, and fails if it is too large or the context ends.
func (u *unpacker) find(ctx context.Context, layer []byte) ([]byte, error) {
	if bytes.HasPrefix(layer, wasmMagic) {
		return layer, nil
	}
	var unpacked io.Reader = bytes.NewReader(layer)
	switch {
	case bytes.HasPrefix(layer, gzipMagic):
		r, err := gzip.NewReader(unpacked)
		if err != nil {
			return nil, nil //nolint:nilerr // it is no tar, and so has none
		}
		unpacked = r
	case bytes.HasPrefix(layer, zstdMagic):
		r, err := zstd.NewReader(unpacked, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(u.limit)))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		unpacked = r
	}
	wasm, err := u.findInTar(&boundedReader{ctx, unpacked, &u.unpacked})
	if errors.Is(err, errUnpacked) || errors.Is(err, errTooLarge) || ctx.Err() != nil {
		return nil, err
	}
	return wasm, nil // what cannot be read as a tar has none
}

func (u *unpacker) findInTar(r io.Reader) (best []byte, err error) {
	archive, bestRank := tar.NewReader(r), 0
	for range maxFiles {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return best, nil
		case err != nil:
			return nil, err
		}
		rank := rankOf(header)
		if rank == 0 || best != nil && rank >= bestRank {
			continue
		}
		if header.Size > u.limit {
			return nil, tooLarge("the plugin in a layer", u.limit)
		}
		if u.files -= header.Size; u.files < 0 {
			return nil, errUnpacked
		}
		wasm, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		if bytes.HasPrefix(wasm, wasmMagic) {
			best, bestRank = wasm, rank
		}
	}
	return nil, errUnpacked
}

// otherName is added to the rank of names besides pluginFile. No name has so many folders.
const otherName = 1 << 30

// rankOf is lower for files that are more likely the plugin, and 0 for what is none.
func rankOf(header *tar.Header) int {
	// A name is only compared, never opened, so it does not matter where ".." in it would lead.
	name := path.Clean("/" + header.Name)
	if header.Typeflag != tar.TypeReg || !strings.HasSuffix(name, ".wasm") {
		return 0
	}
	depth := strings.Count(name, "/")
	if path.Base(name) == pluginFile {
		return depth
	}
	return depth + otherName
}

var errUnpacked = errors.New("its layers unpack to more than a plugin with a few files beside it")

// boundedReader fails after n bytes, where an io.LimitReader would end as if the tar were cut off, and when the context
// has ended.
type boundedReader struct {
	ctx context.Context
	r   io.Reader
	n   *int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if *b.n <= 0 {
		return 0, errUnpacked
	}
	n, err := b.r.Read(p[:min(int64(len(p)), *b.n)])
	*b.n -= int64(n)
	return n, err
}
