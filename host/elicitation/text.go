package elicitation

import (
	"fmt"
	"strings"

	"github.com/hako-run/hako/internal/lang"
	"github.com/hako-run/hako/internal/visible"
)

// words are the texts of a question, by whether the language is Japanese.
var words = map[bool]struct{ asks, own, open, host, punycode string }{
	false: {
		asks:     "The server %s asks, in the middle of %s:",
		own:      "These are the server's own words. Answer only if you trust it with what you write.",
		open:     "It wants you to open this address yourself:",
		host:     "It is on the host %s.",
		punycode: "The name of this host has letters that can look like others.",
	},
	true: {
		asks:     "サーバー %s からの質問です（%s の実行中）:",
		own:      "上の文はサーバー自身によるものです。このサーバーに渡してよい内容だけを答えてください。",
		open:     "次のアドレスをご自身で開くよう求めています:",
		host:     "ホスト: %s",
		punycode: "このホスト名には、別の文字に見える文字が含まれています。",
	},
}

// Text returns the question for people in a language, a BCP 47 tag: Japanese, else English. It names the server that
// asks and shows a URL in full, with its host. It does not contain the fields of a form.
func (q *Question) Text(language string) string {
	w := words[lang.Japanese(language)]
	lines := []string{fmt.Sprintf(w.asks, visible.Text(q.Server), visible.Text(q.Tool))}
	for line := range strings.SplitSeq(q.Message, "\n") {
		lines = append(lines, "> "+line)
	}
	if q.URL == nil {
		return strings.Join(append(lines, w.own), "\n")
	}
	lines = append(lines, w.open, q.URL.String(), fmt.Sprintf(w.host, q.URL.Host))
	if strings.Contains("."+q.URL.Host, ".xn--") {
		lines = append(lines, w.punycode)
	}
	return strings.Join(append(lines, w.own), "\n")
}
