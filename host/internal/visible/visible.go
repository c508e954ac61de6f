// Package visible shows people what a stranger's text really holds.
package visible

import "strings"

// Text returns text with a mark (␦) for each character that would not be seen: control characters except line feeds, those that change
// the direction of text or have no width, and bytes that are not UTF-8.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r < ' ' || r >= 0x7f && r <= 0x9f || r == 0xad || r == 0x61c || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e ||
			r >= 0x2060 && r <= 0x206f || r == 0xfeff || r >= 0xe0000 && r <= 0xe007f:
			return '␦'
		}
		return r
	}, strings.ToValidUTF8(text, "␦"))
}
