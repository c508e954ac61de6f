// Package wasmbin reads the elements that the binary formats of WebAssembly modules and components consist of: numbers,
// names, vectors and sections. The bytes are untrusted.
//
// A function that reads creates a Reader with New and defers Catch. The methods of the Reader check every access and
// panic with an *Error, which Catch turns into the function's error. Reader.Section returns a Reader of a part; offsets
// in errors count from the start of the whole file.
//
// The specification: https://webassembly.github.io/spec/core/binary/conventions.html
package wasmbin

import (
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

// Catch is deferred by functions that use a Reader.
func Catch(err *error) {
	switch thrown := recover().(type) {
	case nil:
	case *Error:
		*err = thrown
	default:
		panic(thrown)
	}
}

// Reader reads a file, or a part of it.
type Reader struct {
	// Pos is the offset of what is read next, in the whole file.
	Pos     int
	data    []byte // the whole file
	end     int
	maxName int
}

// New returns a Reader of a file, in which names have at most maxName bytes.
func New(data []byte, maxName int) *Reader {
	return &Reader{data: data, end: len(data), maxName: maxName}
}

// Fail panics with an Error at the current position.
func (r *Reader) Fail(format string, args ...any) { r.FailAt(r.Pos, format, args...) }

// FailAt panics with an Error at an offset.
func (r *Reader) FailAt(offset int, format string, args ...any) {
	panic(&Error{offset, fmt.Sprintf(format, args...)})
}

// Limit fails if there are more than limit of the things that what names.
func (r *Reader) Limit(what string, count, limit int) {
	if count > limit {
		r.Fail("more than %d %s: hako accepts at most that many", limit, what)
	}
}

// Done reports whether everything is read.
func (r *Reader) Done() bool { return r.Pos >= r.end }

// Finish fails if something follows what has been read.
func (r *Reader) Finish(what string) {
	if !r.Done() {
		r.Fail("%d bytes are left over in %s", r.end-r.Pos, what)
	}
}

// Rest returns the bytes that are not read yet, and Since those that were read since an offset. They alias the file.
func (r *Reader) Rest() []byte           { return r.data[r.Pos:r.end:r.end] }
func (r *Reader) Since(start int) []byte { return r.data[start:r.Pos:r.Pos] }

// Peek returns the next byte without reading it.
func (r *Reader) Peek() byte {
	if r.Done() {
		r.Fail("unexpected end")
	}
	return r.data[r.Pos]
}

// Byte reads a byte.
func (r *Reader) Byte() byte {
	b := r.Peek()
	r.Pos++
	return b
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

// Discard reads n bytes.
func (r *Reader) Discard(n int) {
	if n > r.end-r.Pos {
		r.Fail("unexpected end: %d bytes are left, and %d belong here", r.end-r.Pos, n)
	}
	r.Pos += n
}

// Uint32 reads an unsigned number of at most 32 bits, and Uint64 one of at most 64 bits.
func (r *Reader) Uint32() uint32 { return uint32(r.unsigned(32)) }
func (r *Reader) Uint64() uint64 { return r.unsigned(64) }

// unsigned reads LEB128 of at most as many bytes as the bits need, of which the last byte has no bits besides.
func (r *Reader) unsigned(bits int) uint64 {
	start := r.Pos
	var v uint64
	for shift := 0; ; shift += 7 {
		b := r.Byte()
		if left := bits - shift; left <= 7 && b>>left != 0 {
			r.FailAt(start, "a number has more than %d bits", bits)
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

// DiscardSigned reads a signed number of at most so many bits. The unused bits of its last byte repeat the sign.
func (r *Reader) DiscardSigned(bits int) {
	start := r.Pos
	for left := bits; ; left -= 7 {
		b := r.Byte()
		if left <= 7 {
			if sign := int8(b<<1) >> left; b >= 0x80 || sign != 0 && sign != -1 {
				r.FailAt(start, "a signed number has more than %d bits", bits)
			}
		}
		if b < 0x80 {
			return
		}
	}
}

// length reads the length of something that follows.
func (r *Reader) length() int {
	start := r.Pos
	n := r.Uint32()
	if uint64(n) > uint64(r.end-r.Pos) {
		r.FailAt(start, "unexpected end: length %d, and %d bytes are left", n, r.end-r.Pos)
	}
	return int(n)
}

// Bytes reads a length and that many bytes. They alias the file.
func (r *Reader) Bytes() []byte {
	n := r.length()
	r.Pos += n
	return r.Since(r.Pos - n)
}

// Section reads a length and returns a Reader of that many bytes.
func (r *Reader) Section() *Reader {
	n := r.length()
	r.Pos += n
	return &Reader{data: r.data, Pos: r.Pos - n, end: r.Pos, maxName: r.maxName}
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
	if uint64(n) > uint64(r.end-r.Pos) {
		r.FailAt(start, "unexpected end: %d %s, and %d bytes are left", n, what, r.end-r.Pos)
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
