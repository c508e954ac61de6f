package secretscan_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/hako-run/hako/host/govern/secretscan"
)

// fakes are secrets of many kinds, none of them real. They are put together here so that no scanner takes this file for
// a leak.
func fakes() map[string]string {
	const hex = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
	mixed := "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3gH5"
	jwt := func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) }
	return map[string]string{
		"slack-bot-token":         "xox" + "b-" + "1234567890123-1234567890123-" + mixed[:24],
		"slack-user-token":        "xox" + "p-" + "1234567890123-1234567890123-1234567890123-" + hex,
		"slack-webhook-url":       "https://hooks.slack" + ".com/services/" + "T0A1B2C3D/B0A1B2C3D/" + mixed[:24],
		"github-pat":              "ghp" + "_" + mixed,
		"github-fine-grained-pat": "github" + "_pat_" + mixed + "_" + mixed + mixed[:9],
		"gitlab-pat":              "glpat" + "-" + mixed[:20],
		"aws-access-token":        "AKIA" + "Z3MGN5TXQ2LDK7WB",
		"gcp-api-key":             "AIza" + "Sy" + mixed[:33],
		"anthropic-api-key":       "sk-ant" + "-api03-" + (mixed + mixed + mixed)[:93] + "AA",
		"openai-api-key":          "sk-" + mixed[:20] + "T3Blbk" + "FJ" + mixed[:20],
		"stripe-access-token":     "sk" + "_live_" + mixed[:24],
		"npm-access-token":        "npm" + "_" + strings.ToLower(mixed),
		"sendgrid-api-token":      "SG." + mixed[:22] + "." + (mixed + mixed)[:43],
		"jwt": jwt(`{"alg":"HS256","typ":"JWT"}`) + "." +
			jwt(`{"sub":"1234567890","name":"Aki"}`) + "." + (mixed + mixed)[:43],
		"private-key": "-----BEGIN RSA " + "PRIVATE KEY-----\n" +
			strings.Repeat(mixed+mixed[:28]+"\n", 30) + "-----END RSA PRIVATE KEY-----",
		"telegram-bot-api-token":          "telegram = 123456789:A" + (mixed + mixed)[:34],
		"huggingface-access-token":        "hf" + "_" + strings.Repeat("aBcDeFgHiJkLmNoPqR", 2)[:34],
		"digitalocean-pat":                "dop" + "_v1_" + hex + hex,
		"hashicorp-tf-api-token":          mixed[:14] + ".atlas" + "v1." + (mixed + mixed)[:60],
		"azure-ad-client-secret":          "aB3" + "8Q~" + mixed[:34],
		"twilio-api-key":                  "SK" + hex,
		"vault-service-token":             "s." + mixed[:24],
		"shopify-access-token":            "shp" + "at_" + hex,
		"pypi-upload-token":               "pypi-AgEIcHlwaS5vcmc" + (mixed + mixed),
		"1password-service-account-token": "ops_" + "eyJ" + strings.Repeat(mixed, 10),
	}
}

func scanner(t testing.TB, rules secretscan.Rules) *secretscan.Scanner {
	t.Helper()
	s, err := secretscan.New(&rules)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	s := scanner(t, secretscan.Rules{})
	for rule, secret := range fakes() {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			bare := secret[strings.LastIndex(secret, "= ")+1:]
			bare = strings.TrimSpace(bare)
			for _, text := range []string{
				secret, "The token is " + secret + " , use it", "line\n" + secret + "\nline",
				strings.Repeat("the key of the house ", 200) + secret + strings.Repeat(" and so on", 200),
			} {
				masked, found := s.Text(secretscan.Results, text)
				if strings.Contains(masked, bare) || !strings.Contains(masked, "[masked: "+rule+"]") ||
					!slices.Contains(found,
						secretscan.Finding{Rule: rule, Place: secretscan.Results, Action: secretscan.Mask}) {
					t.Errorf("%.60q: %.200q, %v", text, masked, found)
				}
			}
			document, err := json.Marshal(map[string]any{"a": []any{1, "x",
				map[string]string{"text": "so: " + secret}}, "b": "<&>é"})
			if err != nil {
				t.Fatal(err)
			}
			masked, _ := s.JSON(secretscan.Results, document)
			if !json.Valid(masked) || strings.Contains(string(masked), bare) ||
				!strings.Contains(string(masked), rule) ||
				!strings.HasSuffix(string(masked), `"b":"\u003c\u0026\u003eé"}`) {
				t.Errorf("JSON: %.300s", masked)
			}
			if rule == "private-key" {
				return
			}
			// No spelling of JSON hides it.
			escaped := ""
			for _, c := range []byte(secret) {
				escaped += fmt.Sprintf(`\u%04x`, c)
			}
			if masked, _ := s.JSON(secretscan.Results,
				json.RawMessage(`{"x":"`+escaped+`"}`)); !strings.Contains(string(masked),
				"[masked: "+rule+"]") || !json.Valid(masked) {
				t.Errorf("escaped: %.300s", masked)
			}
		})
	}
}

// TestLongSecrets: one that is longer than what is looked at first is masked to its end.
func TestLongSecrets(t *testing.T) {
	t.Parallel()
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	long := part(`{"alg":"HS256","typ":"JWT"}`) + "." + part(`{"sub":"`+strings.Repeat("aki tanaka ", 400)+`"}`) + "." +
		part(strings.Repeat("signature", 300))
	masked, _ := scanner(t, secretscan.Rules{}).Text(secretscan.Results,
		"before "+long+" after "+strings.Repeat("text ", 20_000))
	if !strings.HasPrefix(masked, "before [masked: jwt] after text") {
		t.Errorf("%.300s", masked)
	}
}

// TestNoSecrets: what only looks random is left alone.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	s := scanner(t, secretscan.Rules{})
	image := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x89PNG\r\n\x1a\n\x00\x01\x7f\xe3", 4000)))
	for _, text := range []string{
		"3f2504e0-4f89-11d3-9a0c-0305e82c3301",
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"commit 92cc1e5d3b4a59687f6e5d4c3b2a190817263544",
		"data:image/png;base64," + image,
		image,
		"https://example.com/a/b?page=2&token=next",
		"東京の天気は晴れです。気温は20度。",
		"Authorization: Bearer ${TOKEN}",
		`{"id":"01J9Z3NDEKTSV4RRFFQ69G5FAV","etag":"W/\"686897696a7c876b7e\""}`,
		"AKIAEXAMPLE", "ghp_short", "the key to success is practice",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
		"",
	} {
		if masked, found := s.Text(secretscan.Results, text); masked != text {
			t.Errorf("%.60q: %.100q, %v", text, masked, found)
		}
		document, err := json.Marshal(map[string]string{"value": text})
		if err != nil {
			t.Fatal(err)
		}
		if masked, found := s.JSON(secretscan.Results, document); string(masked) != string(document) {
			t.Errorf("JSON %.60q: %.100q, %v", text, masked, found)
		}
	}
}

func TestActions(t *testing.T) {
	t.Parallel()
	slack, guess := fakes()["slack-bot-token"], `api_key = "q8Zr2LmX9vTb4KpWn7Yc"`
	for _, test := range []struct {
		name  string
		rules secretscan.Rules
		place secretscan.Place
		text  string
		want  secretscan.Action // empty: not found
	}{
		{"arguments by default", secretscan.Rules{}, secretscan.Arguments, slack, secretscan.Report},
		{"results by default", secretscan.Rules{}, secretscan.Results, slack, secretscan.Mask},
		{"logs by default", secretscan.Rules{}, secretscan.Logs, slack, secretscan.Mask},
		{"a guess is only reported", secretscan.Rules{}, secretscan.Results, guess, secretscan.Report},
		{"unless the operator wants more",
			secretscan.Rules{Overrides: []secretscan.Override{{"generic-*", secretscan.Refuse}}}, secretscan.Results,
			guess,
			secretscan.Refuse},
		{"a place", secretscan.Rules{Arguments: secretscan.Refuse}, secretscan.Arguments, slack, secretscan.Refuse},
		{"a place ignored", secretscan.Rules{Results: secretscan.Ignore}, secretscan.Results, slack, ""},
		{"a rule",
			secretscan.Rules{Overrides: []secretscan.Override{{"slack-*", secretscan.Refuse}, {"*", secretscan.Mask}}},
			secretscan.Results, slack, secretscan.Refuse},
		{"a rule ignored", secretscan.Rules{Overrides: []secretscan.Override{{"slack-*", secretscan.Ignore}}},
			secretscan.Results, slack, ""},
		{"allowed", secretscan.Rules{Allow: []string{"^xoxb-123456"}}, secretscan.Results, slack, ""},
	} {
		s := scanner(t, test.rules)
		masked, found := s.Text(test.place, "so: "+test.text+" ")
		var got secretscan.Action
		if len(found) > 0 {
			got = found[0].Action
		}
		if got != test.want || (masked != "so: "+test.text+" ") != (test.want == secretscan.Mask) {
			t.Errorf("%s: %q, %v", test.name, masked, found)
		}
	}
	s := scanner(t, secretscan.Rules{})
	if masked := s.Masked(slack); strings.Contains(masked, slack) {
		t.Error("not masked for records")
	}
	if masked := s.MaskedJSON(json.RawMessage(`{"t":"` + slack +
		`"}`)); string(masked) != `{"t":"[masked: slack-bot-token]"}` {
		t.Errorf("not masked for records: %s", masked)
	}
}

func TestBadRules(t *testing.T) {
	t.Parallel()
	for _, rules := range []secretscan.Rules{
		{Arguments: "drop"}, {Overrides: []secretscan.Override{{"slack-bot-token", "drop"}}},
		{Overrides: []secretscan.Override{{"slac-bot", secretscan.Mask}}},
		{Overrides: []secretscan.Override{{"[", secretscan.Mask}}}, {Allow: []string{"("}},
	} {
		if _, err := secretscan.New(&rules); err == nil {
			t.Errorf("%+v is taken", rules)
		}
	}
}

// TestNames: a secret without a form of its own is known by its name.
func TestNames(t *testing.T) {
	t.Parallel()
	s := scanner(t, secretscan.Rules{Overrides: []secretscan.Override{{"generic-api-key", secretscan.Mask}}})
	const secret = "q8Zr2LmX9vTb4KpWn7Yc"
	for document, want := range map[string]string{
		`{"api_key": "` + secret + `"}`:             `{"api_key": "[masked: generic-api-key]"}`,
		`{"name": "` + secret + `"}`:                `{"name": "` + secret + `"}`,
		`["api_key", "` + secret + `"]`:             `["api_key", "` + secret + `"]`,
		`{"a":{"password":"` + secret + `","b":2}}`: `{"a":{"password":"[masked: generic-api-key]","b":2}}`,
		`"` + secret + `"`:                          `"` + secret + `"`,
		`{"` + fakes()["github-pat"] + `": "x"}`:    `{"[masked: github-pat]": "x"}`,
	} {
		if masked, found := s.JSON(secretscan.Results, json.RawMessage(document)); string(masked) != want {
			t.Errorf("%s: %s, %v", document, masked, found)
		}
	}
	// What is no JSON stays something that can be recorded.
	if masked, _ := s.JSON(secretscan.Results, json.RawMessage(`{"t": `+fakes()["github-pat"])); !json.Valid(masked) {
		t.Errorf("%s", masked)
	}
}

func FuzzJSON(f *testing.F) {
	for _, secret := range fakes() {
		f.Add(`{"":` + fmt.Sprintf("%q", secret) + `,"":["` + "\xe4" + `"]}`)
		f.Add(`{"a":` + fmt.Sprintf("%q", secret) + `,"b":["\u0041\\"," \" "]}`)
	}
	s := scanner(f, secretscan.Rules{Overrides: []secretscan.Override{{"*", secretscan.Mask}}})
	f.Fuzz(func(t *testing.T, document string) {
		masked, found := s.JSON(secretscan.Results, json.RawMessage(document))
		if json.Valid([]byte(document)) && !json.Valid(masked) {
			t.Errorf("%q became %q", document, masked)
		}
		if len(found) == 0 && string(masked) != document {
			t.Errorf("%q became %q for nothing", document, masked)
		}
		var value, respelled any
		if !utf8.ValidString(document) || json.Unmarshal([]byte(document), &value) != nil {
			return
		}
		maskedToo, foundToo := s.JSON(secretscan.Results, respell(document))
		if !slices.Equal(found, foundToo) {
			t.Errorf("%q: %v, and %v if all characters are escaped", document, found, foundToo)
		}
		if err := errors.Join(json.Unmarshal(masked, &value), json.Unmarshal(maskedToo, &respelled)); err != nil ||
			!reflect.DeepEqual(value, respelled) {
			t.Errorf("%q became %q, and %q if all characters are escaped: %v", document, masked, maskedToo, err)
		}
	})
}

// respell returns a JSON document with every character of its strings as an escape sequence.
func respell(document string) []byte {
	var out []byte
	inside := false
	for rest := document; rest != ""; {
		switch {
		case inside && rest[0] == '\\':
			n := 2
			if rest[1] == 'u' {
				n = 6
			}
			out, rest = append(out, rest[:n]...), rest[n:]
			continue
		case rest[0] == '"':
			inside = !inside
			fallthrough
		case !inside:
			out, rest = append(out, rest[0]), rest[1:]
			continue
		}
		r, n := utf8.DecodeRuneInString(rest)
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
		rest = rest[n:]
	}
	return out
}

// TestLongStrings: a secret in a long string is found, with escape sequences in the string and without.
func TestLongStrings(t *testing.T) {
	t.Parallel()
	s := scanner(t, secretscan.Rules{})
	secret := fakes()["github-pat"]
	for _, between := range []string{" ", `\n`, `\u0020`, "日", `\"`} {
		before, after := strings.Repeat("some text"+between, 1000), strings.Repeat(between+"more text", 3000)
		for _, document := range []string{
			`{"a":1,"text":"` + before + secret + after + `","z":"` + secret + `"}`,
			`["` + before + secret + `"]`, `{"` + before + secret + after + `":null}`,
		} {
			masked, found := s.JSON(secretscan.Results, json.RawMessage(document))
			var value, want any
			if err := errors.Join(json.Unmarshal(masked, &value), json.Unmarshal([]byte(
				strings.ReplaceAll(document, secret, "[masked: github-pat]")), &want)); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(value, want) || len(found) != 1 {
				t.Errorf("after %q: %.100s…, %v", between, masked, found)
			}
		}
	}
}

// BenchmarkText says what a KiB costs: prose, code, and what is full of words such as key and token.
func BenchmarkText(b *testing.B) {
	for name, text := range map[string]string{
		"prose": strings.Repeat("Tomorrow it will be sunny in Tokyo, with a high of 20 degrees. ", 1600),
		"json": strings.Repeat(
			`{"id":4711,"name":"Aki Tanaka","email":"aki@example.com","updated_at":"2026-11-20T01:02:03Z"},`, 1000),
		"keys": strings.Repeat(`the key of the access token is "secret": value; auth api `, 1700),
		"base64": base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x89PNG\r\n\x1a\n\x00\x01\x7f\xe3\xaa\xbc",
			5000))),
	} {
		b.Run(name, func(b *testing.B) {
			s := scanner(b, secretscan.Rules{})
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.Text(secretscan.Results, text)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/(float64(len(text))/1024), "us/KiB")
		})
	}
}
