package approval

import (
	"fmt"
	"strings"

	"github.com/hako-run/hako/internal/lang"
)

// words are the texts of a question in a language.
type words struct {
	ask, detail, destructive, openWorld string
	who, nobody, why, rule, approvers   string
	via                                 string
	asker, comma                        string
	frontends                           map[string]string
	yes, no, empty                      string
	compared, notCompared, unchanged    string
	unseen, fromLine, notShown          string
	cutText, cutTable, cutValues        string
}

var english = &words{
	ask: "Allow %s?", detail: "It would run", destructive: "It may change or delete things.",
	openWorld: "It reaches other systems.",
	who:       "Asked by", nobody: "a caller without a name", why: "Why", rule: "%s (rule %q)",
	approvers: "May be answered by", via: "Called by the tool",
	asker: "%s (%s)", comma: ", ",
	frontends: map[string]string{
		"mcp-stdio": "MCP on this machine", "mcp-http": "MCP over HTTP", "slack": "Slack", "terminal": "terminal",
		"agent": "managed agent", "console": "console",
	},
	yes: "yes", no: "no", empty: "(empty)",
	compared:    "Compared with the current content. Lines added: %d, removed: %d.",
	notCompared: "Not compared with the current content: %s.",
	unchanged:   "This is the current content.",
	unseen:      " Something that no line shows differs too, such as the line break at the end.",
	fromLine:    "… line %d", notShown: " Changed lines not shown: %d.",
	cutText: "… %d characters in all", cutTable: "… %d rows with up to %d columns in all",
	cutValues: "… and %d more values",
}

var japanese = &words{
	ask: "%s の実行を許可しますか？", detail: "実行内容", destructive: "データを変更・削除する可能性があります。",
	openWorld: "外部のシステムに接続します。",
	who:       "依頼者", nobody: "名前のない呼び出し元", why: "確認の理由", rule: "%s（ルール %q）",
	approvers: "回答できる人", via: "呼び出すツール",
	asker: "%s（%s）", comma: "、",
	frontends: map[string]string{
		"mcp-stdio": "MCP・同じマシン", "mcp-http": "MCP・HTTP 接続", "slack": "Slack", "terminal": "ターミナル",
		"agent": "マネージドエージェント", "console": "コンソール",
	},
	yes: "はい", no: "いいえ", empty: "（空）",
	compared:    "現在の内容との比較: 追加 %d 行、削除 %d 行。",
	notCompared: "現在の内容とは比較していません: %s。",
	unchanged:   "現在の内容と同じです。",
	unseen:      "ほかに、末尾の改行など行に現れない違いがあります。",
	fromLine:    "… %d 行目", notShown: "ほかに %d 行の変更があります。",
	cutText: "…（全 %d 文字）", cutTable: "…（全 %d 行、最大 %d 列）", cutValues: "…（ほか %d 項目）",
}

func wordsIn(language string) *words {
	if lang.Japanese(language) {
		return japanese
	}
	return english
}

// Text returns the question as plain text, in language: see Describe. Arguments are indented and each line of a longer
// one is marked, so that none of them can pass for a line of the question.
func (q *Question) Text(language string) string {
	w, d := wordsIn(language), q.Describe(language)
	lines := []string{d.Ask}
	if d.About != "" {
		lines = append(lines, d.About)
	}
	if d.Detail != "" {
		lines = append(lines, Value{Name: w.detail, Text: d.Detail}.lines()...)
	}
	for _, value := range d.Values {
		for _, line := range value.lines() {
			lines = append(lines, "  "+line)
		}
	}
	lines = append(lines, d.Effects...)
	for _, fact := range d.Facts {
		lines = append(lines, fmt.Sprintf("%s: %s", fact.Name, fact.Text))
	}
	return strings.Join(lines, "\n")
}

// lines are the value on one line if it fits there, else below its name.
func (v Value) lines() []string {
	body := v.Lines()
	if len(body) == 1 && len(v.Rows) == 0 {
		return []string{strings.TrimPrefix(v.Name+": ", ": ") + body[0]}
	}
	var lines []string
	if v.Name != "" {
		lines = append(lines, v.Name+":")
	}
	for _, line := range body {
		lines = append(lines, "│ "+line)
	}
	return lines
}

// Lines are the value as text, without its name: those of Text, or one for each row, and Cut.
func (v Value) Lines() []string {
	var lines []string
	if v.Text != "" {
		lines = strings.Split(v.Text, "\n")
	}
	lines = append(lines, v.Diff...)
	for _, row := range v.Rows {
		var cells []string
		for i, cell := range row {
			if i < len(v.Columns) && cell != "" {
				cell = v.Columns[i] + ": " + cell
			}
			if cell != "" {
				cells = append(cells, cell)
			}
		}
		lines = append(lines, strings.Join(cells, " · "))
	}
	if v.Cut != "" {
		lines = append(lines, strings.Split(v.Cut, "\n")...)
	}
	return lines
}
