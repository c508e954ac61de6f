package wasmbin

import "encoding/binary"

// AppendSection appends a section with a content.
func AppendSection(out []byte, id byte, content []byte) []byte {
	return append(AppendUint(append(out, id), len(content)), content...)
}

// AppendName appends a name.
func AppendName(out []byte, name string) []byte { return append(AppendUint(out, len(name)), name...) }

// AppendUint appends an unsigned LEB128 number.
func AppendUint[T uint32 | uint64 | int](out []byte, v T) []byte {
	return binary.AppendUvarint(out, uint64(v))
}

// AppendInt appends a signed LEB128 number.
func AppendInt(out []byte, v int64) []byte {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && b&0x40 == 0) || (v == -1 && b&0x40 != 0) {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
