package mcpclient

import "unicode/utf8"

// Bounds of one message. Decoded, a value takes up to some hundred bytes and an entry up to some thousand, whatever
// their length in the message.
const (
	// maxItems bounds the entries of a list in the result: tools of a page, content blocks.
	maxItems = maxListed
	// maxValues bounds the objects, lists and further members of a message, except for structured content, which is not
	// decoded.
	maxValues = 100_000
)

// shape counts the values of a message while it is read, before it is decoded. It accepts any bytes; invalid JSON is
// refused later. The zero value is at the beginning of a message.
type shape struct {
	values, items int

	depth           int
	quoted, escaped bool // in a string, after a backslash
	// naming reports whether the current string is the name of a member of the message or of its result. name is its
	// beginning.
	naming bool
	name   [len(structuredContent) + utf8.UTFMax]byte
	length int
	// member is the name of the message's current member. exempt reports whether the current value is the result's
	// structured content, done that there was one.
	member       string
	exempt, done bool
	results      int
}

// add counts the next bytes of the message.
func (s *shape) add(data []byte) {
	for _, c := range data {
		switch {
		case s.quoted:
			s.text(c)
		case c == '"':
			s.quoted, s.length = true, 0
		case c == '{' || c == '[':
			s.depth++
			s.naming = c == '{' && s.depth <= 2
			s.count()
		case c == '}' || c == ']':
			if s.depth--; s.depth < 2 {
				s.exempt = false
			}
			s.naming = false
		case c == ',':
			s.comma()
		case c == ':' && s.naming:
			s.named(string(s.name[:min(s.length, len(s.name))]))
		}
	}
}

// text handles a byte of a string.
func (s *shape) text(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.quoted = false
		return
	}
	if s.naming && s.length < len(s.name) {
		s.name[s.length] = c
		s.length++
	}
}

// comma counts a further member or entry.
func (s *shape) comma() {
	if s.depth == 2 {
		s.exempt = false
	}
	s.naming = s.depth <= 2 // no colon follows in a list
	if s.count(); s.depth == 3 && !s.exempt {
		s.items++
	}
}

func (s *shape) count() {
	if !s.exempt {
		s.values++
	}
}

// named handles the name of a member. Only the first structured content of the first result is exempt, which is the one
// that exact finds.
func (s *shape) named(name string) {
	s.naming = false
	if s.depth == 1 {
		if s.member = name; name == "result" {
			s.results++
		}
		return
	}
	if s.member == "result" && s.results == 1 && name == structuredContent && !s.done {
		s.exempt, s.done = true, true
	}
}

func (s *shape) tooMuch() bool { return s.values > maxValues || s.items >= maxItems }
