package slackbot

import (
	"strings"
	"testing"
)

// pieces settles text that comes in pieces, and returns what is sent.
func pieces(list ...string) string {
	o := &answerWriter{}
	var b strings.Builder
	for i, piece := range list {
		o.final = i == len(list)-1
		for _, p := range o.settle([]part{{text: piece}}) {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// everyWay returns the text as it is sent: at once, in two pieces cut at each place, and letter by letter.
func everyWay(text string) map[string]string {
	ways := map[string]string{"at once": pieces(text), "letter by letter": pieces(strings.Split(text, "")...)}
	for at := range text {
		ways["before "+text[at:]] = pieces(text[:at], text[at:])
	}
	return ways
}

// TestCode: links in code stay as they are.
func TestCode(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Write `[text](https://docs.example)` for a link.",
		"`[a](https://a.example)` and `b[0](x.y)`, then `c`",
		"Call:\n```go\nhandlers[name](request.body)\n// [see](https://docs.example/a)。\n```\ndone",
		"```\n[1]: https://docs.example\n```\n\n`[2]: https://docs.example`\n",
		"- `[a](https://a.example)`\n- b",
		"コード `[a](https://a.example)` です",
	} {
		for how, got := range everyWay(text) {
			if got != text {
				t.Errorf("%q, %s: got %q", text, how, got)
			}
		}
	}
	const want = "`[a](https://a.example)` [b (b.example)](https://b.example)"
	if got := pieces("`[a](https://a.example)` [b](https://b.example)"); got != want {
		t.Errorf("beside code: %q", got)
	}
}

// TestHostileCode: what some reading of Markdown takes for a link shows its host, although backticks are around it.
func TestHostileCode(t *testing.T) {
	t.Parallel()
	const link = "[bank](https://evil.example)"
	for name, text := range map[string]string{
		"no end":                           "`" + link,
		"no end on the line":               "`" + link + "\n` b",
		"an odd backtick before":           "a ` b\n`" + link + "`",
		"an odd backtick before, blanks":   "a ` b\n  `" + link + "`",
		"a line that is only almost empty": "a ` b\n\u3000\n`" + link + "`",
		"a carriage return":                "a ` b\r`" + link + "`",
		"an address with a wide blank":     "https://a.example/\u00a0` " + link + " `",
		"an odd backtick on the line":      "a ` b `" + link + "`",
		"two backticks":                    "``" + link + "`",
		"a span that two backticks end":    "`" + link + "``a`",
		"two backticks around":             "`` a ` `" + link + "`",
		"an escaped backtick":              "\\`" + link + "`",
		"in a table":                       "| ` | " + link + " | ` |",
		"in a tag":                         "<b title=\"`\">" + link + "<b title=\"`\">",
		"in a tag of two lines":            "<b title=\"\n`\"> " + link + " `",
		"after an address":                 "https://a.example/` " + link + " `",
		"after a mailbox":                  "a@b.example` " + link + " `",
		"in an address in brackets":        "<https://a.example/`> " + link + " `",
		"in a link's text":                 "[a `](https://b.example) " + link + " ` b",
		"in a link of two lines":           "[a\n`](https://b.example) " + link + " `",
		"a block that is indented":         "  ```\n" + link + "\n  ```",
		"a block with four backticks":      "````\n```\n" + link + "\n```",
		"a block of tildes":                "~~~\n```\n~~~\n" + link + "\n```",
		"a block whose end has words":      "```\na\n``` b\n```\n" + link + "\n```",
		"a block whose end is indented":    "```\na\n ```\n" + link,
		"a block with words of backticks":  "``` a`b\n" + link + "\n```",
		"a block within a line":            "a ```\n" + link + "\n```",
		"a block in a quote":               "> ```\n" + link + "\n> ```",
		"a block in a tag":                 "<pre>\n```\n</pre>\n\n" + link + "\n```",
		"a span of 1,000 bytes":            "`" + strings.Repeat("a", 1000) + link + "`",
		"a block that has ended":           "```\na\n```\n" + link,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for how, got := range everyWay(text) {
				if !strings.Contains(got, "(evil.example)](https://evil.example)") {
					t.Errorf("%s: %q does not show the host", how, got)
				}
			}
		})
	}
	for name, text := range map[string]string{
		"in a span": "`<!channel>`", "in a block": "```\n<!channel> <@U1>\n```",
	} {
		t.Run("a mention "+name, func(t *testing.T) {
			t.Parallel()
			for how, got := range everyWay(text) {
				if calls().MatchString(got) {
					t.Errorf("%s: %q", how, got)
				}
			}
		})
	}
	for name, before := range map[string]string{
		"a block": "```\n", "a block with a line": "```\na\n", "a span of one side": "a ` b", "a line": "a",
	} {
		t.Run("a card within "+name, func(t *testing.T) {
			t.Parallel()
			o := &answerWriter{}
			var b strings.Builder
			for i, p := range []part{{text: before}, {card: &card{id: "1"}}, {text: "`" + link + "`\n" + link + "\n```"}} {
				o.final = i == 2
				for _, sent := range o.settle([]part{p}) {
					b.WriteString(sent.text)
				}
			}
			if got := b.String(); strings.Count(got, "(evil.example)](https://evil.example)") != 2 {
				t.Errorf("%q", got)
			}
		})
	}
	t.Run("cut", func(t *testing.T) {
		t.Parallel()
		text := strings.Repeat("word ", 2000) + "`" + link + " more words` after"
		for room := 9_000; room < 10_100; room++ {
			head, tail := cut(text, room)
			if head+tail != text || strings.Count(head, "`") == 1 {
				t.Fatalf("at %d: %q", room, head[len(head)-20:])
			}
		}
		for odd := strings.Repeat("`"+strings.Repeat("x", 3000), 5); odd != ""; {
			head, tail := cut(odd, plainRoom)
			if head == "" {
				t.Fatalf("nothing of %d bytes", len(odd))
			}
			odd = tail
		}
	})
}
