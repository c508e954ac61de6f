// Package wasmbin reads the elements that the binary formats of WebAssembly modules and components consist of: numbers,
// names, vectors and sections. The bytes are untrusted.
//
// A function that reads creates a Reader with New and defers Catch. The methods of the Reader check every access and
// throw an *Error, which Catch turns into the function's error; Throw does the same with other errors. Reader.Section
// returns a Reader of a part; offsets in errors count from the start of the whole file. Reader.Sections and
// Reader.Module read what all files and all core modules consist of, Reader.Limits the sizes of memories and tables.
//
// The specification: https://webassembly.github.io/spec/core/binary/conventions.html
package wasmbin

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Error explains why the bytes are not in the format, or which limit they exceed.
type Error struct {
	// Offset is its position, in bytes from the start of the file.
	Offset int
	// Reason names what is there, and the rule that it breaks.
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("offset %#x: %s", e.Offset, e.Reason) }

// thrown is the panic value of Throw.
type thrown struct{ error }

// Throw panics with an error that Catch returns.
func Throw(err error) { panic(thrown{err}) }

// Catch is deferred by functions that use a Reader.
func Catch(err *error) {
	switch panicked := recover().(type) {
	case nil:
	case thrown:
		*err = panicked.error
	default:
		panic(panicked)
	}
}

// Reader reads a file, or a part of it.
type Reader struct {
	// Pos is the offset of what is read next, in the whole file.
	Pos     int
	data    []byte // the file up to the end of the part
	maxName int
}

// New returns a Reader of a file, in which names have at most maxName bytes.
func New(data []byte, maxName int) *Reader { return &Reader{data: data, maxName: maxName} }

// Fail throws an Error at the current position.
func (r *Reader) Fail(format string, args ...any) { r.FailAt(r.Pos, format, args...) }

// FailAt throws an Error at an offset.
func (r *Reader) FailAt(offset int, format string, args ...any) {
	Throw(&Error{offset, fmt.Sprintf(format, args...)})
}

// Limit fails if there are more than limit of the things that what names.
func (r *Reader) Limit(what string, count, limit int) {
	if count > limit {
		r.Fail("more than %d %s: at most that many are accepted", limit, what)
	}
}

// Done reports whether everything is read.
func (r *Reader) Done() bool { return r.Pos >= len(r.data) }

// Finish fails if something follows what has been read.
func (r *Reader) Finish(what string) {
	if !r.Done() {
		r.Fail("%d bytes are left over in %s", r.left(), what)
	}
}

func (r *Reader) left() int { return len(r.data) - r.Pos }

// Rest returns the bytes that are not read yet, and Since those that were read since an offset. They alias the file.
func (r *Reader) Rest() []byte           { return r.data[r.Pos:len(r.data):len(r.data)] }
func (r *Reader) Since(start int) []byte { return r.data[start:r.Pos:r.Pos] }

// Peek returns the next byte without reading it.
func (r *Reader) Peek() byte {
	if uint(r.Pos) >= uint(len(r.data)) {
		r.truncated()
	}
	return r.data[r.Pos]
}

func (r *Reader) truncated() { r.Fail("unexpected end") }

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if uint(r.Pos) >= uint(len(r.data)) {
		r.truncated()
	}
	r.Pos++
	return r.data[r.Pos-1]
}

// Expect reads a byte that can only have one value.
func (r *Reader) Expect(want byte, what string) {
	if b := r.Peek(); b != want {
		r.Fail("%s is %#x, not %#x", what, b, want)
	}
	r.Pos++
}

// Flag reads a byte that is 0 or 1.
func (r *Reader) Flag(what string) bool {
	b := r.Peek()
	if b > 1 {
		r.Fail("%s is %#x, neither 0 nor 1", what, b)
	}
	r.Pos++
	return b == 1
}

// Next reads n bytes. They alias the file.
func (r *Reader) Next(n int) []byte {
	if uint(n) > uint(r.left()) {
		r.missing(n)
	}
	r.Pos += n
	return r.Since(r.Pos - n)
}

func (r *Reader) missing(n int) {
	r.Fail("unexpected end: %d bytes are left, and %d belong here", r.left(), n)
}

// Uint32 reads an unsigned number of at most 32 bits.
func (r *Reader) Uint32() uint32 {
	if i := r.Pos; i < len(r.data) && r.data[i] < 0x80 { // most numbers have one byte
		r.Pos++
		return uint32(r.data[i])
	}
	return uint32(r.unsigned(32))
}

// Uint64 reads an unsigned number of at most 64 bits.
func (r *Reader) Uint64() uint64 { return r.unsigned(64) }

// unsigned reads LEB128 of at most as many bytes as the bits need, of which the last byte has no bits besides.
func (r *Reader) unsigned(bits int) uint64 {
	v, n := binary.Uvarint(r.data[min(r.Pos, len(r.data)):])
	switch {
	case n == 0:
		r.FailAt(len(r.data), "unexpected end")
	case n < 0, n > (bits+6)/7, v>>bits != 0:
		r.Fail("a number has more than %d bits", bits)
	}
	r.Pos += n
	return v
}

// Signed reads a signed number of at most so many bits. The unused bits of its last byte repeat the sign.
func (r *Reader) Signed(bits int) int64 {
	var v int64
	for i, shift := r.Pos, 0; ; i, shift = i+1, shift+7 {
		if i >= len(r.data) {
			r.FailAt(i, "unexpected end")
		}
		b := r.data[i]
		if left := bits - shift; left <= 7 {
			if sign := int8(b<<1) >> left; b >= 0x80 || sign != 0 && sign != -1 {
				r.Fail("a signed number has more than %d bits", bits)
			}
		}
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			r.Pos = i + 1
			unused := max(57-shift, 0)
			return v << unused >> unused
		}
	}
}

// length reads the length of something that follows.
func (r *Reader) length() int {
	start := r.Pos
	n := r.Uint32()
	if uint64(n) > uint64(r.left()) {
		r.FailAt(start, "unexpected end: length %d, and %d bytes are left", n, r.left())
	}
	return int(n)
}

// Bytes reads a length and that many bytes. They alias the file.
func (r *Reader) Bytes() []byte {
	return r.Next(r.length())
}

// Section reads a length and returns a Reader of that many bytes.
func (r *Reader) Section() *Reader {
	n := r.length()
	r.Pos += n
	return &Reader{data: r.data[:r.Pos:r.Pos], Pos: r.Pos - n, maxName: r.maxName}
}

// Name reads a name, which is UTF-8.
func (r *Reader) Name() string {
	start := r.Pos
	b := r.Bytes()
	r.Limit("bytes in a name", len(b), r.maxName)
	if !utf8.Valid(b) {
		r.FailAt(start, "a name is not valid UTF-8")
	}
	return string(b)
}

// Count reads the number of entries of a vector. Each has at least one byte.
func (r *Reader) Count(what string, limit int) int {
	start := r.Pos
	n := r.Uint32()
	if uint64(n) > uint64(r.left()) {
		r.FailAt(start, "unexpected end: %d %s, and %d bytes are left", n, what, r.left())
	}
	r.Limit(what, int(n), limit)
	return int(n)
}

// Vector reads a vector. Memory grows with the entries that are there, not with the announced number.
func Vector[T any](r *Reader, what string, limit int, entry func() T) []T {
	n := r.Count(what, limit)
	list := make([]T, 0, min(n, 8))
	for range n {
		list = append(list, entry())
	}
	return list
}
