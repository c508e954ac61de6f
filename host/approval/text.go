package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hako-run/hako/internal/visible"
)

// maxShown bounds the displayed arguments, in bytes. Longer ones are cut and marked as cut.
const maxShown = 2000

// questionWords are the texts of a question by language.
var questionWords = map[string]struct {
	ask, who, nobody, arguments, detail, destructive, openWorld, rule, approvers, cut string
}{
	"en": {"Allow %s?", "Asked by: %s", "a caller without a name", "Arguments:", "It would run: %s",
		"It may change or delete things.", "It reaches other systems.",
		"Because of the rule %q: %s", "May be answered by: %s", "… (%d bytes in all)"},
	"ja": {"%s の実行を許可しますか？", "依頼者: %s", "名前のない呼び出し元", "引数:", "実行内容: %s", "データを変更・削除する可能性があります。", "外部のシステムに接続します。",
		"ルール「%s」: %s", "回答できる人: %s", "…（全 %d バイト）"},
}

// Text returns the question for people, in language, a BCP 47 tag: Japanese, or else English. It says who asks for
// what, why a person is asked, and who may answer if that is not the caller. Control characters are escaped, so that
// nothing can hide.
func (q *Question) Text(language string) string {
	w := questionWords["en"]
	if strings.HasPrefix(strings.ToLower(language), "ja") {
		w = questionWords["ja"]
	}
	name := q.Tool
	if q.Title != "" {
		name = fmt.Sprintf("%s (%s)", q.Title, q.Tool)
	}
	lines := []string{fmt.Sprintf(w.ask, visible.Text(name))}
	if q.Detail != "" {
		lines = append(lines, fmt.Sprintf(w.detail, visible.Text(q.Detail)))
	}
	if len(q.Arguments) > 0 {
		lines = append(lines, w.arguments+" "+readable(q.Arguments, w.cut))
	}
	if q.Destructive {
		lines = append(lines, w.destructive)
	}
	if q.OpenWorld {
		lines = append(lines, w.openWorld)
	}
	who := q.Caller.User
	if who == "" {
		who = w.nobody
	}
	lines = append(lines, fmt.Sprintf(w.who, visible.Text(who+" ("+q.Caller.Frontend+")")))
	if q.Reason != "" {
		lines = append(lines, fmt.Sprintf(w.rule, q.Rule, visible.Text(q.Reason)))
	}
	if !q.Approvers.IsZero() {
		lines = append(lines, fmt.Sprintf(w.approvers, visible.Text(q.Approvers.In(language))))
	}
	return strings.Join(lines, "\n")
}

// readable formats arguments on several lines and without escape sequences, which could hide words.
func readable(arguments json.RawMessage, cut string) string {
	formatted := jsontext.Value(bytes.Clone(arguments))
	// Arguments that cannot be formatted are shown unchanged.
	_ = formatted.Format(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.Multiline(true),
		jsontext.WithIndent("  "))
	text := visible.Text(string(formatted))
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + fmt.Sprintf(cut, len(arguments))
}
