package slackbot

import (
	"strings"
	"unicode"
)

// code finds the code in Markdown that comes in pieces. Links in code are text, so they are left as they are. A link
// that Slack takes for one must show its host, so only code that every reading of Markdown agrees on counts: blocks
// between lines of three backticks at the left margin, and spans of single backticks within a line. What a tag, an
// address, a link or a table may contain is not code. The zero value is at the beginning of a message.
type code struct {
	// lost reports whether readings may differ on what is in a block. Nothing counts as code any more.
	lost bool
	// fenced reports whether the lines are in a block.
	fenced bool
	// unsure reports whether readings may differ on the backticks of the paragraph. No span in it counts as code any
	// more.
	unsure bool
	// within reports whether the last piece ended within a line, address within a word that may be an address.
	within, address bool
}

// maxSpan bounds a span that counts as code, in bytes.
const maxSpan = 500

// render returns the text with code and text rendered by two functions.
func (c *code) render(markdown string, inCode, inText func(string) string) string {
	var b strings.Builder
	text := ""
	add := func(part string) {
		b.WriteString(inText(text))
		b.WriteString(inCode(part))
		text = ""
	}
	for line := range strings.Lines(markdown) {
		content := strings.TrimSuffix(line, "\n")
		fence := c.fence(content)
		switch {
		case c.lost:
			text += line
		case fence:
			add(line)
			c.fenced, c.unsure = !c.fenced, false
		case c.fenced:
			add(line)
		case strings.Trim(content, " \t") == "" && content != line && !c.within: // the end of a paragraph
			c.unsure = false
			text += line
		default:
			for i, part := range c.spans(content) {
				if i%2 == 0 {
					text += part
				} else {
					add("`" + part + "`")
				}
			}
			text += line[len(content):]
		}
		c.within = content == line
	}
	return b.String() + inText(text)
}

// fence reports whether a line begins or ends a block. It sets lost if readings may differ.
func (c *code) fence(line string) bool {
	html := !c.fenced && !c.within && strings.HasPrefix(strings.TrimSpace(line), "<")
	c.lost = c.lost || html || strings.Contains(line, "\r") // which may end a line
	if c.lost || !strings.Contains(line, "```") && !strings.Contains(line, "~~~") {
		return false
	}
	info, found := strings.CutPrefix(line, "```")
	word := !strings.ContainsFunc(info, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '+' && r != '-'
	})
	c.lost = !found || !word || c.within || c.fenced && info != ""
	return !c.lost
}

// spans splits a line into text and the contents of spans, in turn. The last element is text.
func (c *code) spans(line string) []string {
	parts := strings.Split(line, "`")
	c.unsure = c.unsure || len(parts)%2 == 0
	for i, part := range parts {
		from := i // where the text begins if readings differ
		if i%2 == 1 {
			from = i - 1
			c.unsure = c.unsure || part == "" || len(part) > maxSpan || strings.Contains(part, "|")
		} else {
			last, space := i == len(parts)-1, strings.LastIndexAny(part, " \t")
			c.address = strings.ContainsAny(part[space+1:], ":.@") || i == 0 && space < 0 && c.within && c.address
			c.unsure = c.unsure || strings.ContainsAny(part, `<[]\`) || !last && c.address
			if i > 0 && !last && part == "" { // two backticks, of which the first ends no span
				c.unsure, from = true, i-2
			}
		}
		if c.unsure {
			return append(parts[:from:from], strings.Join(parts[from:], "`"))
		}
	}
	return parts
}

// interrupt is called before something that is not text. Slack may read the text after it as a continuation or anew.
func (c *code) interrupt() {
	c.lost = c.lost || c.fenced
	c.unsure = c.unsure || c.within
}

// undecided splits text before the end of its last line if what follows may make it code, or another line of a block.
func (c *code) undecided(text string) (decided, rest string) {
	at := strings.LastIndex(text, "\n") + 1
	line := text[at:]
	first := strings.IndexAny(line, "`~")
	if c.lost || first < 0 {
		return text, ""
	}
	if line[0] != '`' && line[0] != '~' && !strings.HasSuffix(line, "`") && strings.Count(line, "`")%2 == 0 {
		return text, ""
	}
	if len(line)-first > longestAddress {
		c.lost = true
		return text, ""
	}
	return text[:at+first], text[at+first:]
}
