package slackbot

import (
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/lazyregexp"
)

// escaper escapes Slack's control characters (docs.slack.dev/messaging/formatting-message-text, escaping text).
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

var unescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

func escape(text string) string   { return escaper.Replace(text) }
func unescape(text string) string { return unescaper.Replace(text) }

// unit matches a word that may be the ID of a user, or one character.
var unit = lazyregexp.New(`(?s)\b[UW][A-Z0-9]{2,30}\b|.`)

// clipEscaped escapes a text, replaces the IDs of the mentioned users with mentions, which Slack shows as names, and
// cuts the result to limit bytes, never within an escape or a mention.
func clipEscaped(text string, limit int, mentioned ...string) string {
	var b strings.Builder
	for _, part := range unit().FindAllString(text[:min(len(text), limit+maxUserID)], -1) {
		if slices.Contains(mentioned, part) && isUser(part) {
			part = "<@" + part + ">"
		} else {
			part = escape(part)
		}
		if b.Len()+len(part) > limit {
			return b.String() + "…"
		}
		b.WriteString(part)
	}
	return b.String()
}

// calls matches text that would mention people, groups and channels, or make a link that shows another address.
var calls = lazyregexp.New(`<([!@#]|[a-zA-Z][a-zA-Z0-9+.-]*:[^<>\n]*\|)`)

// crowded matches an address followed by Japanese punctuation, which Slack would include in the address, with
// everything up to the next space.
var crowded = lazyregexp.New(`(https?://[^\s<>|、。，．！？）」』】〉》］｝]+)([、。，．！？）」』】〉》］｝])`)

// sanitize removes mentions from Markdown that Slack renders, because a model may repeat what a tool has read. It also
// separates addresses from punctuation, and reveals where links lead.
func sanitize(markdown string) string {
	return crowded().ReplaceAllString(reveal(sanitizeCode(markdown)), "$1 $2")
}

// sanitizeCode is sanitize for code, in which links are text.
func sanitizeCode(markdown string) string { return calls().ReplaceAllString(markdown, "&lt;$1") }

// definition matches the middle of a reference definition, between the name and the address.
var definition = lazyregexp.New(`\]:(\s*[^\s]*[:/&.\\])`)

// reveal adds to the text of each link the host of its address, because the text may be anything, even another address.
// A link whose text is its address stays unchanged. Reference definitions are broken up.
func reveal(markdown string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(markdown, "](")
		b.WriteString(before)
		if !found {
			return definition().ReplaceAllString(b.String(), "] :$1")
		}
		address, _ := destination(after)
		if host := hostOf(address); host != "" && !strings.HasSuffix(before, "["+address) &&
			!strings.HasSuffix(before, "("+host+")") {
			b.WriteString(" (" + strings.ReplaceAll(host, "](", "] (") + ")")
		}
		b.WriteString("](")
		markdown = after
	}
}

// destination returns the address at the beginning of the text after "](" (spec.commonmark.org, link destinations).
// whole is false if text ends within it.
func destination(text string) (address string, whole bool) {
	text = strings.TrimLeftFunc(text, unicode.IsSpace)
	if rest, pointed := strings.CutPrefix(text, "<"); pointed {
		at := strings.IndexAny(rest, ">\n")
		if at < 0 {
			return rest, false
		}
		return rest[:at], true
	}
	depth, escaped := 0, false
	for i, r := range text {
		switch {
		case unicode.IsSpace(r), r == ')' && !escaped && depth == 0:
			return text[:i], true
		case r == '(' && !escaped:
			depth++
		case r == ')' && !escaped:
			depth--
		}
		escaped = r == '\\' && !escaped
	}
	return text, false
}

// hostOf returns the host of an address for people: of a link to a page or a mailbox, also without a scheme. For other
// schemes it returns the scheme, and "" without a scheme. If Slack and browsers may disagree about the host, it returns
// the whole address.
func hostOf(address string) string {
	host, sure := parseHost(address)
	if decoded, _ := parseHost(html.UnescapeString(address)); !sure || decoded != host ||
		strings.Contains(address, `\`) {
		return escape(address)
	}
	return escape(host)
}

func parseHost(address string) (host string, sure bool) {
	u, err := url.Parse(address)
	written := err == nil && (u.Scheme != "" || strings.HasPrefix(address, "//"))
	if err == nil && u.Scheme == "" {
		u, err = url.Parse("https://" + strings.TrimPrefix(address, "//"))
	}
	switch {
	case err != nil:
		return "", false
	case u.Hostname() != "" && (written || strings.Contains(u.Host, ".")):
		return u.Host, true
	case u.Opaque != "":
		return u.Scheme + ":" + u.Opaque[strings.LastIndexByte(u.Opaque, '@')+1:], true
	case u.Scheme != "https":
		return u.Scheme + "://" + u.Host, true
	}
	return "", true
}

// maxName bounds a name in a note of the bot, in characters.
const maxName = 100

// nameInCode returns a name that somebody else has chosen, for a note of the bot: as code within a line, so that it
// neither links nor looks like words of the bot.
func nameInCode(name string) string {
	return "`" + clip.Runes(strings.ReplaceAll(oneLine(name), "`", "'"), maxName) + "`"
}

var (
	heading = lazyregexp.New(`^\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$`)
	bullet  = lazyregexp.New(`^(\s*)[-*+]\s+(.*)$`)
	rule    = lazyregexp.New(`^\s{0,3}([-*_])\s*([-*_]\s*){2,}$`)
)

// mrkdwn converts Markdown to Slack's markup, for messages that are not streamed. Unknown constructs stay unchanged,
// escaped.
func mrkdwn(markdown string) string {
	lines := strings.Split(markdown, "\n")
	code := false
	for i, line := range lines {
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(trimmed, "```"):
			code = !code
			lines[i] = "```"
		case code:
			lines[i] = escape(line)
		default:
			lines[i] = mrkdwnLine(line)
		}
	}
	if code {
		lines = append(lines, "```")
	}
	return strings.Join(lines, "\n")
}

func mrkdwnLine(line string) string {
	if rule().MatchString(line) {
		return "──────────"
	}
	if m := heading().FindStringSubmatch(line); m != nil {
		return "*" + strings.ReplaceAll(inline(m[1]), "*", "") + "*"
	}
	if m := bullet().FindStringSubmatch(line); m != nil {
		return m[1] + "• " + inline(m[2])
	}
	if rest, ok := strings.CutPrefix(line, "> "); ok {
		return "> " + inline(rest)
	}
	return inline(line)
}

// spans are the marks within a line. The first that matches at a place counts.
var spans = []struct {
	pattern lazyregexp.Regexp
	write   func(m []string) string
}{
	{lazyregexp.New("^`([^`]+)`"), func(m []string) string { return "`" + escape(m[1]) + "`" }},
	{lazyregexp.New(`^!?\[([^\[\]]*)\]\((https?://[^\s()<>|]+|mailto:[^\s()<>|]+)(?:\s+"[^"]*")?\)`), link},
	{lazyregexp.New(`^\*\*(\S|\S.*?\S)\*\*`), around("*")},
	{lazyregexp.New(`^__(\S|\S.*?\S)__`), around("*")},
	{lazyregexp.New(`^~~(\S|\S.*?\S)~~`), around("~")},
	{lazyregexp.New(`^\*([^\s*]|[^\s*].*?[^\s*])\*`), around("_")},
}

func around(mark string) func([]string) string {
	return func(m []string) string { return mark + escape(m[1]) + mark }
}

// link shows the address too if the text could be mistaken for another address.
func link(m []string) string {
	text := strings.NewReplacer("|", "¦", "\n", " ").Replace(m[1])
	host := hostOf(m[2])
	switch shown := strings.TrimSuffix(text, " ("+host+")"); {
	case shown == "" || strings.Contains(shown, "://"):
		text = m[2]
	case shown == text && host != "":
		text += " (" + host + ")"
	}
	return "<" + escape(m[2]) + "|" + escape(text) + ">"
}

// inline converts the markup within a line.
func inline(line string) string {
	var b strings.Builder
	for plain := 0; ; {
		at := strings.IndexAny(line[plain:], "`![*_~")
		if at < 0 {
			b.WriteString(escape(line))
			return b.String()
		}
		at += plain
		rest, matched := line[at:], false
		for _, span := range spans {
			if m := span.pattern().FindStringSubmatch(rest); m != nil {
				b.WriteString(escape(line[:at]))
				b.WriteString(span.write(m))
				line, plain, matched = rest[len(m[0]):], 0, true
				break
			}
		}
		if !matched {
			plain = at + 1
		}
	}
}
