package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/visibletest"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/visible"
)

// desk is an editor at a pseudo-terminal, with a clock that stands still.
type desk struct {
	*emulator
	surface editorSurface
	signals chan os.Signal
	now     atomic.Int64
	history string
}

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func newDesk(t *testing.T, width, height int, locale string) *desk {
	t.Helper()
	d := &desk{emulator: newEmulator(t, width, height), signals: make(chan os.Signal, 1)}
	d.now.Store(noon.UnixNano())
	s := &Chat{Locale: locale, Verbose: true, Now: func() time.Time { return time.Unix(0, d.now.Load()) }}
	s.IO = IO{In: d.tty, Out: NewScreen(d.tty), Err: NewScreen(d.tty), Interactive: true}
	d.history = filepath.Join(t.TempDir(), "history.jsonl")
	h, err := openHistory(d.history)
	if err != nil {
		t.Fatal(err)
	}
	s.editor = newEditor(s, h, d.signals)
	s.editor.colour = true
	if err := s.editor.start(s.IO); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.editor.stop)
	d.surface = editorSurface{s.editor, s}
	d.surface.do(func() {})
	d.ends(t, ">\n")
	return d
}

// pass lets time pass after the changes so far.
func (d *desk) pass(time time.Duration) {
	d.surface.do(func() {}) // is accepted when the change before it was made
	d.now.Add(int64(time))
}

// message waits for a message.
func (d *desk) message(t *testing.T, want string) {
	t.Helper()
	if got := <-d.surface.typed; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	d.surface.began(want)
}

// asks asks a question and returns a channel for the answer.
func (d *desk) asks(t *testing.T) chan bool {
	answered := make(chan bool)
	go func() {
		yes, _ := d.surface.ask(t.Context(), aQuestion(noon))
		answered <- yes
	}()
	return answered
}

func aQuestion(now time.Time) *approval.Question {
	return &approval.Question{
		Tool: "write_rows", Plugin: "sheets", Title: manifest.Text{"en": "Write rows", "ja": "行の書き込み"},
		About:     manifest.Text{"en": "Writes rows.", "ja": "スプレッドシートに行を書き込み、書き込んだ場所を返します。"},
		Arguments: json.RawMessage(`{"range": "勤怠 2026", "rows": [["氏名", "残業"], ["架空 太郎", 0]]}`),
		Rule:      "ask before writing", OpenWorld: true,
		Caller: approval.Caller{Frontend: "test", User: "aki"}, Expires: now.Add(5 * time.Minute),
	}
}

// TestEditorScreens: a turn with a table, code, tools and a question looks right at three widths.
func TestEditorScreens(t *testing.T) {
	t.Parallel()
	for _, width := range []int{60, 100, 200} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, width, 70, "ja")
			var captures strings.Builder
			capture := func(name string) {
				text, x, y := d.text()
				text = strings.ReplaceAll(text, "（test）", " (test)") // who asks is not the editor's text
				fmt.Fprintf(&captures, "=== %s, cursor %d,%d\n%s", name, x, y, text)
			}
			d.types(t, "5月の残業をまとめて、表にしてください。\r")
			d.message(t, "5月の残業をまとめて、表にしてください。")
			d.surface.begin()
			d.pass(3 * time.Second)
			d.shows(t, "⠋ 考え中 3s")
			capture("thinking")
			for piece := range strings.SplitSeq(answer, " ") {
				d.surface.Text(piece + " ")
			}
			d.surface.ToolStarted("1", "list", "従業員一覧")
			d.surface.ToolStarted("2", "write", "スプレッドシートへの書き込み")
			d.pass(1500 * time.Millisecond)
			d.shows(t, "書き込み 2s")
			capture("two tools")
			d.surface.ToolEnded("1", pipeline.OK, "3 人")
			d.surface.Notice("", "モデルに再接続しています。")
			answered := d.asks(t)
			d.ends(t, "（残り 4m56s）\n?\n")
			d.types(t, "a")
			d.ends(t, "? a\n")
			capture("question")
			d.types(t, "\r")
			if !<-answered {
				t.Error("a is no yes")
			}
			d.surface.ToolEnded("2", pipeline.ToolError, "書き込めません")
			d.surface.Text("以上です。")
			d.surface.close()
			d.types(t, "/s")
			d.ends(t, "自分の会話の一覧\n")
			capture("end")
			golden(t, fmt.Sprintf("editor-%d", width), captures.String())
		})
	}
}

// TestEditorJapanese: wide characters are edited without ghosts, and the cursor is where they are.
func TestEditorJapanese(t *testing.T) {
	t.Parallel()
	const left, home, backspace, remove = "\x1b[D", "\x1b[H", "\x7f", "\x1b[3~"
	for _, test := range []struct {
		keys, want string
		column     int
	}{
		{"こんにちは", "こんにちは", 12},
		{"こんにちは" + backspace, "こんにち", 10},
		{"日本語" + left + left + "x", "日x本語", 5},
		{"日本語" + left + backspace, "日語", 4},
		{"日本語" + home + remove, "本語", 2},
		{"aあbい" + left + left + backspace + "漢", "a漢bい", 5},
		{"東京" + "\x01" + "の" + "\x05" + "！", "の東京！", 10},
		{"か\u3099と👩\u200d💻", "か\u3099と👩\u200d💻", 8},
		{strings.Repeat("幅", 30), strings.Repeat("幅", 18) + "\n  " + strings.Repeat("幅", 12), 26},
	} {
		d := newDesk(t, 40, 10, "ja")
		d.types(t, test.keys)
		d.see(t, func(text string) bool {
			_, x, _ := d.text()
			return strings.HasSuffix(text, "> "+test.want+"\n") && x == test.column
		})
	}
}

// TestEditorPaste: several pasted lines are one message, without the characters that could hide something.
func TestEditorPaste(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 60, 20, "en")
	d.types(t, "see:\x1b[200~one\r\ntwo\t二\rth\x1b[31m\u202eree\x1b[201~")
	d.ends(t, "> see:one\n  two    二\n  three\n")
	d.types(t, " !\r")
	d.message(t, "see:one\ntwo    二\nthree !")
	d.types(t, "a\nb\x1b\rc\r")
	d.message(t, "a\nb\nc")
	d.shows(t, "> a\n  b\n  c\n")
}

// TestEditorHistory: the arrows recall messages, and keep the draft; answers are no messages.
func TestEditorHistory(t *testing.T) {
	t.Parallel()
	const up, down = "\x1b[A", "\x1b[B"
	d := newDesk(t, 60, 40, "en")
	for _, text := range []string{"first", "第二"} {
		d.types(t, text+"\r")
		d.message(t, text)
	}
	answered := make(chan string)
	go func() {
		line, _ := d.surface.readLine(t.Context(), "Your answer:", time.Time{})
		answered <- line
	}()
	d.ends(t, "Your answer:\n?\n")
	d.types(t, "hunter2"+up+"\r")
	if line := <-answered; line != "hunter2" {
		t.Errorf("got %q", line)
	}
	d.ends(t, "\n\n>\n")
	d.types(t, "draft"+up)
	d.ends(t, "> 第二\n")
	d.types(t, up+up)
	d.ends(t, "> first\n")
	d.types(t, down+down)
	d.ends(t, "> draft\n")
	data, err := os.ReadFile(d.history)
	if err != nil || string(data) != "\"first\"\n\"第二\"\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestEditorCompletion: Tab completes commands as far as they are unambiguous.
func TestEditorCompletion(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 60, 30, "en")
	d.types(t, "/")
	d.shows(t, "> /\n  /tools     the tools that the model has\n")
	d.types(t, "h\t")
	d.ends(t, "/history  what was said in a conversation; without an ID…\n  /help     this list\n")
	d.types(t, "i\t")
	d.ends(t, "> /history\n")
	d.types(t, "x\r")
	d.message(t, "/history x")
}

// TestEditorManyAnswers: lines after the answer to a question neither block the editor nor are messages.
func TestEditorManyAnswers(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 60, 40, "en")
	for range 20 {
		answered := d.asks(t)
		d.ends(t, "left)\n?\n")
		d.types(t, "y"+strings.Repeat("\r", 3*maxQueued))
		if !<-answered {
			t.Fatal("y is no yes")
		}
		d.ends(t, "\n>\n")
	}
	d.types(t, "next\r")
	d.message(t, "next")
}

// TestEditorDraft: what was being typed when a question comes up is no answer to it, and is kept.
func TestEditorDraft(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 60, 40, "en")
	d.types(t, "reall")
	d.ends(t, "> reall\n")
	answered := d.asks(t)
	d.ends(t, "left)\n? reall\n")
	d.types(t, "y")
	d.ends(t, "? really\n")
	d.types(t, "\r") // sends the message
	d.message(t, "really")
	d.pass(time.Second)
	d.types(t, "maybe\r")
	d.shows(t, "› maybe\n")
	d.types(t, "n\r")
	if <-answered {
		t.Error("n is a yes")
	}
	ctx, cancel := context.WithCancel(t.Context())
	d.types(t, "draft")
	d.ends(t, "> draft\n")
	go func() {
		yes, err := d.surface.ask(ctx, aQuestion(noon))
		answered <- yes || err == nil
	}()
	d.pass(time.Second)
	d.ends(t, "? draft\n")
	d.types(t, "y")
	d.ends(t, "? y\n")
	cancel()
	if <-answered {
		t.Error("a question that ended was answered")
	}
	d.ends(t, "> draft\n")
}

// TestEditorEnds: Ctrl-C empties a message or is a signal, and Ctrl-D ends.
func TestEditorEnds(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 60, 20, "en")
	d.types(t, "some words")
	d.ends(t, "> some words\n")
	d.types(t, "\x03")
	d.ends(t, ">\n")
	d.types(t, "\x03")
	<-d.signals
	d.surface.begin()
	d.types(t, "next\r")
	d.shows(t, "next: next\n")
	d.types(t, "\x03")
	<-d.signals
	d.types(t, "\x04")
	<-d.surface.ended
	d.message(t, "next")
	if _, ok := <-d.surface.typed; ok {
		t.Error("there is more after the end")
	}
	if line, err := d.surface.readLine(t.Context(), "?", time.Time{}); err == nil {
		t.Errorf("a question after the end got %q", line)
	}
}

// TestEditorResize: a terminal that becomes narrower or wider leaves nothing of the former picture.
func TestEditorResize(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 100, 20, "en")
	d.surface.begin()
	d.types(t, "日本語の入力 and more")
	d.ends(t, "> 日本語の入力 and more\n")
	for _, width := range []int{60, 30, 200, 60} {
		d.resize(t, width, 20)
		d.surface.do(func() {})
		d.ends(t, "\n⠋ Thinking 0s\n\n> 日本語の入力 and more\n")
	}
	r := region{widths: []int{59, 61, 0, 130}, cursor: 3, column: 70}
	if n := r.rowsAbove(60); n != 1+2+1+1 {
		t.Errorf("%d rows above the cursor", n)
	}
}

// TestEditorLogs: lines that others write at the same time appear whole, above the message.
func TestEditorLogs(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 60, 20, "en")
	d.surface.begin()
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 25 {
				if w%2 == 0 {
					Printf(d.surface.chat.Err, "record %d %d\n", w, i)
				} else {
					Printf(d.surface.chat.Out, "record %d %d\n", w, i)
				}
				d.surface.Text(fmt.Sprintf("word%d ", i))
			}
		})
	}
	d.types(t, "in the middle")
	writers.Wait()
	d.surface.close()
	d.see(t, func(text string) bool {
		lines := map[string]int{}
		for line := range strings.Lines(text) {
			lines[strings.TrimSpace(line)]++
		}
		for w := range 4 {
			for i := range 25 {
				if lines[fmt.Sprintf("record %d %d", w, i)] != 1 {
					return false
				}
			}
		}
		return strings.HasSuffix(text, "> in the middle\n")
	})
}

// TestHostileEditor: titles, notices, answers and questions neither control the terminal nor forge lines.
func TestHostileEditor(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 100, 30, "en")
	for _, trick := range visibletest.Tricks {
		d.surface.begin()
		d.surface.ToolStarted("1", trick, trick)
		line := strings.ReplaceAll(trick, "\n", "") // an answer may have several
		for i := range len(line) {
			d.surface.Text(line[i : i+1])
		}
		d.surface.Notice("", trick)
		d.surface.ToolEnded("1", pipeline.OK, trick)
		q := aQuestion(noon)
		q.Tool, q.Rule, q.Caller.User = trick, trick, trick
		q.Title, q.About = manifest.Text{"en": trick}, manifest.Text{"en": trick}
		d.surface.do(func() {
			d.surface.printQuestion(q.Text("en"))
			d.surface.printAlways(q)
		})
		d.surface.close()
	}
	Printf(d.surface.chat.Err, "%s\n", "the end of the tricks")
	text := d.shows(t, "the end of the tricks\n")
	for line := range strings.Lines(text) {
		if r, found := visible.First(line, "\n\u200c\u200d"); found {
			t.Errorf("%U reaches the terminal: %q", r, line)
		}
		if strings.HasPrefix(line, "FORGED") {
			t.Errorf("a forged line: %q", line)
		}
	}
}

// TestEditorLogsInLoop: what the loop itself calls may log.
func TestEditorLogsInLoop(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 60, 20, "en")
	d.surface.do(func() {
		Printf(d.surface.chat.Err, "%s\n", "a record of the loop")
	})
	d.ends(t, "a record of the loop\n\n>\n")
	Printf(d.surface.chat.Err, "%s", "no end")
	Printf(d.surface.chat.Out, "%s\n", "another stream")
	Printf(d.surface.chat.Err, "%s\n", " yet")
	d.ends(t, "another stream\nno end yet\n\n>\n")
}
