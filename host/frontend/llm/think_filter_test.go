package llm

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/script"
)

func TestThoughts(t *testing.T) {
	t.Parallel()
	blank := strings.Repeat(" ", maxBlank)
	for text, want := range map[string]string{
		"":                         "",
		"plain":                    "plain",
		" <b>bold</b>":             " <b>bold</b>",
		"<think>hm</think>\n\nyes": "yes",
		"\n<think>\nhm <b> </thin\n</think>yes <think>a</think>": "yes <think>a</think>",
		"<think></think>":    "",
		"<think>without end": "",
		"<thi":               "<thi",
		"  ":                 "  ",
		"say <think>":        "say <think>",
		blank + "<think>hm":  "",
		blank + " <think>hm": blank + " <think>hm",
	} {
		for size := 1; size <= len(text)+1; size++ {
			var f thinkFilter
			var got strings.Builder
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				got.WriteString(f.filter(rest[:n]))
				rest = rest[n:]
			}
			got.WriteString(f.end())
			if got.String() != want {
				t.Errorf("%q in parts of %d: %q, want %q", text, size, got.String(), want)
			}
		}
	}
}

func TestAC11LocalServerThatThinksAloud(t *testing.T) {
	t.Parallel()
	w := newWorld(t, OpenAICompatible, script.Step{Say: "<think>\nThe user greets.\n</think>\n\nこんにちは"})
	if response, deltas := w.must(asks("hello")); response.Text != "こんにちは" || streamed(deltas) != "こんにちは" {
		t.Errorf("%+v %v", response, deltas)
	}
}
