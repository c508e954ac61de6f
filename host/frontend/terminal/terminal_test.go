package terminal

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/visibletest"
	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/visible"
	"github.com/hako-run/hako/pdk/abi"
)

// TestHostileTerminal: titles, notices and answers neither control the terminal nor forge lines.
func TestHostileTerminal(t *testing.T) {
	t.Parallel()
	for name, trick := range visibletest.Tricks {
		t.Run("chat: "+name, func(t *testing.T) {
			t.Parallel()
			for _, colour := range []bool{false, true} {
				var screenful bytes.Buffer
				out := NewScreen(&screenful)
				surface := newChatSurface(&Chat{IO: IO{Out: out, Err: out}})
				surface.colour = colour
				surface.chat.Verbose = true
				surface.ToolStarted("1", trick, trick)
				surface.ToolEnded("1", pipeline.OK, trick)
				surface.Notice("", trick)
				pipeSurface{surface.chat}.Notice("", trick)
				visibletest.Check(t, strings.NewReplacer(dim, "", green, "", red, "", yellow, "", plain,
					"").Replace(screenful.String()))
				screenful.Reset()
				for i := range len(trick) { // the pieces in which a model writes
					surface.Text(trick[i : i+1])
				}
				if r, found := visible.First(screenful.String(), "\n\t\u200c\u200d"); found && r != '\u200c' &&
					r != '\u200d' {
					t.Errorf("%U of an answer in pieces reaches the terminal: %q", r, screenful.String())
				}
			}
		})
		t.Run("progress: "+name, func(t *testing.T) {
			t.Parallel()
			var line bytes.Buffer
			p := NewProgress(&Screen{Writer: visible.NewWriter(&line), Terminal: true})
			p.Show(abi.Progress{Progress: 1, Total: 2, Message: trick})
			if text, ok := strings.CutPrefix(line.String(), eraseLine); !ok || strings.ContainsAny(text, "\n\t") {
				t.Errorf("progress is %q", line.String())
			} else {
				visibletest.Check(t, text)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &Progress{out: NewScreen(&out)}
	p.Show(abi.Progress{Progress: 2, Total: 5, Message: "two of\x1b[2J\x07\nfive"})
	p.Show(abi.Progress{Progress: 7, Message: "pages"})
	p.Clear()
	want := eraseLine + ` 40% two of\u001b[2J\u0007 five` + eraseLine + "7 pages" + eraseLine
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	none := NewProgress(&out)
	none.Show(abi.Progress{})
	if none.Clear(); out.String() != want {
		t.Errorf("what is no terminal got %q", out.String())
	}
}

// TestFillPage: a page is shown whole, with its host, and is agreed to, never opened.
func TestFillPage(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{"yes": elicitation.Accept, "no": elicitation.Decline, "maybe": elicitation.Cancel} {
		q, err := elicitation.Parse(&elicitation.Request{Message: "Sign in.\nType yes.",
			URL: "https://bücher.example/x?y=%20"})
		if err != nil {
			t.Fatal(err)
		}
		q.Server, q.Tool = "crm", "crm_find"
		var screen bytes.Buffer
		answer, err := fillForm(t.Context(), &screen, q, "en", func(context.Context) (string, error) {
			return typed, nil
		})
		if err != nil || !reflect.DeepEqual(answer, elicitation.Answer{Action: want}) {
			t.Errorf("%v, %v", answer, err)
		}
		for _, text := range []string{"https://xn--bcher-kva.example/x?y=%20", "on the host xn--bcher-kva.example.", "can look like others", "> Sign in.\n> Type yes.", "hako does not open it"} {
			if !strings.Contains(screen.String(), text) {
				t.Errorf("%q is not in %s", text, &screen)
			}
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	for description, want := range map[string]string{
		"Reads a file. It must exist.":   "Reads a file.",
		"天気予報を調べます。今日と明日です。":             "天気予報を調べます。",
		"One line\nand another":          "One line",
		"Version 1.2 of it":              "Version 1.2 of it",
		"予報（天気。気温）。傘も。":                  "予報（天気。気温）。",
		"Reads (or not. Perhaps) it. So": "Reads (or not. Perhaps) it.",
		"Never closed (a. b":             "Never closed (a. b",
		strings.Repeat("long ", 40):      strings.Repeat("long ", 40)[:79] + "…",
		"":                               "",
	} {
		if got := Summary(description); got != want {
			t.Errorf("%q: got %q, want %q", description, got, want)
		}
	}
}
