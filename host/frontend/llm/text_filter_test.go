package llm

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/script"
)

// filtered passes text through a filter in parts of size bytes.
func filtered(f *textFilter, text string, size int) string {
	var got strings.Builder
	add := func(text string) {
		if f.takeLone() {
			got.Reset()
		}
		got.WriteString(text)
	}
	for rest := text; rest != ""; {
		n := min(size, len(rest))
		add(f.add(rest[:n]))
		rest = rest[n:]
	}
	end, _ := f.end(false, &toolset{})
	add(end)
	return got.String()
}

func TestThoughts(t *testing.T) {
	t.Parallel()
	blank := strings.Repeat(" ", maxBlank)
	long := strings.Repeat("Thinking goes on. ", maxUndecided/10)
	for text, want := range map[string]string{
		"":                         "",
		"plain":                    "plain",
		" <b>bold</b>":             " <b>bold</b>",
		"a < b <c":                 "a < b <c",
		"<think>hm</think>\n\nyes": "yes",
		"\n<think>\nhm <b> </thin\n</think>yes <think>a</think>no": "yes no",
		"<think></think>":    "",
		"<think>without end": "",
		"<thi":               "<thi",
		"  ":                 "  ",
		blank + " <think>hm": "",
		// after text
		"Let me see. <think>hm</think>yes": "Let me see. yes",
		"say <think>":                      "say <think>",
		"say <think> and go on":            "say <think> and go on",
		// the end alone
		"hm\n</think>\n\nyes":         "yes",
		"hm</think>\nyes":             "yes",
		"hm\n</think>yes":             "yes",
		"hm</think>":                  "",
		"hm\n </think>  yes </think>": "yes </think>",
		long + "\n</think>\n\nyes":    "yes",
		"the tag </think> ends":       "the tag </think> ends",
		"hm</think>" + blank + "yes":  "hm</think>" + blank + "yes",
		// in code
		"`<think>` and `</think>`\n":                 "`<think>` and `</think>`\n",
		"```\n<think>\na\n</think>\n```\nb":          "```\n<think>\na\n</think>\n```\nb",
		"`a` `b`\n<think>x</think>`</think>`":        "`a` `b`\n`</think>`",
		"```js\na\n```\n<think>hm\n```\n</think>yes": "```js\na\n```\nyes",
	} {
		for size := 1; size <= len(text)+1; size = size + 1 + size/100 {
			if got := filtered(&textFilter{}, text, size); got != want {
				t.Errorf("%q in parts of %d: %q, want %q", text, size, got, want)
				break
			}
		}
	}
}

// TestThinkingHabit: how a model thinks is learned from its first response. Then nothing is held back that it may be
// known to show.
func TestThinkingHabit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		habit       thinkingHabit
		text        string
		shown, want string // before the end, and with it
	}{
		"unknown":            {habitUnknown, "yes", "", "yes"},
		"unknown, and pairs": {habitUnknown, "<think>hm</think>yes", "yes", "yes"},
		"unknown, and lone":  {habitUnknown, "hm\n</think>\nyes", "yes", "yes"},
		"pairs":              {habitPairs, "yes", "yes", "yes"},
		"pairs, and lone":    {habitPairs, "hm\n</think>\nyes", "yes", "yes"},
		"lone":               {habitLone, strings.Repeat("hm ", maxUndecided), "", strings.Repeat("hm ", maxUndecided)},
		"lone, and its end":  {habitLone, strings.Repeat("hm ", maxUndecided) + "\n</think>yes", "yes", "yes"},
		"unknown for too long": {habitUnknown, strings.Repeat("yes", maxUndecided), strings.Repeat("yes", maxUndecided),
			strings.Repeat("yes", maxUndecided)},
	} {
		f := textFilter{habit: test.habit}
		shown := f.add(test.text)
		rest, _ := f.end(false, &toolset{})
		if shown != test.shown || shown+rest != test.want {
			t.Errorf("%s: %.40q, then %.40q", name, shown, rest)
		}
	}
}

// TestWrittenCalls: calls that a model writes as text are made, if the response ends with them.
func TestWrittenCalls(t *testing.T) {
	t.Parallel()
	call := "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"location\": \"東京\"}}\n</tool_call>"
	for name, test := range map[string]struct {
		say   string
		calls int
		text  string
	}{
		"one":               {call, 1, ""},
		"after text":        {"I look.\n" + call + "\n", 1, "I look.\n"},
		"after thoughts":    {"<think>hm " + call + "</think>\n" + call, 1, ""},
		"two":               {call + "\n" + call, 2, ""},
		"without its end":   {strings.TrimSuffix(call, "\n</tool_call>"), 1, ""},
		"arguments as text": {`<tool_call>{"name":"get_weather","arguments":"{\"location\":\"東京\"}"}</tool_call>`, 1, ""},
		"text after it":     {call + "\nis how to call.", 0, call + "\nis how to call."},
		"in a line":         {"Write " + call, 0, "Write " + call},
		"in code":           {"```\n" + call + "\n```", 0, "```\n" + call + "\n```"},
		"of another tool":   {strings.Replace(call, "get_", "", 1), 0, strings.Replace(call, "get_", "", 1)},
		"no JSON":           {"<tool_call>get_weather</tool_call>", 0, "<tool_call>get_weather</tool_call>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, OpenAICompatible, script.Step{Say: test.say})
			response, deltas := w.must(asks("hello", weatherTool))
			if len(response.Calls) != test.calls || response.Text != test.text || streamed(deltas) != test.text {
				t.Fatalf("%+v, streamed %q", response, streamed(deltas))
			}
			for _, call := range response.Calls {
				if compact(t, call.Arguments) != `{"location":"東京"}` || call.Name != "get_weather" || call.ID == "" ||
					response.Stop != StopTools {
					t.Errorf("%+v", response)
				}
			}
		})
	}
}

func TestAC11LocalServerThatThinksAloud(t *testing.T) {
	t.Parallel()
	w := newWorld(t, OpenAICompatible, script.Step{Say: "<think>\nThe user greets.\n</think>\n\nこんにちは"})
	if response, deltas := w.must(asks("hello")); response.Text != "こんにちは" || streamed(deltas) != "こんにちは" {
		t.Errorf("%+v %v", response, deltas)
	}
}
