package judge

import (
	"fmt"
	"strings"
)

// checkSed adds a risk if a sed script can start programs, with the command "e" or the flag "e" of "s".
func checkSed(r *parsedArgs) {
	scripts := r.values("e")
	if !r.has("e", "f") {
		if len(r.operands) == 0 {
			r.closed = false
			return
		}
		scripts = r.operands[:1]
	}
	if r.has("sandbox") {
		return // sed refuses these commands
	}
	if problem := sedRisk(strings.Join(scripts, "\n")); problem != "" {
		r.addRisk("its script "+problem, scripts...)
	}
}

// sedRisk returns why a script may start programs; "" if it cannot. It parses the common part of GNU sed's language.
// Anything else counts as a risk.
func sedRisk(script string) string {
	s := &sedScript{text: script}
	for s.skip(" \t\n;"); s.text != ""; s.skip(" \t\n;") {
		if problem := s.command(); problem != "" {
			return problem
		}
	}
	return ""
}

// sedScript is the unparsed rest of a script.
type sedScript struct{ text string }

func (s *sedScript) skip(set string) { s.text = strings.TrimLeft(s.text, set) }

// next consumes one byte. It returns 0 at the end.
func (s *sedScript) next() byte {
	if s.text == "" {
		return 0
	}
	c := s.text[0]
	s.text = s.text[1:]
	return c
}

const (
	sedExecutes   = `starts other programs with "e"`
	sedUnreadable = "cannot be read by hako, and sed can start other programs"
)

// command parses one command with its addresses.
func (s *sedScript) command() string {
	if !s.addresses() {
		return sedUnreadable
	}
	c := s.next()
	switch {
	case c == 'e':
		return sedExecutes
	case c == '{':
		return ""
	case c == '#':
		s.line()
		return ""
	case strings.IndexByte("}=dDgGhHnNpPxzF", c) >= 0 && c != 0:
	case strings.IndexByte("lLqQ", c) >= 0 && c != 0:
		s.skip(" \t")
		s.skip("0123456789")
	case strings.IndexByte("aic", c) >= 0 && c != 0:
		if !s.textLines() {
			return sedUnreadable
		}
		return ""
	case strings.IndexByte("rRwW", c) >= 0 && c != 0:
		s.line()
		return ""
	case strings.IndexByte("btT:", c) >= 0 && c != 0:
		s.skip(" \t")
		s.skip(sedLabel)
	case c == 'y':
		if !s.delimited(2) {
			return sedUnreadable
		}
	case c == 's':
		return s.substitute()
	default:
		return fmt.Sprintf("has the command %s, which hako does not know", quoted(string(c)))
	}
	return s.end()
}

const sedLabel = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// end checks that a command ends here.
func (s *sedScript) end() string {
	s.skip(" \t")
	if s.text == "" || strings.IndexByte("\n;}#", s.text[0]) >= 0 {
		return ""
	}
	return sedUnreadable
}

// line consumes the rest of the line.
func (s *sedScript) line() {
	_, s.text, _ = strings.Cut(s.text, "\n")
}

// textLines consumes lines up to one that does not end with a backslash.
func (s *sedScript) textLines() bool {
	for {
		switch c := s.next(); c {
		case 0:
			return true
		case '\n':
			return true
		case '\\':
			if s.next() == 0 {
				return false // the text continues in another script
			}
		}
	}
}

// addresses consumes the addresses before a command.
func (s *sedScript) addresses() bool {
	for range 2 {
		s.skip(" \t")
		if s.text == "" {
			return false
		}
		switch c := s.text[0]; {
		case c == '/' || c == '\\':
			if c == '\\' {
				s.next()
			}
			if !s.delimited(1) {
				return false
			}
			s.skip("IM")
		case strings.IndexByte("0123456789$+~", c) >= 0:
			s.skip("0123456789$+~")
		}
		s.skip(" \t")
		if !strings.HasPrefix(s.text, ",") {
			break
		}
		s.next()
	}
	s.skip(" \t!")
	return s.text != ""
}

// delimited consumes a delimiter and n parts that end with it.
func (s *sedScript) delimited(n int) bool {
	delimiter := s.next()
	if delimiter == 0 || delimiter == '\n' || delimiter == '\\' || delimiter >= 0x80 {
		return false
	}
	for n > 0 {
		switch c := s.next(); c {
		case 0, '\n':
			return false
		case '\\':
			if s.next() == 0 {
				return false
			}
		case delimiter:
			n--
		}
	}
	return true
}

// substitute parses the rest of the command "s".
func (s *sedScript) substitute() string {
	if !s.delimited(2) {
		return sedUnreadable
	}
	for s.text != "" {
		switch c := s.text[0]; {
		case c == 'e':
			return sedExecutes
		case c == 'w':
			s.line()
			return ""
		case strings.IndexByte("gpiImM0123456789", c) >= 0:
			s.next()
		default:
			return s.end()
		}
	}
	return ""
}
