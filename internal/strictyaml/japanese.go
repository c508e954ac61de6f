package strictyaml

import "github.com/hako-run/hako/pdk/locale"

// textOf returns an English format or word with its Japanese, if it has one.
func textOf(english string) locale.Text {
	text := locale.Text{"en": english}
	if translated, ok := japanese[english]; ok {
		text["ja"] = translated
	}
	return text
}

// word returns an English word, which may be from elsewhere, with its Japanese, if it has one.
func word(english string) *locale.Error {
	text := locale.Text{"en": "%s"}
	if translated, ok := japanese[english]; ok {
		text["ja"] = translated + "%.0s"
	}
	return text.Errorf(english)
}

// japanese has the Japanese of this package's texts and of those that the policy and its cases report. Its verbs have
// the order of the English ones, or say which they are.
var japanese = map[string]string{
	"line %d: ":   "%d 行目: ",
	"and %d more": "ほか %d 件",

	"unknown %s %s: did you mean %q?":     "%s %s はありません。%q の誤りではありませんか",
	"unknown %s %s: none is allowed here": "%s %s はありません。ここには何も書けません",
	"unknown %s %s: known are %s":         "%s %s はありません。使えるのは %s です",
	"claim":                               "宣言",
	"configuration key":                   "設定キー",
	"field of caller":                     "caller のフィールド",
	"frontend":                            "フロントエンド",
	"function":                            "関数",
	"key":                                 "キー",
	"method":                              "メソッド",
	"plugin":                              "プラグイン",
	"property":                            "プロパティー",
	"tenant":                              "テナント",
	"token":                               "トークン",
	"tool":                                "ツール",
	"toolset":                             "ツールセット",
	"type":                                "型",
	"variable":                            "変数",

	"a list":    "リスト",
	"a mapping": "マッピング",
	"a number":  "数",
	"empty: give a value or leave the key out": "空の値 (値を書くか、キーを省いてください)",
	"text":          "文字列",
	"true or false": "true / false",

	"the document has %d bytes; at most %d are allowed":                   "文書が %d バイトあります。%d バイトまでにしてください",
	"the document is not valid UTF-8: save it as UTF-8":                   "文書が正しい UTF-8 ではありません。UTF-8 で保存してください",
	"the document is empty":                                               "文書が空です",
	`there is more than one document: remove what follows "---" or "..."`: `文書が 2 つ以上あります。"---" や "..." より後を削除してください`,
	"YAML syntax: %s": "YAML の構文エラーです (パーサーの説明: %s)",
	"YAML syntax: %s: indent with spaces, not with tabs, and put texts that start with @ or ` in quotes": "YAML の構文エラーです (パーサーの説明: %s)。" +
		"インデントにはタブではなく空白を使い、@ や ` で始まる文字列は引用符で囲んでください",
	"anchors and aliases are not allowed: write the value out":                                   "アンカーとエイリアスは使えません。値をそのまま書いてください",
	"tags are not allowed: remove %s":                                                            "タグは使えません。%s を削除してください",
	"lists and mappings nest deeper than %d":                                                     "リストとマッピングの入れ子が %d 段を超えています",
	"a key must be plain text: write it in quotes":                                               "キーには文字列だけを使えます。引用符で囲んでください",
	"the key %s already occurs in line %d: remove one":                                           "キー %s は %d 行目にもあります。どちらかを削除してください",
	"must be a mapping (key: value), not %s":                                                     "マッピング (キー: 値) を書いてください (現在は%s)",
	"must be a list, not %s":                                                                     "リストを書いてください (現在は%s)",
	"must be a list, not text: put it in brackets, as in [a, b]":                                 "リストを書いてください (現在は文字列)。[a, b] のように角括弧で囲みます",
	"must be text, not %s":                                                                       "文字列を書いてください (現在は%s)",
	`must be text, not %s: for a text write "%s"`:                                                `文字列を書いてください (現在は%s)。文字列なら "%s" と書きます`,
	"must not be empty: give a value or leave the key out":                                       "空の値は使えません。値を書くか、キーを省いてください",
	"must be true or false, not %s":                                                              "true か false を書いてください (現在は%s)",
	"must be a whole number from 1":                                                              "1 以上の整数を書いてください",
	`must be a duration above zero with its unit, such as "500ms", "30s" or "1m30s"`:             `0 より長い時間を単位付きで書いてください (例: "500ms"、"30s"、"1m30s")`,
	`must be a size above zero with its unit, B, KiB, MiB, GiB or TiB, such as "64MiB"`:          `0 より大きいサイズを単位 (B、KiB、MiB、GiB、TiB) 付きで書いてください (例: "64MiB")`,
	"%s is not a number in JSON: write it in plain decimal digits, or in quotes if it is a text": "%s は JSON の数ではありません。10 進数で書くか、文字列なら引用符で囲んでください",
	"must not be empty: write a text, or one by language (en: ..., ja: ...)":                     "空の値は使えません。文字列か、言語ごとの文字列 (en: ...、ja: ...) を書いてください",

	"must be 1, the version of this format":                    "この形式のバージョンである 1 を書いてください",
	"needs a name: decisions refer to it":                      "name が必要です。判定の記録はこの名前を使います",
	"there is another rule called %q: give each its own name":  "ルール %q がほかにもあります。それぞれ別の名前にしてください",
	"there is another quota called %q: give each its own name": "クォータ %q がほかにもあります。それぞれ別の名前にしてください",
	"needs an action: allow, ask or deny":                      "action が必要です (allow、ask、deny のいずれか)",
	"approvers and remember are for the action ask":            "approvers と remember は action が ask のときだけ使えます",
	"must be allow, ask or deny":                               "allow、ask、deny のいずれかを書いてください",
	"must be allow, deny or requires_confirmation":             "allow、deny、requires_confirmation のいずれかを書いてください",
	"needs the id of an employee, as list_employees gives it":  "list_employees が返す従業員の ID が必要です",
	"differs from the address of another entry only in case":   "大文字と小文字だけが違う同じアドレスの項目がほかにあります",
	"must say which names are users and which are groups: write {users: [mori@example.com], groups: [hr-admins]}": "ユーザーとグループを区別して書いてください " +
		"(例: {users: [mori@example.com], groups: [hr-admins]})",
	"there are no cases: list some under cases or commands": "ケースがありません。cases か commands に書いてください",
	"needs a tool and want: allow, ask or deny":             "tool と want (allow、ask、deny のいずれか) が必要です",
	"needs a line and want: allow, ask or deny":             "line と want (allow、ask、deny のいずれか) が必要です",
}
