package slackbot

import (
	"net/url"
	"regexp"
	"strings"
)

// escaper escapes what Slack takes for more than text (docs.slack.dev/messaging/formatting-message-text, escaping text).
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

var unescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

func escape(text string) string   { return escaper.Replace(text) }
func unescape(text string) string { return unescaper.Replace(text) }

// calls are what in text would mention people, groups and channels, or make a link that shows another address.
var calls = regexp.MustCompile(`<([!@#]|[a-zA-Z][a-zA-Z0-9+.-]*:[^<>\n]*\|)`)

// crowded are addresses that Japanese punctuation follows, which Slack would take for a part of them, with all up to the next space.
var crowded = regexp.MustCompile(`(https?://[^\s<>|、。，．！？）」』】〉》］｝]+)([、。，．！？）」』】〉》］｝])`)

// calm takes from Markdown for Slack's own rendering what would call people: the text is a model's, and may repeat what a tool has read. It
// also sets addresses apart from punctuation.
// Links show where they lead.
func calm(markdown string) string {
	return crowded.ReplaceAllString(reveal(calls.ReplaceAllString(markdown, "&lt;$1")), "$1 $2")
}

var (
	// target is the middle of a link, between its text and the rest of its address; definition is that of a link by reference, whose text is elsewhere.
	target     = regexp.MustCompile(`\]\(\s*<?([^\s<>()\[\]]+)`)
	definition = regexp.MustCompile(`\]:(\s*<?[a-zA-Z][a-zA-Z0-9+.-]*:)`)
)

// reveal writes after the text of each link which host its address has, for the text can be anything, also another address. A link whose
// text is the address stays as it is.
func reveal(markdown string) string {
	var b strings.Builder
	end := 0
	for _, at := range target.FindAllStringSubmatchIndex(markdown, -1) {
		before, address := markdown[end:at[0]], markdown[at[2]:at[3]]
		b.WriteString(before)
		if host := hostOf(address); host != "" && !strings.HasSuffix(before, "["+address) && !strings.HasSuffix(before, "("+host+")") {
			b.WriteString(" (" + host + ")")
		}
		b.WriteString(markdown[at[0]:at[1]])
		end = at[1]
	}
	b.WriteString(markdown[end:])
	return definition.ReplaceAllString(b.String(), "] :$1")
}

// hostOf is the host of an address as people are to see it: of a link to a page or to a mailbox, also without a scheme. Of what is neither it
// is empty, or with a scheme the scheme.
func hostOf(address string) string {
	if strings.HasPrefix(address, "//") {
		address = "https:" + address
	}
	u, err := url.Parse(address)
	if err == nil && u.Scheme == "" {
		u, err = url.Parse("https://" + address)
	}
	switch {
	case err != nil:
		return escape(address) // nobody knows what Slack makes of it
	case u.Host != "" && strings.Contains(u.Host, "."):
		return escape(u.Host)
	case u.Opaque != "":
		return escape(u.Scheme + ":" + u.Opaque[strings.LastIndexByte(u.Opaque, '@')+1:])
	case u.Scheme != "https":
		return escape(u.Scheme + "://" + u.Host)
	}
	return ""
}

var (
	heading = regexp.MustCompile(`^\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$`)
	bullet  = regexp.MustCompile(`^(\s*)[-*+]\s+(.*)$`)
	rule    = regexp.MustCompile(`^\s{0,3}([-*_])\s*([-*_]\s*){2,}$`)
)

// mrkdwn turns Markdown into Slack's own markup, for messages that are not streamed. What it does not know stays as it is, escaped.
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
	if rule.MatchString(line) {
		return "──────────"
	}
	if m := heading.FindStringSubmatch(line); m != nil {
		return "*" + strings.ReplaceAll(inline(m[1]), "*", "") + "*"
	}
	if m := bullet.FindStringSubmatch(line); m != nil {
		return m[1] + "• " + inline(m[2])
	}
	if rest, ok := strings.CutPrefix(line, "> "); ok {
		return "> " + inline(rest)
	}
	return inline(line)
}

// spans are the marks within a line. The first that matches at a place counts.
var spans = []struct {
	pattern *regexp.Regexp
	write   func(m []string) string
}{
	{regexp.MustCompile("^`([^`]+)`"), func(m []string) string { return "`" + escape(m[1]) + "`" }},
	{regexp.MustCompile(`^!?\[([^\[\]]*)\]\((https?://[^\s()<>|]+|mailto:[^\s()<>|]+)(?:\s+"[^"]*")?\)`), link},
	{regexp.MustCompile(`^\*\*(\S|\S.*?\S)\*\*`), around("*")},
	{regexp.MustCompile(`^__(\S|\S.*?\S)__`), around("*")},
	{regexp.MustCompile(`^~~(\S|\S.*?\S)~~`), around("~")},
	{regexp.MustCompile(`^\*([^\s*]|[^\s*].*?[^\s*])\*`), around("_")},
}

func around(mark string) func([]string) string {
	return func(m []string) string { return mark + escape(m[1]) + mark }
}

// link shows the address as well where the text could be taken for another one.
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

// inline turns the marks within a line.
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
			if m := span.pattern.FindStringSubmatch(rest); m != nil {
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
