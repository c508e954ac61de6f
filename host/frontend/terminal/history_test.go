package terminal

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestHistory: messages are kept in a file that only its owner can read, without secrets, and bounded in number.
func TestHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "aki.jsonl")
	open := func() *history {
		t.Helper()
		h, err := openHistory(path)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	token := "xoxb-123456789012-1234567890123-" + strings.Repeat("aB3dE9", 4)
	h := open()
	for _, entry := range []string{"one", "two\nlines 日本語", "two\nlines 日本語", "my token is " + token, "four"} {
		if err := h.add(entry); err != nil {
			t.Fatal(err)
		}
	}
	h = open()
	steps := []struct {
		by   int
		want string
		ok   bool
	}{
		{1, "", false}, {-1, "four", true}, {-1, "my token is [masked: slack-bot-token]", true},
		{-1, "two\nlines 日本語", true}, {-1, "one", true}, {-1, "", false},
		{1, "two\nlines 日本語", true}, {1, "my token is [masked: slack-bot-token]", true}, {1, "four", true},
		{1, "draft", true}, {1, "", false},
	}
	for i, step := range steps {
		if text, ok := h.move(step.by, "draft"); text != step.want || ok != step.ok {
			t.Errorf("step %d: got %q, %v, want %q, %v", i, text, ok, step.want, step.ok)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), token) {
		t.Errorf("the file has the token: %q, %v", data, err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	many := strings.Repeat("\"old\"\nnot JSON\n", 2*maxHistory) + "\"hidden \\u001b[2J\\u202e\"\n"
	if err := os.WriteFile(path, []byte(many), 0o600); err != nil {
		t.Fatal(err)
	}
	if h = open(); len(h.entries) != maxHistory || h.entries[maxHistory-1] != "hidden [2J" {
		t.Errorf("%d entries, the last %q", len(h.entries), h.entries[len(h.entries)-1])
	}
	if h = open(); len(h.entries) != maxHistory {
		t.Errorf("the file has %d entries", len(h.entries))
	}
}
