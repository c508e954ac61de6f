// Package toolpattern matches names of tools against the patterns in policies and permissions. Compile returns a
// Pattern; Pattern.MatchesTool compares it with both names of a tool.
package toolpattern

import "strings"

// Pattern is a text in which "*" matches any text. Compile makes one.
type Pattern struct {
	first, last string
	// middle are the parts between the stars. A pattern without a star has its whole text in first.
	middle []string
	star   bool
	slash  bool
}

// Compile compiles a pattern. Every text is one.
func Compile(text string) Pattern {
	parts := strings.Split(text, "*")
	p := Pattern{first: parts[0], slash: strings.Contains(text, "/")}
	if len(parts) > 1 {
		p.star, p.middle, p.last = true, parts[1:len(parts)-1], parts[len(parts)-1]
	}
	return p
}

// Prefix returns the text that all matching names begin with.
func (p *Pattern) Prefix() string { return p.first }

// Matches reports whether the pattern matches the whole text.
func (p *Pattern) Matches(text string) bool {
	rest, ok := strings.CutPrefix(text, p.first)
	if !ok || !p.star {
		return ok && rest == ""
	}
	for _, part := range p.middle {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, p.last)
}

// MatchesTool reports whether the pattern matches a tool; full is PLUGIN/TOOL. Only a pattern with a slash is compared
// with full.
func (p *Pattern) MatchesTool(tool, full string) bool {
	return p.Matches(tool) || p.slash && p.Matches(full)
}
