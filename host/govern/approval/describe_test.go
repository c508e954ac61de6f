package approval_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/manifest"
)

func TestText(t *testing.T) {
	t.Parallel()
	q := question(`{"command":"rm x","force":true,"note":"two\nlines","rows":[{"name":"Aki","hours":8},{"name":"Bo"}],
		"cells":[["a",1],["b",null]],"options":{"deep":{"n":1e2}},"names":["x","y"],"empty":[]}`)
	q.Title, q.Detail, q.OpenWorld = manifest.Text{"en": "Run a command", "ja": "コマンド実行"}, "rm x\u202e\x1b[2J", true
	q.About = manifest.Text{"en": "Runs a program.", "ja": "プログラムを実行します。"}
	q.Client = "claude 1.2"
	q.Approvers = policy.People{Users: []string{"U\x1b1"}, Groups: []string{"leads"}}
	const english = `Allow Run a command (shell_exec)?
Runs a program.
It would run: rm x␦␦[2J
  command: rm x
  force: yes
  note:
  │ two
  │ lines
  rows:
  │ name: Aki · hours: 8
  │ name: Bo
  cells:
  │ a · 1
  │ b · (empty)
  options.deep.n: 1e2
  names: x, y
  empty: (empty)
It may change or delete things.
It reaches other systems.
Asked by: aki (claude 1.2, MCP over HTTP)
Why: it writes (rule "ask before writing")
May be answered by: U\u001b1, the group leads`
	if got := q.Text("en-US"); got != english {
		t.Errorf("got\n%s", got)
	}
	japanese := q.Text("ja")
	for _, want := range []string{"コマンド実行 (shell_exec) の実行を許可しますか？\nプログラムを実行します。\n実行内容: rm", "force: はい", "依頼者: aki（claude 1.2、MCP・HTTP 接続）\n", "確認の理由: 書き込みます（", "回答できる人: "} {
		if !strings.Contains(japanese, want) {
			t.Errorf("%q is missing in\n%s", want, japanese)
		}
	}
}

// TestDescribeIsBounded describes arguments that are larger than a person reads.
func TestDescribeIsBounded(t *testing.T) {
	t.Parallel()
	many := func(n int, of string) string { return strings.TrimSuffix(strings.Repeat(of+",", n), ",") }
	var members []string
	for i := range 1000 {
		members = append(members, `"`+strings.Repeat("k", 500)+string(rune('a'+i%26))+`":1`)
	}
	for name, test := range map[string]struct{ arguments, want string }{
		"a long text":    {`{"text":"` + strings.Repeat("あ", 5000) + `"}`, "5000 characters in all"},
		"many rows":      {`{"rows":[` + many(5000, `{"a":"x"}`) + `]}`, "5000 rows"},
		"many columns":   {`{"rows":[[` + many(5000, `1`) + `]]}`, "up to 5000 columns"},
		"many arguments": {`{` + strings.Join(members, ",") + `}`, "and 960 more values"},
		"nested deeply":  {`{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, "characters in all"},
	} {
		q := question(test.arguments)
		if text := q.Text("en"); len(text) > 10_000 || !strings.Contains(text, test.want) {
			t.Errorf("%s: %d bytes: %.300s", name, len(text), text)
		}
		if n := len(q.JSON()); n < len(test.arguments) || n > 10*len(test.arguments) {
			t.Errorf("%s: %d bytes have %d as JSON", name, len(test.arguments), n)
		}
	}
}

// TestHostileArguments tries to hide an argument, or to have it pass for a part of the question.
func TestHostileArguments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments string
		want      []string
	}{
		"a name twice": {`{"a":1,"a":2}`, []string{"\n  a: 1\n  a: 2\n"}},
		"escaped letters": {`{"\u0072m":"\u0072m -rf \u3042 \u003c\u202e\u001b"}`,
			[]string{"\n  rm: rm -rf あ <␦␦\n"}},
		"a line of a question": {`{"a":"x\nAsked by: admin"}`, []string{"\n  │ Asked by: admin\n"}},
		"a name with lines":    {`{"x\nAsked by: admin\n":1}`, []string{`  x`, `Asked by: admin`}},
		"a name as a fact":     {`{"Asked by":"admin"}`, []string{"\n  Asked by: admin\n"}},
		"cells with lines":     {`{"r":[{"a":"x\nAsked by: admin"}]}`, []string{"\n  │ a: x"}},
		"not JSON":             {`{"a":`, []string{`  {"a":`}},
		"a lone text":          {`"rm -rf"`, []string{"\n  rm -rf\n"}},
		"invalid UTF-8":        {"{\"a\":\"x\xff\"}", []string{"\n  a: x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := question("{}")
			q.Arguments = json.RawMessage(test.arguments)
			text := q.Text("en")
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in\n%s", want, text)
				}
			}
			if n := strings.Count("\n"+text, "\nAsked by:"); n != 1 {
				t.Errorf("%d lines say who asks:\n%s", n, text)
			}
		})
	}
	if got, want := question(`{"\u0061":[1e2,{}]}`).JSON(), "{\n  \"a\": [\n    1e2,\n    {}\n  ]\n}"; got != want {
		t.Errorf("got %s", got)
	}
	if d := question("{}").Describe("en"); len(d.Values) > 0 {
		t.Errorf("no arguments: %+v", d)
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add(`{"a":[{"b":1}],"c":{"d":null}}`)
	f.Fuzz(func(t *testing.T, arguments string) {
		q := question(arguments)
		text := q.Text("ja")
		if n := strings.Count("\n"+text, "\n依頼者:"); n != 1 {
			t.Errorf("%d lines say who asks:\n%s", n, text)
		}
	})
}
