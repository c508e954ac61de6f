// Package wire decodes requests and encodes responses of ABI 1 for guests. Common forms are handled without reflection,
// on which a small call in Wasm would spend most of its time; all others use encoding/json.
package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strconv"

	"github.com/hako-run/hako/pdk/abi"
)

// Request decodes a request of the host. Parts of the result point into data.
func Request(data []byte) (*abi.Request, error) {
	if request, ok := plainRequest(data); ok {
		return request, nil
	}
	request := new(abi.Request)
	return request, json.Unmarshal(data, request)
}

// plainRequest decodes a request without white space between its members and without escapes in its strings. It returns
// false for any other, also for an invalid one, for which encoding/json then returns the error.
func plainRequest(data []byte) (*abi.Request, bool) {
	request := new(abi.Request)
	s := &scanner{data: data}
	if !s.skip('{') {
		return nil, false
	}
	for {
		key, ok := s.text()
		if !ok || !s.skip(':') || !s.member(request, key) {
			return nil, false
		}
		if s.skip('}') {
			return request, s.pos == len(data)
		}
		if !s.skip(',') {
			return nil, false
		}
	}
}

func (s *scanner) member(request *abi.Request, key string) (ok bool) {
	switch key {
	case "method":
		request.Method, ok = s.text()
	case "name":
		request.Name, ok = s.text()
	case "locale":
		request.Locale, ok = s.text()
	case "arguments":
		request.Arguments, ok = s.raw()
	case "config":
		request.Config, ok = s.raw()
	case "roots":
		request.Roots, ok = s.raw()
	case "deadlineMs":
		request.DeadlineMS, ok = s.number()
	}
	return ok
}

// scanner scans JSON.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) skip(b byte) bool {
	if s.pos < len(s.data) && s.data[s.pos] == b {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) space() {
	for s.pos < len(s.data) && isSpace(s.data[s.pos]) {
		s.pos++
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\r' || b == '\n' }

// text scans a string without escapes.
func (s *scanner) text() (string, bool) {
	if !s.skip('"') {
		return "", false
	}
	length := bytes.IndexByte(s.data[s.pos:], '"')
	if length < 0 {
		return "", false
	}
	text := s.data[s.pos : s.pos+length]
	s.pos += length + 1
	for _, b := range text {
		if b == '\\' || b < ' ' || b >= 0x80 {
			return "", false
		}
	}
	return string(text), true
}

func (s *scanner) number() (int64, bool) {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		s.pos++
	}
	if s.pos > start+1 && s.data[start] == '0' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(s.data[start:s.pos]), 10, 64)
	return n, err == nil
}

// raw scans an object without validating its content.
func (s *scanner) raw() (json.RawMessage, bool) {
	start := s.pos
	if start == len(s.data) || s.data[start] != '{' || !s.value() {
		return nil, false
	}
	return s.data[start:s.pos], true
}

// value scans a value without validating it.
func (s *scanner) value() bool {
	for depth := 0; s.pos < len(s.data); {
		switch b := s.data[s.pos]; {
		case b == '"':
			if !s.skipString() {
				return false
			}
		case b == '{', b == '[':
			depth++
		case b == '}', b == ']':
			depth--
		case depth == 0: // a number, true, false or null
			for s.pos++; s.pos < len(s.data) && !isSpace(s.data[s.pos]) && s.data[s.pos] != ',' &&
				s.data[s.pos] != '}'; {
				s.pos++
			}
			return true
		}
		s.pos++
		if depth <= 0 {
			return depth == 0
		}
	}
	return false
}

// skipString moves from the opening to the closing quote of a string.
func (s *scanner) skipString() bool {
	for s.pos++; s.pos < len(s.data); s.pos++ {
		s.pos += plainBytes(s.data[s.pos:])
		if s.pos == len(s.data) {
			return false
		}
		switch s.data[s.pos] {
		case '"':
			return true
		case '\\':
			s.pos++ // the escaped byte
		default:
			return false
		}
	}
	return false
}

// plainBytes returns the number of bytes before the first quote, backslash or control character. It checks eight at a
// time: large arguments are mostly long strings, and a loop over bytes took a fourth of such a call.
func plainBytes(data []byte) int {
	n := 0
	for ; n+8 <= len(data); n += 8 {
		word := binary.LittleEndian.Uint64(data[n:])
		control := (word - eight*' ') &^ word & (eight * 0x80)
		if found := zeroBytes(word^eight*'"') | zeroBytes(word^eight*'\\') | control; found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for n < len(data) && data[n] != '"' && data[n] != '\\' && data[n] >= ' ' {
		n++
	}
	return n
}

// eight times a byte is that byte, eight times.
const eight = 0x0101010101010101

// zeroBytes sets the highest bit of the lowest zero byte, and possibly those of higher bytes.
func zeroBytes(word uint64) uint64 { return (word - eight) &^ word & (eight * 0x80) }
