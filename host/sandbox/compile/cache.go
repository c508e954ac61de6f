package compile

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"reflect"

	"github.com/tetratelabs/wazero"
)

// NewCache returns wazero's cache of compiled code at dir. On Linux it maps the code of large modules instead of
// copying it: processes share its pages, and those that nothing runs are never in memory. In the files of such modules
// a prefix precedes what wazero writes, so that the code begins at a page.
//
// wazero offers no way to replace its reader of files. If another version of it has none where NewCache expects it, the
// cache is wazero's own, and a test fails.
func NewCache(dir string) (wazero.CompilationCache, error) {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, err
	}
	field := reflect.ValueOf(cache).Elem().FieldByName("fileCache")
	aligned := reflect.TypeFor[alignedFiles]()
	if field.IsValid() && field.Kind() == reflect.Interface && aligned.Implements(field.Type()) {
		field = reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem() // settable, though it is not exported
		if files, ok := field.Interface().(codeFiles); ok {
			field.Set(reflect.ValueOf(alignedFiles{files}))
		}
	}
	return cache, nil
}

// codeFiles is wazero's filecache.Cache, whose package is internal.
type codeFiles interface {
	Get(key [sha256.Size]byte) (content io.ReadCloser, ok bool, err error)
	Add(key [sha256.Size]byte, content io.Reader) error
	Delete(key [sha256.Size]byte) error
}

// alignedFiles adds the prefix to files and removes it.
type alignedFiles struct{ codeFiles }

// Add stores what wazero wrote, behind a prefix if its code is large.
func (c alignedFiles) Add(key [sha256.Size]byte, content io.Reader) error {
	r := bufio.NewReader(content)
	return c.codeFiles.Add(key, io.MultiReader(bytes.NewReader(prefixFor(r)), r))
}

// Get opens a file and skips its prefix.
func (c alignedFiles) Get(key [sha256.Size]byte) (io.ReadCloser, bool, error) {
	content, ok, err := c.codeFiles.Get(key)
	file, isFile := content.(*os.File)
	if !ok || err != nil || !isFile {
		return content, ok, err
	}
	r := &codeReader{file: file, buffer: bufio.NewReader(file)}
	r.position, err = discardPrefix(r.buffer)
	if err != nil {
		return nil, false, errors.Join(err, file.Close())
	}
	return r, true, nil
}

// prefixMark starts a prefix. The length of the prefix follows in four bytes, little-endian, and then zeros.
const prefixMark = "HAKOCODE"

const prefixHeader = len(prefixMark) + 4

// prefixFor returns the prefix for what r reads, or nil if it has little code or another form.
func prefixFor(r *bufio.Reader) []byte {
	start, err := r.Peek(len(codeMagic) + 1)
	if err != nil || string(start[:len(codeMagic)]) != codeMagic {
		return nil
	}
	count := len(start) + int(start[len(codeMagic)])
	start, err = r.Peek(count + 4)
	if err != nil {
		return nil
	}
	functions := int(binary.LittleEndian.Uint32(start[count:]))
	if functions < mappedFunctions {
		return nil
	}
	code := count + 4 + 8*functions + 8
	alignment := os.Getpagesize()
	prefix := make([]byte, prefixHeader+alignment-1-(code+prefixHeader-1)%alignment)
	copy(prefix, prefixMark)
	binary.LittleEndian.PutUint32(prefix[len(prefixMark):], uint32(len(prefix)))
	return prefix
}

// mappedFunctions is the number of functions from which on a module's code is aligned, and mappedSize the size of the
// code from which on it is mapped. Less is not worth the padding and the calls of the kernel.
const (
	mappedFunctions = 64
	mappedSize      = 64 << 10
)

// damagedCode starts wazero's errors about code in the cache that it cannot read.
const damagedCode = "compilationcache: "

var errPrefix = errors.New(damagedCode + "the prefix of the code is damaged")

// discardPrefix skips the prefix, if there is one, and returns its length.
func discardPrefix(r *bufio.Reader) (int64, error) {
	start, err := r.Peek(prefixHeader)
	if err != nil || string(start[:len(prefixMark)]) != prefixMark {
		return 0, nil // without a prefix, or too short for anything
	}
	length := binary.LittleEndian.Uint32(start[len(prefixMark):])
	if length < uint32(prefixHeader) || length > 1<<20 {
		return 0, errPrefix
	}
	if _, err := r.Discard(int(length)); err != nil {
		return 0, errPrefix
	}
	return int64(length), nil
}

// codeReader reads a file for wazero. The only large read is that of the code.
//
// wazero reads the code into memory that it has just allocated, computes the checksum of that memory, and then reads
// the checksum to compare. A codeReader leaves the memory untouched, so that it is zero and takes no pages. When wazero
// reads the checksum, the codeReader checks the file itself, in parts, maps the code over the memory, and returns the
// checksum of zeros.
type codeReader struct {
	file     *os.File
	buffer   *bufio.Reader
	position int64 // of the buffer's next byte in the file
	// code is the memory for the code, which begins at offset, while wazero computes its checksum.
	code   []byte
	offset int64
}

// Read fills p, unless the file ends.
func (r *codeReader) Read(p []byte) (int, error) {
	if r.code != nil {
		return r.readChecksum(p)
	}
	if len(p) >= mappedSize {
		if info, err := r.file.Stat(); err != nil || int64(len(p)) > info.Size()-r.position {
			return 0, errors.Join(err, errTooShort)
		}
		r.code, r.offset = p, r.position
		r.position += int64(len(p))
		return len(p), nil
	}
	n, err := io.ReadFull(r.buffer, p)
	r.position += int64(n)
	return n, err
}

var (
	errTooShort = errors.New("the file is shorter than its code")
	errChecksum = errors.New("the checksum of the code does not match")
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
)

// checkedPart is the part of the code that is in memory at once while its checksum is computed, in bytes.
const checkedPart = 64 << 10

// readChecksum reads the checksum that follows the code, compares it with that of the file, and maps the code.
func (r *codeReader) readChecksum(p []byte) (int, error) {
	code := r.code
	r.code = nil
	var found, zeros uint32
	var zero [checkedPart]byte
	part := make([]byte, checkedPart)
	for from := 0; from < len(code); from += checkedPart {
		part = part[:min(checkedPart, len(code)-from)]
		if _, err := r.file.ReadAt(part, r.offset+int64(from)); err != nil {
			return 0, err
		}
		found = crc32.Update(found, castagnoli, part)
		zeros = crc32.Update(zeros, castagnoli, zero[:len(part)])
	}
	if _, err := r.file.Seek(r.position, io.SeekStart); err != nil {
		return 0, err
	}
	r.buffer.Reset(r.file)
	n, err := io.ReadFull(r.buffer, p)
	r.position += int64(n)
	switch {
	case err != nil:
		return n, err
	case n != crc32.Size || binary.LittleEndian.Uint32(p) != found:
		return 0, errChecksum
	}
	if mapCode(r.file, r.offset, code) != nil { // the file system may forbid to execute
		if _, err := r.file.ReadAt(code, r.offset); err != nil {
			return 0, err
		}
	}
	binary.LittleEndian.PutUint32(p, zeros)
	return n, nil
}

func (r *codeReader) Close() error { return r.file.Close() }
