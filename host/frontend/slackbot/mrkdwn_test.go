package slackbot

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestMrkdwn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ markdown, want string }{
		{"plain", "plain"},
		{"a < b & c > d", "a &lt; b &amp; c &gt; d"},
		{"**bold** and __bold__", "*bold* and *bold*"},
		{"*italic* ~~gone~~ 2 * 3 * 4", "_italic_ ~gone~ 2 * 3 * 4"},
		{"`a<b`", "`a&lt;b`"},
		{"# Title **x** #", "*Title x*"},
		{"- one\n  * two\n1. three", "• one\n  • two\n1. three"},
		{"> said\n---", "> said\n──────────"},
		{"```go\nif a < b { **c** }\n```\nafter", "```\nif a &lt; b { **c** }\n```\nafter"},
		{"```\nopen", "```\nopen\n```"},
		{"[text](https://example.com/a?b=1&c=2)", "<https://example.com/a?b=1&amp;c=2|text (example.com)>"},
		{"![](https://example.com/a.png)", "<https://example.com/a.png|https://example.com/a.png>"},
		{"[https://bank.example](https://evil.example)", "<https://evil.example|https://evil.example>"},
		{"[x](javascript:alert(1))", "[x](javascript:alert(1))"},
		{"<!channel> <@U123> <https://evil.example|bank>",
			"&lt;!channel&gt; &lt;@U123&gt; &lt;https://evil.example|bank&gt;"},
		{"**東京**の天気は*晴れ*です", "*東京*の天気は_晴れ_です"},
	} {
		if got := mrkdwn(test.markdown); got != test.want {
			t.Errorf("%q: got %q, want %q", test.markdown, got, test.want)
		}
	}
}

// TestWords: everything is said in every language, with the same blanks.
func TestWords(t *testing.T) {
	t.Parallel()
	en, ja := reflect.ValueOf(english), reflect.ValueOf(japanese)
	for i := range en.NumField() {
		name, e, j := en.Type().Field(i).Name, en.Field(i).String(), ja.Field(i).String()
		if e == "" || j == "" || strings.Count(e, "%s") != strings.Count(j, "%s") ||
			strings.Count(e, "%d") != strings.Count(j, "%d") {
			t.Errorf("%s: %q, %q", name, e, j)
		}
	}
}

func TestCalm(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"a < b", "a < b"},
		{"<!channel> <@U1> <#C1> <https://a.example|b> <https://a.example>",
			"&lt;!channel> &lt;@U1> &lt;#C1> &lt;https://a.example|b> <https://a.example>"},
		{"気象庁（https://a.example/x/）のデータ、https://b.example。", "気象庁（https://a.example/x/ ）のデータ、https://b.example 。"},
		{"https://a.example/東京 <https://a.example>。", "https://a.example/東京 <https://a.example>。"},
	} {
		if got := sanitize(test.text); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

// TestSettle: what would call people is caught also where it comes in pieces.
func TestSettle(t *testing.T) {
	t.Parallel()
	o := &answerWriter{}
	var got strings.Builder
	for _, piece := range []string{"hello <", "!chan", "nel> and <", "https://a.example", "|b> 1 <", " 2"} {
		for _, p := range o.settle([]part{{text: piece}}) {
			got.WriteString(p.text)
		}
	}
	o.final = true
	for _, p := range o.settle([]part{{text: " <"}, {text: "note", note: true}}) {
		got.WriteString(p.text)
	}
	if want := "hello &lt;!channel> and &lt;https://a.example|b> 1 < 2 <note"; got.String() != want {
		t.Errorf("got %q, want %q", got.String(), want)
	}
}

// inPieces settles text that comes in pieces, the last of which ends the answer.
func inPieces(pieces ...string) string {
	o := &answerWriter{}
	var got strings.Builder
	for i, piece := range pieces {
		o.final = i == len(pieces)-1
		for _, p := range o.settle([]part{{text: piece}}) {
			got.WriteString(p.text)
		}
	}
	return got.String()
}

// TestSettleAnywhere: wherever a text is cut, it is sent as if it came at once.
func TestSettleAnywhere(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"a <https://evil.example/a b|https://bank.example> b",
		"<https://evil.example/" + strings.Repeat("a", 900) + "|bank>",
		"<" + strings.Repeat("x", 300) + ":evil|bank>",
		"<mailto:a@evil.example|bank> <!channel> <@U123> <#C1>",
		"1 < 2, a <b and c> <https://a.example>",
		"https://bank.example。evil.example、http://a.example/x）と",
		"https:/ http: hth https://a.example https",
		"<https://evil.example [a](https://b.example) https://c.example|bank>",
		"[bank]: https://evil.example\n[bank]",
	} {
		for i := range text {
			for _, j := range []int{i, i + 1, i + 7, len(text)} {
				j = min(j, len(text))
				if got := inPieces(text[:i], text[i:j], text[j:]); got != sanitize(text) {
					t.Errorf("cut at %d and %d: %q, want %q", i, j, got, sanitize(text))
				}
			}
		}
	}
	if got := inPieces("<https://evil.example/"+strings.Repeat("a b", longestAddress), "|bank>"); strings.Contains(got, "<") {
		t.Errorf("a link that is too long: %.60q", got)
	}
}

// TestHeldBeforeCard: what was held back is shown before a card, and no link spans it.
func TestHeldBeforeCard(t *testing.T) {
	t.Parallel()
	o := &answerWriter{}
	var got strings.Builder
	for _, p := range o.settle([]part{{text: "see https://a.example"}, {card: &card{}}, {text: " <https://evil.example"},
		{card: &card{}}, {text: "|bank> "}}) {
		got.WriteString(p.text)
		if p.card != nil {
			got.WriteString("(card)")
		}
	}
	if want := "see https://a.example(card) &lt;https://evil.example(card)|bank> "; got.String() != want {
		t.Errorf("got %q, want %q", got.String(), want)
	}
}

func TestNameInCode(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.txt":                    "`a.txt`",
		"a`\n\n*Approved*\n`b.txt": "`a' *Approved* 'b.txt`",
		strings.Repeat("a", 200):   "`" + strings.Repeat("a", maxName-1) + "…`",
	} {
		if got := nameInCode(name); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		room int
		head string
	}{
		{"one two three", 9, "one two "}, {"onetwothree", 5, "onetw"}, {"line one\nline two", 12, "line one\n"},
		{"あいうえお", 3, "あいう"}, {"x", 0, ""},
		{"今日は晴れ。明日は雨。", 8, "今日は晴れ。"},
	} {
		if head, tail := cut(test.text, test.room); head != test.head || head+tail != test.text {
			t.Errorf("%q at %d: %q and %q", test.text, test.room, head, tail)
		}
	}
}

// markup matches Slack's control sequences.
var markup = regexp.MustCompile(`<[^>]*>?`)

func FuzzMrkdwn(f *testing.F) {
	for _, seed := range []string{"**a** [b](https://c.example) `d`", "```\n<!here>", "> *x*\n# y", "[<!channel>](https://a.example)", "**`*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, markdown string) {
		for _, found := range markup.FindAllString(mrkdwn(markdown), -1) {
			if !strings.HasPrefix(found, "<https://") && !strings.HasPrefix(found, "<http://") &&
				!strings.HasPrefix(found, "<mailto:") {
				t.Errorf("%q became %q", markdown, found)
			}
		}
		if found := calls().FindString(sanitize(markdown)); found != "" {
			t.Errorf("%q still holds %q", markdown, found)
		}
	})
}
