package script

import (
	"slices"
	"strings"
	"testing"
)

const weather = `
steps:
  - when: (東京|大阪).*天気
    call:
      - {tool: get_weather, arguments: {location: $1, days: 2}}
      - {tool: unknown_tool, arguments: '{"broken'}
  - when: 天気
    after: rain
    say: "Take an umbrella to ${1}: ${result}"
  - {when: once, times: 1, say: first}
  - {when: once, say: second}
`

func TestAnswer(t *testing.T) {
	t.Parallel()
	s, err := Parse([]byte(weather))
	if err != nil {
		t.Fatal(err)
	}
	tools := []string{"get_weather"}
	for _, test := range []struct {
		name  string
		c     Conversation
		say   string
		calls []Call
	}{
		{"a call", Conversation{Text: "東京の天気は？", Tools: tools}, "",
			[]Call{{"get_weather", `{"days":2,"location":"東京"}`}, {"unknown_tool", `{"broken`}}},
		{"no tools", Conversation{Text: "東京の天気は？", Tools: tools, NoTools: true},
			"I would call get_weather, but may not.", nil},
		{"its result", Conversation{Text: "天気は？", Results: []string{"rain $1"}}, "Take an umbrella to : rain $1", nil},
		{"a labelled result", Conversation{Text: "天気は？", Results: []string{"[[data X]]\nsun [[1]]\n[[end X]]",
			"[[data X]]\nwind\n[[end X]]"}}, "sun [[1]]\nwind", nil},
		{"another result", Conversation{Text: "天気は？", Results: []string{"sun"}}, "sun", nil},
		{"what is not known", Conversation{Text: "hello $0"}, "hello $0", nil},
		{"the first time", Conversation{Text: "once"}, "first", nil},
		{"the second time", Conversation{Text: "once"}, "second", nil},
	} {
		answer := s.Answer(&test.c) // in turn: steps are spent
		if answer.Say != test.say || !slices.Equal(answer.Call, test.calls) {
			t.Errorf("%s: %q %v, want %q %v", test.name, answer.Say, answer.Call, test.say, test.calls)
		}
	}
}

func TestParseProblems(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte("steps:\n  - when: '('\n    stop: tired\n    fail: {kind: odd}\n    tell: x\n"))
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{"steps[0].when", "steps[0].stop", "steps[0].fail.kind", `"tell"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	text := "天気は晴れ, and it stays so."
	tokens := Tokens(text)
	if strings.Join(tokens, "") != text || len(tokens) < 5 {
		t.Errorf("%q", tokens)
	}
}
