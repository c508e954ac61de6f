package component

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Error says why a file is no component that hako reads.
type Error struct {
	// Offset is its position, in bytes from the start of the file.
	Offset int
	// Reason names what is there, and the rule that it breaks.
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("component, offset %#x: %s", e.Offset, e.Reason) }

// reader reads the binary format up to end. Its methods panic with an *Error, which catch turns into a returned error.
type reader struct {
	data     []byte // the whole file: positions are offsets in it
	pos, end int
}

func newReader(data []byte) *reader { return &reader{data: data, end: len(data)} }

// catch is deferred by functions that use a reader.
func catch(err *error) {
	switch thrown := recover().(type) {
	case nil:
	case *Error:
		*err = thrown
	default:
		panic(thrown)
	}
}

func (r *reader) fail(format string, args ...any) {
	panic(&Error{r.pos, fmt.Sprintf(format, args...)})
}

// limit fails if there are more than limit of the things that what names.
func (r *reader) limit(what string, count, limit int) {
	if count > limit {
		r.fail("more than %d %s: hako runs components with at most that many", limit, what)
	}
}

func (r *reader) done() bool { return r.pos >= r.end }

func (r *reader) peek() byte {
	if r.done() {
		r.fail("unexpected end")
	}
	return r.data[r.pos]
}

func (r *reader) byte() byte {
	b := r.peek()
	r.pos++
	return b
}

// expect reads a byte that can only have one value.
func (r *reader) expect(want byte, what string) {
	if b := r.peek(); b != want {
		r.fail("%s is %#x, not %#x", what, b, want)
	}
	r.pos++
}

// flag reads a byte that is 0 or 1.
func (r *reader) flag(what string) bool {
	b := r.peek()
	if b > 1 {
		r.fail("%s is %#x, neither 0 nor 1", what, b)
	}
	r.pos++
	return b == 1
}

func (r *reader) uint32() uint32 {
	start := r.pos
	var v uint64
	for shift := 0; ; shift += 7 {
		b := r.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			break
		}
		if shift == 28 {
			r.pos = start
			r.fail("a number of more than 5 bytes, where an unsigned number of 32 bits belongs")
		}
	}
	if v>>32 != 0 {
		r.pos = start
		r.fail("number %d does not fit in 32 bits", v)
	}
	return uint32(v)
}

// uint64 reads an unsigned number of at most 64 bits.
func (r *reader) uint64() uint64 {
	v, n := binary.Uvarint(r.data[r.pos:r.end])
	if n == 0 {
		r.pos = r.end
		r.fail("unexpected end")
	} else if n < 0 {
		r.fail("a number that does not fit in 64 bits")
	}
	r.pos += n
	return v
}

func (r *reader) skip(n int) {
	if n > r.end-r.pos {
		r.fail("unexpected end: %d bytes are left, and %d belong here", r.end-r.pos, n)
	}
	r.pos += n
}

// bytes reads a length and that many bytes. They alias the file.
func (r *reader) bytes() []byte {
	body := r.section()
	return r.data[body.pos:body.end:body.end]
}

// section reads a length and returns a reader of that many bytes.
func (r *reader) section() *reader {
	start := r.pos
	n := r.uint32()
	if uint64(n) > uint64(r.end-r.pos) {
		rest := r.end - r.pos
		r.pos = start
		r.fail("unexpected end: length %d, and %d bytes are left", n, rest)
	}
	r.pos += int(n)
	return &reader{data: r.data, pos: r.pos - int(n), end: r.pos}
}

// finish fails if something follows what has been read.
func (r *reader) finish(what string) {
	if !r.done() {
		r.fail("%d bytes are left over in %s", r.end-r.pos, what)
	}
}

func (r *reader) name() string {
	start := r.pos
	b := r.bytes()
	r.limit("bytes in a name", len(b), maxName)
	if !utf8.Valid(b) {
		r.pos = start
		r.fail("a name is not valid UTF-8")
	}
	return string(b)
}

// count reads the number of entries of a vector. Each has at least one byte.
func (r *reader) count(what string, limit int) int {
	start := r.pos
	n := r.uint32()
	if uint64(n) > uint64(r.end-r.pos) {
		rest := r.end - r.pos
		r.pos = start
		r.fail("unexpected end: %d %s, and %d bytes are left", n, what, rest)
	}
	r.limit(what, int(n), limit)
	return int(n)
}

// vector reads a vector. Memory grows with the entries that are there, not with the announced number.
func vector[T any](r *reader, what string, limit int, entry func() T) []T {
	n := r.count(what, limit)
	list := make([]T, 0, min(n, 8))
	for range n {
		list = append(list, entry())
	}
	return list
}
