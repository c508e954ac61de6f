package rewrite

import (
	"bytes"
	"encoding/binary"
	"errors"
)

var (
	errTruncated = errors.New("the module ends in the middle of something")
	errNumber    = errors.New("the module has a number that does not fit")
)

// reader reads the binary format. After the first error, every read returns a zero value.
type reader struct {
	data []byte
	pos  int
	err  error
}

func (r *reader) done() bool { return r.pos >= len(r.data) }

func (r *reader) rest() []byte { return r.data[min(r.pos, len(r.data)):] }

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.pos = len(r.data)
}

func (r *reader) byte() byte {
	if r.pos >= len(r.data) {
		r.fail(errTruncated)
		return 0
	}
	r.pos++
	return r.data[r.pos-1]
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.data)-r.pos {
		r.fail(errTruncated)
		return nil
	}
	r.pos += n
	return r.data[r.pos-n : r.pos]
}

// uint reads an unsigned LEB128 number of at most 64 bits.
func (r *reader) uint() uint64 {
	if r.pos < len(r.data) && r.data[r.pos] < 0x80 { // most numbers have one byte
		r.pos++
		return uint64(r.data[r.pos-1])
	}
	v, n := binary.Uvarint(r.data[min(r.pos, len(r.data)):])
	if n <= 0 {
		r.fail(leb128Error(n))
		return 0
	}
	r.pos += n
	return v
}

// int reads a signed LEB128 number of at most 64 bits.
func (r *reader) int() int64 {
	var v int64
	for shift := 0; shift < 7*binary.MaxVarintLen64; shift += 7 {
		b := r.byte()
		v |= int64(b&0x7f) << shift
		if b&0x80 == 0 {
			unused := max(57-shift, 0)
			return v << unused >> unused
		}
	}
	r.fail(errNumber)
	return 0
}

// length reads the length of something that follows and checks that the data has it.
func (r *reader) length() int {
	n := r.uint()
	if n > uint64(len(r.data)-r.pos) {
		r.fail(errTruncated)
		return 0
	}
	return int(n)
}

func (r *reader) name() string { return string(r.bytes(r.length())) }

func (r *reader) uint16() uint16 { return binary.LittleEndian.Uint16(r.fixed(2)) }
func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.fixed(4)) }
func (r *reader) uint64() uint64 { return binary.LittleEndian.Uint64(r.fixed(8)) }

// fixed reads n bytes, which are zero where there are none.
func (r *reader) fixed(n int) []byte {
	if b := r.bytes(n); b != nil {
		return b
	}
	return make([]byte, n)
}

// cString reads the text up to a zero byte.
func (r *reader) cString() []byte {
	n := bytes.IndexByte(r.rest(), 0)
	if n < 0 {
		r.fail(errTruncated)
		return nil
	}
	return r.bytes(n + 1)[:n]
}

func (r *reader) limits() {
	flags := r.byte()
	r.uint()
	if flags&1 != 0 {
		r.uint()
	}
}

func leb128Error(n int) error {
	if n == 0 {
		return errTruncated
	}
	return errNumber
}

func appendUint(out []byte, v uint64) []byte { return binary.AppendUvarint(out, v) }

// appendInt appends a signed LEB128 number.
func appendInt(out []byte, v int64) []byte {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && b&0x40 == 0) || (v == -1 && b&0x40 != 0) {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

func appendName(out []byte, name string) []byte {
	return append(appendUint(out, uint64(len(name))), name...)
}
