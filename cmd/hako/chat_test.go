package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/dev/demo"
	"github.com/hako-run/hako/dev/fakes"
	"github.com/hako-run/hako/dev/kit/testwait"
)

// talking is a directory with a configuration for the fakes, whose models follow the script.
func talking(t *testing.T, steps string) (string, *fakes.Fakes) {
	t.Helper()
	parsed, err := demo.ParseScript(steps)
	if err != nil {
		t.Fatal(err)
	}
	dir, f := offline(t)
	f.Anthropic.Script, f.OpenAI.Script = parsed, parsed
	return dir, f
}

// display is a terminal's screen.
type display struct {
	mu   sync.Mutex
	text strings.Builder
	seen int // how much of it has been waited for
	want string
	came chan struct{}
}

func (d *display) Write(data []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text.Write(data)
	d.look()
	return len(data), nil
}

// await returns a channel that is closed when text has been shown after what was waited for before.
func (d *display) await(text string) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.want, d.came = text, make(chan struct{})
	came := d.came
	d.look()
	return came
}

// look closes came. d.mu is held.
func (d *display) look() {
	if at := strings.Index(d.text.String()[d.seen:], d.want); d.came != nil && at >= 0 {
		d.seen += at + len(d.want)
		close(d.came)
		d.came = nil
	}
}

func (d *display) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// person is somebody at a terminal: what is waited for, and what is done then.
type person struct {
	screen   display
	keyboard *io.PipeWriter
	signals  chan os.Signal
	done     chan int
}

// sit runs a command line with a person at it.
func sit(t *testing.T, dir string, args ...string) *person {
	t.Helper()
	in, keyboard := io.Pipe()
	p := &person{keyboard: keyboard, signals: make(chan os.Signal), done: make(chan int, 1)}
	yes := true
	a := &app{stdin: in, stdout: &p.screen, stderr: &p.screen, person: &yes, signals: p.signals}
	go func() { p.done <- a.run(context.Background(), append([]string{"--directory", dir}, args...)) }()
	t.Cleanup(func() { _ = keyboard.Close() })
	return p
}

// see waits until text is shown.
func (p *person) see(t *testing.T, text string) {
	t.Helper()
	select {
	case <-p.screen.await(text):
	case <-testwait.Context(t).Done():
		t.Fatalf("%q was not shown: %s", text, &p.screen)
	}
}

// types writes a line at the next prompt.
func (p *person) types(t *testing.T, line string) {
	t.Helper()
	p.see(t, "\n> ")
	if _, err := io.WriteString(p.keyboard, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// leaves ends the input, and wants the exit code.
func (p *person) leaves(t *testing.T, code int) {
	t.Helper()
	_ = p.keyboard.Close()
	if got := <-p.done; got != code {
		t.Errorf("exit code %d, want %d: %s", got, code, &p.screen)
	}
}

// AC12: a question about the weather is answered with the forecast, through the model's API, the pipeline, the plugin
// and its HTTP.
func TestAC12ChatAboutTheWeather(t *testing.T) {
	t.Parallel()
	dir, f := talking(t, demo.Script)
	o := invokeWith(t, dir, "東京の天気は？\n", "chat")
	o.want(t, exitOK, "東京都（東京地方）の天気予報です。", "出典：気象庁ホームページ")
	if !strings.HasPrefix(o.stdout, "東京都") || o.stderr != "" {
		t.Errorf("a pipe gets the answer alone: %s", o)
	}
	if n := len(f.Anthropic.Requests.All()); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}

// AC13: a question that needs no tool is answered as ever.
func TestAC13ChatWithoutTools(t *testing.T) {
	t.Parallel()
	dir, _ := talking(t, "steps: [{when: hello, say: Hello!}]")
	invokeWith(t, dir, "hello", "chat").want(t, exitOK, "Hello!\n")
}

// AC14: when a tool fails, the model is told why and answers.
func TestAC14ChatWhenAToolFails(t *testing.T) {
	t.Parallel()
	dir, _ := talking(
		t,
		"steps: [{when: weather, call: [{tool: get_weather, arguments: {location: Atlantis, lang: en}}]}, "+
			"{when: weather, after: Atlantis, say: 'There is no such place.'}]",
	)
	invokeWith(t, dir, "weather", "chat").want(t, exitOK, "There is no such place.\n")
}

// AC15 and AC17: MCP_ENABLED=false is plain chat.
func TestAC17ChatWithoutMCP(t *testing.T) {
	t.Setenv("MCP_ENABLED", "false")
	dir, f := talking(t, "steps: [{say: Plain.}]")
	invokeWith(t, dir, "東京の天気は？", "chat").want(t, exitOK, "Plain.\n")
	if sent := string(f.Anthropic.Requests.All()[0].Body); strings.Contains(sent, "get_weather") ||
		strings.Contains(sent, `"tools"`) {
		t.Errorf("the model was sent %s", sent)
	}
}

// TestChatWithDeferredTools: above the limit of toolsets.search the model is sent the tools that are not listed as
// deferred ones, and a call of one is an ordinary call. Pinned tools are not deferred.
func TestChatWithDeferredTools(t *testing.T) {
	t.Parallel()
	dir, f := offline(t, `
toolsets:
  search: {tools: 2}
  sets: {desk: {tools: [{tool: current_time, pin: true}, "*"], except: [file_delete]}}
  rules: [{frontends: [terminal], toolset: desk}]
`)
	f.Anthropic.Script = must(demo.ParseScript(demo.Script))
	invokeWith(t, dir, "東京の天気は？\n", "chat").want(t, exitOK, "東京都（東京地方）の天気予報です。")
	requests := f.Anthropic.Requests.All()
	for _, want := range []string{`{"name":"get_weather",`, `"defer_loading":true}`,
		`"type":"tool_search_tool_bm25_20251119"`} {
		if sent := string(requests[0].Body); !strings.Contains(sent, want) {
			t.Errorf("%s is not in %s", want, sent)
		}
	}
	listed := []string{"current_time", "read_result"}
	var sent struct {
		Tools []struct {
			Type, Name string
			Deferred   bool `json:"defer_loading"`
		}
	}
	if err := json.Unmarshal(requests[0].Body, &sent); err != nil {
		t.Fatal(err)
	}
	for _, tool := range sent.Tools {
		if tool.Type == "" && (tool.Name == "call_tool" || tool.Name == "file_delete" ||
			tool.Deferred == slices.Contains(listed, tool.Name)) {
			t.Errorf("%+v is sent", tool)
		}
	}
	if len(requests) != 2 || !strings.Contains(string(requests[1].Body), `"tool_search_tool_result"`) {
		t.Errorf("%d requests, the last %s", len(requests), requests[len(requests)-1].Body)
	}
}

// TestChatFailures: what goes wrong has an exit code and a remedy.
func TestChatFailures(t *testing.T) {
	t.Parallel()
	dir, _ := talking(t, "steps: [{when: key, fail: {kind: key}}, {when: 鍵, fail: {kind: key}}]")
	invokeWith(t, dir, "key", "chat").want(t, exitFailed, "its key is missing or was refused", "model local")
	invokeWith(t, dir, "鍵", "chat", "--locale", "ja").want(t, exitFailed, "キーがないか、拒否されました")
	invokeWith(t, dir, "", "chat").want(t, exitFailed, "The message is empty.")
	invokeWith(t, dir, "x", "chat", "--model", "third").want(t, exitUsage, "--model", "anthropic, openai, local")
	invokeWith(t, dir, "x", "chat", "--tenant", "nobody").want(t, exitUsage, "nobody")
	empty := t.TempDir()
	invokeWith(t, empty, "x", "chat").want(t, exitUsage, "no model is configured", "llm.models", "docs/chat.md")
	put(t, filepath.Join(empty, "hako.yaml"),
		[]byte("llm: {default: x, models: [{provider: openai, model: m}, {provider: odd, model: n, key: secret}]}"))
	invokeWith(t, empty, "x", "chat").want(t, exitUsage, "llm.models[0]", "key", "llm.models[1]", `provider "odd"`)
}

// TestChatAtATerminal: tools are shown, questions are asked, commands work, and a conversation goes on later.
func TestChatAtATerminal(t *testing.T) {
	t.Parallel()
	dir, _ := talking(t, demo.Script)
	put(t, filepath.Join(dir, "hako.policy.yaml"), []byte(demo.Policy))
	p := sit(t, dir, "chat", "--locale", "ja")
	p.types(t, "5月の残業をまとめて")
	p.see(t, "⏳ 従業員一覧\n")
	p.see(t, "✓ 従業員一覧\n")
	p.see(t, "許可する場合は yes と入力してください: ")
	_, _ = io.WriteString(p.keyboard, "yes\n")
	p.see(t, "に追加しました。\n")
	p.see(t, "許可する場合は yes と入力してください: ")
	_, _ = io.WriteString(p.keyboard, "no\n")
	p.see(t, "✗ Slack のダイレクトメッセージ: 許可されていません\n")
	p.see(t, "許可されなかったか、失敗したため、ここで止めました。\n")
	for _, step := range []struct{ line, want string }{
		{"/help", "/history [ID]"}, {"/tools", "get_weather"}, {"/model", "anthropic, openai, local"},
		{"/model third", `"third"`}, {"/model openai", "openai"},
		{"/usage", "この会話: "}, {"/history", "5月の残業をまとめて"}, {"/history t-none", "t-none"},
		{"/hlep", `did you mean "/help"?`}, {"", ""},
	} {
		p.types(t, step.line)
		p.see(t, step.want)
	}
	p.see(t, "\n> ")
	p.leaves(t, exitOK)
	id := regexp.MustCompile(`t-[a-z2-7]{8}\n$`).FindString(p.screen.String())
	if id == "" {
		t.Fatalf("no key at the end: %s", &p.screen)
	}
	again := sit(t, dir, "chat", "--conversation", strings.TrimSpace(id))
	again.types(t, "/history "+id)
	again.see(t, "> 5月の残業をまとめて\n")
	again.see(t, "ここで止めました。")
	again.types(t, "/delete")
	again.see(t, "Deleted: t-")
	again.types(t, "/history")
	again.see(t, "There is nothing yet.")
	again.types(t, "/quit")
	again.leaves(t, exitOK)
}

// TestChatCtrlC: Ctrl-C stops the answer, and twice it ends.
func TestChatCtrlC(t *testing.T) {
	t.Parallel()
	dir, _ := talking(t, "steps: [{when: slowly, say: "+strings.Repeat("tick tock ", 100)+
		", pace: 100ms}, {say: Quick.}]")
	p := sit(t, dir, "chat")
	p.types(t, "slowly")
	p.see(t, "tick")
	p.signals <- os.Interrupt
	p.see(t, "Stopped.")
	p.types(t, "and now?")
	p.see(t, "Quick.")
	p.see(t, "\n> ")
	p.signals <- os.Interrupt
	p.see(t, "Press Ctrl-C again")
	p.signals <- os.Interrupt
	p.leaves(t, exitOK)
}

// TestTemporaryChat: nothing of a conversation is kept.
func TestTemporaryChat(t *testing.T) {
	t.Parallel()
	dir, _ := talking(t, "steps: [{say: Hello!}]")
	invokeWith(t, dir, "hello", "chat").want(t, exitOK, "Hello!\n")
	invokeWith(t, dir, "a secret plan", "chat", "--temporary").want(t, exitOK, "Hello!\n")
	p := sit(t, dir, "chat", "--temporary")
	for _, step := range []struct{ line, want string }{
		{"another plan", "Hello!"}, {"/new", "t-"}, {"a third plan", "Hello!"}, {"/resume", "> another plan\n"},
		{"/history", "another plan"},
	} {
		p.types(t, step.line)
		p.see(t, step.want)
	}
	p.see(t, "\n> ")
	p.leaves(t, exitOK)
	if strings.Contains(p.screen.String(), "Go on with") {
		t.Errorf("nothing is kept to go on with: %s", &p.screen)
	}
	again := sit(t, dir, "chat")
	again.types(t, "/sessions")
	again.see(t, "hello")
	again.see(t, "\n> ")
	again.leaves(t, exitOK)
	if strings.Contains(again.screen.String(), "plan") {
		t.Errorf("a temporary conversation is kept: %s", &again.screen)
	}
	invokeWith(t, dir, "x", "chat", "--temporary", "--resume").want(t, exitUsage, "temporary")
}

// TestPrintableChat: what a model writes cannot move the cursor.
func TestPrintableChat(t *testing.T) {
	t.Parallel()
	dir, _ := talking(t, `steps: [{say: "red \e[31m alert\a"}]`)
	if o := invokeWith(t, dir, "x", "chat"); o.stdout != `red \u001b[31m alert\u0007`+"\n" {
		t.Errorf("%q", o.stdout)
	}
}

// TestHostileChat: links show their addresses.
func TestHostileChat(t *testing.T) {
	t.Parallel()
	t.Run("links", func(t *testing.T) {
		t.Parallel()
		dir, _ := talking(t, "steps: [{say: 'See [https://bank.example](https://evil.example).'}]")
		p := sit(t, dir, "chat")
		p.types(t, "hello")
		p.see(
			t,
			"[https://bank.example](https://evil.example)",
		) // Markdown is shown as it was written, with its addresses
		p.leaves(t, exitOK)
	})
}
