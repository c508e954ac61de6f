package mcpclient

import "unicode/utf8"

// Bounds of what one message may hold. A value costs up to some hundred bytes once it is decoded, an entry some
// thousand, whatever their length in the message.
const (
	// maxItems is how many entries a list of the result may have: tools of a page, blocks of content.
	maxItems = maxListed
	// maxValues is how many objects, lists and further members the message may hold, but for structured content, which
	// is not decoded.
	maxValues = 100_000
)

// shape counts what a message holds while it is read, before anything of it is decoded. It takes any bytes: what is no
// JSON is refused later. The zero value is at the beginning of a message.
type shape struct {
	values, items int

	depth           int
	quoted, escaped bool // within a text, after a backslash
	// naming says that the text is the name of a member of the message or of its result, of which name is the
	// beginning.
	naming bool
	name   [len(structuredContent) + utf8.UTFMax]byte
	length int
	// member is the last name of a member of the message; exempt says that the structured content of the result is
	// passing by, and done that there was one.
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

// text takes a byte of a text.
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
	s.naming = s.depth <= 2 // in a list no colon follows
	if s.count(); s.depth == 3 && !s.exempt {
		s.items++
	}
}

func (s *shape) count() {
	if !s.exempt {
		s.values++
	}
}

// named notes the name of a member. Only the first structured content of the first result is one that exact finds.
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
