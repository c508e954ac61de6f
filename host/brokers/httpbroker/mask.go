package httpbroker

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io"
	"slices"
	"strings"
)

// mask replaces secrets with asterisks of the same length, so that lengths and offsets stay. It finds secrets in
// hexadecimal and base64, and secrets whose characters are escaped (see escape), each in any way and up to maxEscaped
// times. It cannot defend against a server that cooperates with the guest and uses another encoding.
type mask struct {
	forms []form
	// longest is the length of the longest form without escapes, in bytes.
	longest int
}

// form is an encoding of a secret. With fold it is in lower case and matches in any case.
type form struct {
	text []byte
	fold bool
}

const (
	// maxEscaped is the number of times that escapes are decoded: %2541 is an A escaped twice.
	maxEscaped = 3
	// minHex is the length of the shortest secret, in bytes, that is searched in hexadecimal. A shorter one would match
	// many numbers.
	minHex = 4
)

func newMask(secrets []string) *mask {
	m := new(mask)
	for _, secret := range secrets {
		m.add(secret, false)
		m.add(strings.ReplaceAll(secret, " ", "+"), false) // in a query
		if len(secret) >= minHex {
			m.add(hex.EncodeToString([]byte(secret)), true)
		}
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for offset := range 3 {
				m.add(base64Core(encoding, secret, offset), false)
			}
		}
	}
	return m
}

func (m *mask) add(text string, fold bool) {
	if text != "" && !slices.ContainsFunc(m.forms, func(other form) bool { return string(other.text) == text }) {
		m.forms = append(m.forms, form{[]byte(text), fold})
		m.longest = max(m.longest, len(text))
	}
}

// base64Core returns the part of a base64 text that is the same whenever the secret follows a text of length offset
// modulo 3: the digits without bits of neighboring bytes.
func base64Core(encoding *base64.Encoding, secret string, offset int) string {
	encoded := encoding.EncodeToString(append(make([]byte, offset), secret...))
	first := (offset*8 + 5) / 6
	last := (offset + len(secret)) * 8 / 6
	return encoded[first:last]
}

// inName reports whether a header name contains a secret in any case, because net/http canonicalizes names.
func (m *mask) inName(name string) bool {
	lower := strings.ToLower(name)
	return m.text(name) != name || slices.ContainsFunc(m.forms,
		func(f form) bool { return strings.Contains(lower, strings.ToLower(string(f.text))) })
}

// text returns s with secrets masked.
func (m *mask) text(s string) string {
	if m == nil {
		return s
	}
	b := []byte(s)
	m.cover(b)
	return string(b)
}

// cover masks the secrets in b. It returns the length of the part before a possible start of a secret at the end.
func (m *mask) cover(b []byte) (clear int) {
	found := &findings{mask: m, clear: len(b)}
	whole := newLayer(b)
	found.search(whole)
	if undone, ok := whole.unescaped(quotedPrintable); ok {
		found.search(undone)
	}
	undone, ok := whole.unescaped(escape)
	for n := 1; ok && n <= maxEscaped; n++ {
		found.search(undone)
		undone, ok = undone.unescaped(escape)
	}
	for _, r := range found.ranges {
		for i := r[0]; i < r[1]; i++ {
			b[i] = '*'
		}
	}
	return found.clear
}

// findings are the positions of secrets in a text, from and to.
type findings struct {
	mask   *mask
	ranges [][2]int
	clear  int
}

// search adds the secrets in a layer.
func (f *findings) search(l layer) {
	folded := bytes.Clone(l.text)
	for i, c := range folded {
		if 'A' <= c && c <= 'F' {
			folded[i] = c | 0x20
		}
	}
	for _, form := range f.mask.forms {
		text := l.text
		if form.fold {
			text = folded
		}
		from := 0
		for {
			i := bytes.Index(text[from:], form.text)
			if i < 0 {
				break
			}
			from += i + len(form.text)
			f.ranges = append(f.ranges, [2]int{l.at[from-len(form.text)], l.at[from]})
		}
		for i := max(from, len(text)-len(form.text)+1); i < len(text); i++ {
			if bytes.HasPrefix(form.text, text[i:]) {
				f.clear = min(f.clear, l.at[i])
				break
			}
		}
	}
	// If an escape continues beyond the text, so may a secret that starts with it.
	f.clear = min(f.clear, l.at[len(l.text)])
}

// maskedBody masks a body while it is read. It holds back a possible start of a secret until more is read.
type maskedBody struct {
	source io.ReadCloser
	mask   *mask
	space  []byte // the storage of buffer
	buffer []byte // read from source, not yet returned
	clear  int    // length of the part of buffer that may be returned
	err    error  // of source
}

func newMaskedBody(source io.ReadCloser, m *mask) *maskedBody {
	return &maskedBody{source: source, mask: m, space: make([]byte, max(4<<10, 4*m.longest))}
}

func (m *maskedBody) Read(p []byte) (int, error) {
	for m.clear == 0 && m.err == nil {
		m.fill()
	}
	if m.clear == 0 {
		return 0, m.err
	}
	n := copy(p, m.buffer[:m.clear])
	m.buffer, m.clear = m.buffer[n:], m.clear-n
	return n, nil
}

// fill reads from source once and updates clear.
func (m *maskedBody) fill() {
	held := copy(m.space, m.buffer) // a possible start of a secret
	if held > len(m.space)/2 {
		m.space = append(m.space, make([]byte, len(m.space))...)
	}
	n, err := m.source.Read(m.space[held:])
	m.buffer, m.err = m.space[:held+n], err
	m.clear = m.mask.cover(m.buffer)
	if err != nil {
		m.clear = len(m.buffer)
	}
}

func (m *maskedBody) Close() error { return m.source.Close() }
