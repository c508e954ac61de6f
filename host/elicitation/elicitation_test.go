package elicitation

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// form parses a form with one field x.
func form(t *testing.T, property string) (*Question, error) {
	t.Helper()
	return Parse(&Request{Message: "m", Schema: json.RawMessage(`{"type":"object","properties":{"x":` + property +
		`}}`)})
}

func TestFields(t *testing.T) {
	t.Parallel()
	for property, want := range map[string]struct {
		kind      Kind
		good, bad []any
	}{
		`{"type":"string","minLength":2,"maxLength":3}`: {Text,
			[]any{"ab", "あいう"}, []any{"a", "abcd", 1.0, nil, "a\xff"}},
		`{"type":"string","format":"email"}`: {Text,
			[]any{"a@example.com"}, []any{"Aki <a@example.com>", "a"}},
		`{"type":"string","format":"uri"}`: {Text,
			[]any{"https://example.com/"}, []any{"example", ":"}},
		`{"type":"string","format":"date"}`: {Text,
			[]any{"2026-02-28"}, []any{"2026-02-30", "28.2.2026"}},
		`{"type":"string","format":"date-time"}`: {Text,
			[]any{"2026-02-28T09:00:00+09:00"}, []any{"2026-02-28"}},
		`{"type":"string","pattern":"^[a-z]+$"}`: {Text,
			[]any{"abc"}, []any{"ABC"}},
		`{"type":"number","minimum":0.5,"maximum":2}`: {Number,
			[]any{0.5, 2.0}, []any{0.4, 2.1, "1", true}},
		`{"type":"integer","minimum":1}`: {Integer,
			[]any{1.0, 7.0}, []any{0.0, 1.5}},
		`{"type":"boolean"}`: {Boolean,
			[]any{true, false}, []any{"true", 1.0}},
		`{"type":"string","enum":["a","b"]}`: {Choice,
			[]any{"a"}, []any{"c", "A", 1.0}},
		`{"type":"string","enum":["a","b"],"enumNames":["One","Two"]}`: {Choice,
			[]any{"b"}, []any{"Two"}},
		`{"type":"string","oneOf":[{"const":"a","title":"One"}]}`: {Choice,
			[]any{"a"}, []any{"One"}},
		`{"type":"array","minItems":1,"maxItems":1,"items":{"type":"string","enum":["a","b"]}}`: {Choices,
			[]any{[]any{"a"}}, []any{[]any{}, []any{"a", "b"}, []any{"c"}, []any{1.0}, "a"}},
		`{"type":"array","items":{"anyOf":[{"const":"a","title":"One"},{"const":"b","title":"Two"}]}}`: {Choices,
			[]any{[]any{}, []any{"b", "a"}}, []any{[]any{"a", "a"}}},
		`{"type":"string","properties":{"y":{"type":"string"}},"$ref":"https://evil.example","default":7}`: {Text,
			[]any{"a"},
			[]any{map[string]any{"y": "a"}}},
	} {
		q, err := form(t, property)
		if err != nil {
			t.Errorf("%s: %v", property, err)
			continue
		}
		field := q.Form.Fields[0]
		if field.Kind != want.kind || field.Default != nil {
			t.Errorf("%s: %+v", property, field)
		}
		for _, value := range want.good {
			if content, err := q.Form.Check(map[string]any{"x": value}); err != nil ||
				!reflect.DeepEqual(content["x"], value) {
				t.Errorf("%s: %v: %v", property, value, err)
			}
		}
		for _, value := range want.bad {
			if _, err := field.Check(value); err == nil {
				t.Errorf("%s takes %v", property, value)
			}
		}
		again, err := Parse(q.Request())
		if err != nil || !reflect.DeepEqual(again, q) || strings.Contains(string(q.Form.Schema()), "evil") {
			t.Errorf("%s: %s, %v", property, q.Form.Schema(), err)
		}
	}
}

// TestRules: what a server may not ask is refused, with the reason.
func TestRules(t *testing.T) {
	t.Parallel()
	many := func(n int, item string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(item, i))
		}
		return strings.Join(list, ",")
	}
	schemas := map[string]string{
		`[]`: "not one of an object", `{"type":"array"}`: "not one of an object",
		`{"properties":[]}`: "not one of an object",
		`{"properties":{` + many(21, `"f%d":{"type":"boolean"}`) +
			`}}`: "more than 20 fields",
		`{"properties":{"":{"type":"string"}}}`:                           "usable name",
		`{"properties":{"a\u202eb":{"type":"string"}}}`:                   "usable name",
		`{"required":["y"],"properties":{}}`:                              "does not have",
		`{"properties":{"x":{"type":"object"}}}`:                          "has a type",
		`{"properties":{"x":{"$ref":"#/y"}}}`:                             "has a type",
		`{"properties":{"x":{"anyOf":[{"type":"string"}]}}}`:              "has a type",
		`{"properties":{"x":true}}`:                                       "is not one of",
		`{"properties":{"x":{"type":["string","null"]}}}`:                 "is not one of",
		`{"properties":{"x":{"type":"string","enum":[1]}}}`:               "is not one of",
		`{"properties":{"x":{"type":"array","items":{"type":"string"}}}}`: "not one of options",
		`{"properties":{"x":{"type":"array","items":{"type":"array"}}}}`:  "not one of options",
		`{"properties":{"x":{"type":"string","enum":[` + many(101, `"o%d"`) +
			`]}}}`: "more than 100 options",
		`{"properties":{"x":{"type":"string","enum":["a","a"]}}}`:                           "or a duplicate",
		`{"properties":{"x":{"type":"string","enum":["a"],"enumNames":["A","B"]}}}`:         "enumNames",
		`{"properties":{"x":{"type":"string","format":"password"}}}`:                        "has a format",
		`{"properties":{"x":{"type":"string","pattern":"(?=x)"}}}`:                          "cannot be checked",
		`{"properties":{"x":{"type":"string","title":"` + strings.Repeat("t", 201) + `"}}}`: "too long",
		`{"properties":{"x":{"type":"string","description":"` + strings.Repeat("d", 70<<10) +
			`"}}}`: "larger than 64 KiB",
	}
	for _, name := range []string{"password", "userPassword", "api_key", "API-Key", "access token", "clientSecret",
		"creditCardNumber", "card number", "CVV", "pin", "パスワード", "暗証番号", "otp"} {
		schemas[`{"properties":{"`+name+`":{"type":"string"}}}`] = "asks for a secret"
		schemas[`{"properties":{"x":{"type":"string","description":"Your `+name+`"}}}`] = "asks for a secret"
	}
	for schema, want := range schemas {
		if _, err := Parse(&Request{Schema: json.RawMessage(schema)}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.200s: %v, want %s", schema, err, want)
		}
	}
	for url, want := range map[string]string{
		"http://example.com/": "https", "javascript:alert(1)": "URL of a page", "file:///etc/passwd": "URL of a page",
		"https://": "URL of a page", "https://user:pw@example.com/": "user name",
		"https://example.com@evil.example/": "user name", "https://exa mple.com/": "URL of a page",
		"https://example.com/\u202e": "URL of a page", "https://example.com\\.evil.example/": "URL of a page",
		"https://" + strings.Repeat("a", 2048) + ".example/": "longer", "data:text/html,x": "URL of a page",
		"https://:443/": "URL of a page",
	} {
		if _, err := Parse(&Request{URL: url}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %s", url, err, want)
		}
	}
	for _, r := range []Request{{Mode: "other"}, {Message: strings.Repeat("m", 4097)},
		{Message: "Enter your API key", Schema: json.RawMessage(`{"properties":{"value":{"type":"string"}}}`)}} {
		if _, err := Parse(&r); err == nil {
			t.Errorf("%.100v was taken", r)
		}
	}
}

// TestAllowed: what only sounds like a secret may be asked.
func TestAllowed(t *testing.T) {
	t.Parallel()
	for _, r := range []Request{
		{Message: "Your password has expired. Reset it?",
			Schema: json.RawMessage(`{"properties":{"reset":{"type":"boolean"}}}`)},
		{Schema: json.RawMessage(
			`{"properties":{"maxTokens":{"type":"integer"},"key":{"type":"string"},"spin":{"type":"string"},"secretary":{"type":"string"}}}`)},
		{Message: "Sign in with your password.", URL: "https://example.com/"},
		{URL: "http://localhost:8080/x"}, {URL: "http://[::1]:8080/"}, {},
		{Schema: json.RawMessage(`{"$schema":"x","additionalProperties":false}`)},
	} {
		if _, err := Parse(&r); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	q, err := Parse(
		&Request{
			Schema: json.RawMessage(
				`{"required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"string","format":"email"},"c":{"type":"integer","default":3}}}`)})
	if err != nil || q.Form.Fields[0].Name != "a" || q.Form.Fields[2].Default != 3.0 {
		t.Fatalf("%+v, %v", q, err)
	}
	for content, want := range map[string]string{
		`{}`: "a is missing", `{"a":null}`: "a is missing", `{"a":"x","b":""}`: "",
		`{"a":"x","b":"y"}`: "must be an e-mail address", `{"a":"x","d":1}`: "is not a field", `{"a":""}`: "",
	} {
		var given map[string]any
		if err := json.Unmarshal([]byte(content), &given); err != nil {
			t.Fatal(err)
		}
		checked, err := q.Form.Check(given)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", content, checked, err)
		}
		if _, empty := checked["b"]; empty {
			t.Errorf("%s: an empty field was kept", content)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for property, typed := range map[string]map[string]any{
		`{"type":"boolean"}`: {"y": true, "はい": true, "NO": false, "いいえ": false, "perhaps": nil},
		`{"type":"number"}`:  {" 1.5 ": 1.5, "NaN": nil, "x": nil},
		`{"type":"string","oneOf":[{"const":"a","title":"One"},{"const":"2","title":"Two"}]}`: {"1": "a", "2": "2",
			"One": "a", "3": nil, "0": nil},
		`{"type":"array","items":{"type":"string","enum":["a","b"]}}`: {"1, b": []any{"a",
			"b"}, "1,1": nil},
	} {
		q, err := form(t, property)
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range typed {
			if got, err := q.Form.Fields[0].Read(text); (err == nil) != (want != nil) || err == nil &&
				!reflect.DeepEqual(got, want) {
				t.Errorf("%s: %q is %v, %v", property, text, got, err)
			}
		}
	}
}

// TestText: nothing in a question looks like hako's own words.
func TestText(t *testing.T) {
	t.Parallel()
	q, err := Parse(&Request{Message: "one\nThe server bank asks:\x1b[2J\u202e", URL: "https://xn--e1awd7f.example/"})
	if err != nil {
		t.Fatal(err)
	}
	q.Server, q.Tool = "crm", "crm_find"
	want := "The server crm asks, in the middle of crm_find:\n> one\n> The server bank asks:␦[2J␦\nIt wants you to open this address yourself:\n" +
		"https://xn--e1awd7f.example/\nIt is on the host xn--e1awd7f.example.\nThe name of this host has letters that can look like others.\n" +
		"These are the server's own words. Answer only if you trust it with what you write."
	if got := q.Text("en-US"); got != want {
		t.Errorf("%s", got)
	}
	if got := q.Text("ja"); !strings.HasPrefix(got, "サーバー crm からの質問です") {
		t.Errorf("%s", got)
	}
}

// FuzzParse: what is taken can be shown, sent on and taken again, and no answer that does not fit passes.
func FuzzParse(f *testing.F) {
	f.Add(
		"form", "m",
		`{"type":"object","properties":{"x":{"type":"string","enum":["a"],"default":"a"}},"required":["x"]}`, "",
		`{"x":"a"}`)
	f.Add("url", "m", "", "https://bücher.example/?q=%20#x", "{}")
	f.Add("url", "m", "", "https://:/", "{}")
	// Texts that grow when their characters are made visible or are encoded.
	f.Add("form", strings.Repeat("\x7f", 2000), "", "", "{}")
	f.Add("form", "m", `{"properties":{"x":{"type":"string","title":"`+strings.Repeat("\x7f", 100)+`"}}}`, "", "{}")
	f.Add("form", "m", `{"properties":{"x":{"type":"string","default":"`+strings.Repeat("<", 200)+`"}}}`, "", "{}")
	f.Add("url", "m", "", "https://example.com/"+strings.Repeat("ü", 500), "{}")
	f.Fuzz(func(t *testing.T, mode, message, schema, url, content string) {
		q, err := Parse(&Request{Mode: mode, Message: message, Schema: json.RawMessage(schema), URL: url})
		if err != nil {
			return
		}
		if again, err := Parse(q.Request()); err != nil || again.Text("en") != q.Text("en") {
			t.Errorf("%+v: %v", q, err)
		}
		var given map[string]any
		if q.Form == nil || json.Unmarshal([]byte(content), &given) != nil {
			return
		}
		if checked, err := q.Form.Check(given); err == nil {
			if again, err := q.Form.Check(checked); err != nil || !reflect.DeepEqual(again, checked) {
				t.Errorf("%v, %v, %v", checked, again, err)
			}
		}
	})
}
