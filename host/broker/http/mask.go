package httpbroker

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"slices"
)

// mask replaces secrets, and their usual encodings, with asterisks of the same length, so that lengths and offsets stay. It is no
// defence against a server that works together with the guest, which could encode the secret in a way of its own.
type mask struct {
	secrets [][]byte // the longest first
	longest int
}

func newMask(secrets []string) *mask {
	m := new(mask)
	for _, secret := range secrets {
		m.add([]byte(secret))
		m.add([]byte(url.QueryEscape(secret)))
		m.add([]byte(url.PathEscape(secret)))
		quoted, _ := json.Marshal(secret) // texts always marshal
		m.add(quoted[1 : len(quoted)-1])
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for offset := range 3 {
				m.add(insideBase64(encoding, secret, offset))
			}
		}
	}
	slices.SortFunc(m.secrets, func(a, b []byte) int { return len(b) - len(a) })
	if len(m.secrets) > 0 {
		m.longest = len(m.secrets[0])
	}
	return m
}

// add adds one form of a secret, and how it looks in JSON of those who escape slashes.
func (m *mask) add(secret []byte) {
	for _, form := range [][]byte{secret, bytes.ReplaceAll(secret, []byte("/"), []byte(`\/`))} {
		if len(form) > 0 && !slices.ContainsFunc(m.secrets, func(other []byte) bool { return bytes.Equal(other, form) }) {
			m.secrets = append(m.secrets, form)
		}
	}
}

// insideBase64 is what every base64 text has in common that holds the secret after some text of length offset, modulo 3: the digits
// that no neighbouring byte has a part in.
func insideBase64(encoding *base64.Encoding, secret string, offset int) []byte {
	encoded := encoding.EncodeToString(append(make([]byte, offset), secret...))
	first := (offset*8 + 5) / 6
	last := (offset + len(secret)) * 8 / 6
	return []byte(encoded[first:last])
}

// text returns s without secrets.
func (m *mask) text(s string) string {
	if m == nil {
		return s
	}
	b := []byte(s)
	m.cover(b)
	return string(b)
}

// cover overwrites the secrets in b.
func (m *mask) cover(b []byte) {
	for _, secret := range m.secrets {
		for from := 0; ; {
			i := bytes.Index(b[from:], secret)
			if i < 0 {
				break
			}
			from += i
			for range secret {
				b[from] = '*'
				from++
			}
		}
	}
}

// pending is the length of the longest end of b that may be the start of a secret.
func (m *mask) pending(b []byte) int {
	for n := min(len(b), m.longest-1); n > 0; n-- {
		end := b[len(b)-n:]
		if slices.ContainsFunc(m.secrets, func(secret []byte) bool { return len(secret) > n && bytes.HasPrefix(secret, end) }) {
			return n
		}
	}
	return 0
}

// maskedBody masks a body as it is read. It holds back what may be the start of a secret until it knows.
type maskedBody struct {
	source io.ReadCloser
	mask   *mask
	space  []byte // what buffer is a part of
	buffer []byte // read, not yet given out
	clear  int    // how much of buffer may be given out
	err    error  // of source
}

func newMaskedBody(source io.ReadCloser, m *mask) *maskedBody {
	return &maskedBody{source: source, mask: m, space: make([]byte, max(4<<10, 2*m.longest))}
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

// fill reads once and finds out what may be given out.
func (m *maskedBody) fill() {
	held := copy(m.space, m.buffer) // shorter than a secret
	n, err := m.source.Read(m.space[held:])
	m.buffer, m.err = m.space[:held+n], err
	m.mask.cover(m.buffer)
	m.clear = len(m.buffer)
	if err == nil {
		m.clear -= m.mask.pending(m.buffer)
	}
}

func (m *maskedBody) Close() error { return m.source.Close() }
