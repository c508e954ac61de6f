package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/pdk/locale"
)

// TestConditionErrors: what is wrong with a condition is said in the reader's language, with the words of CEL as a quoted
// detail in Japanese.
func TestConditionErrors(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string][2]string{
		`usr == "x"`: {`at character 1: unknown variable "usr": did you mean "user"?`,
			`1 文字目: 変数 "usr" はありません。"user" の誤りではありませんか`},
		`sice(tool) > 2`: {`at character 5: unknown function "sice": did you mean "size"?`,
			`5 文字目: 関数 "sice" はありません。"size" の誤りではありませんか`},
		`tool + 1 == 2`: {`at character 6: found no matching overload for '_+_' applied to '(string, int)'`,
			`6 文字目: _+_ は (string, int) には使えません。値の型を確認してください ` +
				`(CEL の説明: "found no matching overload for '_+_' applied to '(string, int)'")`},
		`tool ==`:               {"at character 8: Syntax error:", `8 文字目: 構文エラーです (CEL の説明: "Syntax error: `},
		`tool`:                  {"it must be true or false, not string", "true か false になる式を書いてください (現在の型は string)"},
		`tool.x == ""`:          {"does not support field selection", "string 型の値にフィールドはありません (CEL の説明: "},
		`caller.emploee == "1"`: {`unknown field of caller "emploee"`, `caller のフィールド "emploee" はありません。"employee" の誤りではありませんか`},
	} {
		_, err := policy.Parse([]byte("version: 1\nrules:\n  - name: a\n    action: deny\n    when: '" + condition + "'\n"))
		var list *strictyaml.Error
		if !errors.As(err, &list) || len(list.Problems) != 1 {
			t.Errorf("%s: %v", condition, err)
			continue
		}
		for i, language := range []string{"en", "ja"} {
			got := list.Problems[0].In(language)
			if !strings.HasPrefix(got, "5:11: rules[0].when: ") || !strings.Contains(got, want[i]) {
				t.Errorf("%s: got %s, want %s", condition, got, want[i])
			}
		}
	}
}

// TestDoubtIn: why a condition cannot be evaluated is said in the reader's language.
func TestDoubtIn(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse([]byte("version: 1\nrules:\n" +
		"  - {name: a, action: allow, when: arguments.path == 'x'}\n  - {name: b, action: deny, when: arguments.n > 2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := policy.NewExplanation(p, &policy.Call{Tool: "t", Plugin: "p", Arguments: []byte(`{"n":"x"}`)}, "ja")
	if got := e.Decision.Doubt; got != `値の型が演算や関数に合いません (CEL の説明: "no such overload")` {
		t.Error(got)
	}
	if got := e.Passed[0].Problem; got != `キー path がありません (CEL の説明: "no such key: path")` {
		t.Error(got)
	}
}

// TestPolicyErrorsIn: the other problems of a policy are in Japanese as well, also those of quotas, commands and secrets,
// and that of a whole file.
func TestPolicyErrorsIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"version: 2":                      "version: この形式のバージョンである 1 を書いてください",
		"version: 1\nquotas: [{name: q}]": "クォータ q には上限がありません。rate、concurrent、cpu のいずれかを書いてください",
		"version: 1\nquotas: [{name: q, per: day, rate: 1}]":           `(現在は "day")`,
		"version: 1\ncommands: [{name: c, action: deny}]":              `コマンドのルール "c": programs、flags、args のどれもないため`,
		"version: 1\nsecrets: {results: x}":                            "results: ignore、report、mask、refuse のいずれかを書いてください",
		"version: 1\nsecrets: {rules: [{id: nope, action: mask}]}":     `ルール "nope" はありません`,
		"version: 1\nsecrets: {allow: ['(']}":                          "allow の正規表現が正しくありません (",
		"version: 1\nrules: [{name: a, action: deny, approvers: [x]}]": "ユーザーとグループを区別して書いてください",
	} {
		_, err := policy.Parse([]byte(text))
		if got := locale.In(err, "ja"); !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	path := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(path, []byte("version: 1\nrule: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := policy.OpenLive(path)
	if got, want := locale.In(err, "ja"), `ポリシー `+path+`: 2:1: キー "rule" はありません。"rules" の誤りではありませんか`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
