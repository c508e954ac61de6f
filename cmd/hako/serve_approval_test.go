package main

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// TestServeApproval: a client on stdio is told of another policy, and its user asked as that wants it.
func TestServeApproval(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	a := &app{stdin: fromClient, stdout: toClient, stderr: io.Discard}
	done := make(chan int, 1)
	go func() {
		done <- a.run(t.Context(), []string{"-C", dir, "serve", "--stdio"})
	}()
	answers := bufio.NewScanner(fromServer)
	say := func(message string) {
		t.Helper()
		if _, err := fmt.Fprintln(toServer, message); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(want string) {
		t.Helper()
		if !answers.Scan() || !strings.Contains(answers.Text(), want) {
			t.Fatalf("heard %.1000s, want %s", answers.Text(), want)
		}
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}}}`)
	hear(`"protocolVersion":"2025-11-25"`)
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	put(t, filepath.Join(dir, "hako.policy.yaml"),
		[]byte("version: 1\nrules: [{name: ask first, action: ask, tools: [probe_echo]}]\n"))
	hear(`"method":"notifications/tools/list_changed"`)
	for id, answer := range map[int]string{2: `"action":"accept","content":{"approve":true}`, 3: `"action":"decline"`} {
		say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"probe_echo","arguments":{"text":"asked"}}}`, id))
		hear(`"method":"elicitation/create"`)
		_, asked, _ := strings.Cut(answers.Text(), `"id":`)
		form, _, _ := strings.Cut(asked, ",")
		say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{%s}}`, form, answer))
		hear(map[int]string{2: `"text":"asked"`, 3: "it was refused"}[id])
	}
	toServer.Close()
	if code := <-done; code != exitOK {
		t.Errorf("exit code %d", code)
	}
	invoke(t, dir, "audit", "query").want(t, exitOK, "asked: yes", "asked: no")
}
