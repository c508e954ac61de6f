package slackbot

import (
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
func calm(markdown string) string {
	return crowded.ReplaceAllString(calls.ReplaceAllString(markdown, "&lt;$1"), "$1 $2")
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
	if text == "" || strings.Contains(text, "://") && text != m[2] {
		text = m[2]
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
