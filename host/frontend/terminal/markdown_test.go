package terminal

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/hako-run/hako/dev/kit/visibletest"
	"github.com/hako-run/hako/internal/visible"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ReplaceAll(string(want), "\r\n", "\n") != text {
		t.Errorf("%s differs (go test -update writes it):\n%s", path, text)
	}
}

// answer is an answer with everything that is laid out in its own way.
const answer = `# 残業の集計

これは**太字**と*強調*と` + "`code`" + `、~~取消~~、[リンク](https://example.com/a?b=c)です。長い日本語の文章は幅に合わせて折り返され、
句読点は行頭に来ません。「かぎ括弧」も行末には残りません。

English words are broken between words, and a-word-that-is-much-longer-than-the-line-because-nobody-ever-put-a-space-into-it-at-all is cut.

| 名前 | 残業（分） | 備考 |
|---|---:|---|
| 架空 太郎 | 0 | なし |
| 見本 花子 | 900 | 5月は決算のため多い。来月は減る見込みです。担当者に確認してください。 |

` + "```go" + `
func main() {
	fmt.Println("こんにちは、世界。a long line of code that does not fit into sixty columns")
}
` + "```" + `

1. first
2. second
   - nested, with **bold** text that goes on and on until it needs another line on narrow terminals
   - 入れ子の項目

> A quotation
> of two lines.

---

<b>HTML</b> stays as it is. &lt;entities&gt; \*do not\*.
`

// TestMarkdown: answers are laid out for the width, and no row is wider.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	for _, width := range []int{60, 100, 200} {
		for name, colour := range map[string]bool{"plain": false, "colour": true} {
			var b strings.Builder
			for _, r := range rowsOf(layOut(answer, 0, width, colour)) {
				if w := r.width(); w > width {
					t.Errorf("%d columns: %q has %d", width, r, w)
				}
				b.WriteString(r.String() + "\n")
			}
			text := b.String()
			if colour {
				text = strings.ReplaceAll(text, "\x1b", "␛")
			} else if strings.Contains(text, "\x1b") {
				t.Error("control sequences without colour")
			}
			golden(t, "markdown-"+name+"-"+strconv.Itoa(width), text)
		}
	}
}

// TestMarkdownNarrow: any width is survived.
func TestMarkdownNarrow(t *testing.T) {
	t.Parallel()
	for width := range 30 {
		if rows := rowsOf(layOut(answer, 0, width, true)); len(rows) < 20 {
			t.Errorf("%d columns: %d rows", width, len(rows))
		}
	}
}

// TestHostileMarkdown: no Markdown smuggles a control character through.
func TestHostileMarkdown(t *testing.T) {
	t.Parallel()
	list := map[string]string{
		"reference":            "&#27;[31m &#x1b;]0;x&#7; &#x202e;",
		"reference in address": "[x](https://a/&#27;[31m) <https://b/&#27;> ![x](&#x9b;31m)",
		"reference in code":    "`&#27;` \n\n```&#27;\n&#27;\n```",
	}
	for name, trick := range visibletest.Tricks {
		list[name] = trick
		list["code: "+name] = "```" + trick + "\n" + trick + "\n```\n`" + trick + "`"
		list["link: "+name] = "[" + trick + "](<" + trick + "> \"" + trick + "\") <b " + trick + ">"
		list["table: "+name] = "|" + trick + "|" + trick + "|\n|-|-|\n|" + trick + "|"
	}
	for name, trick := range list {
		for _, r := range rowsOf(layOut(trick, 0, 60, true)) {
			for _, s := range r {
				if s.style != "" && ansi.Strip(s.style) != "" {
					t.Errorf("%s: style %q", name, s.style)
				}
				if c, found := visible.First(s.text, "\u200c\u200d"); found {
					t.Errorf("%s: %U reaches the terminal: %q", name, c, s.text)
				}
			}
		}
	}
}
