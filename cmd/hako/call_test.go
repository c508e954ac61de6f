package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"
)

func TestCall(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	tests := map[string]struct {
		args   []string
		stdin  string
		code   int
		stdout string
		stderr []string
	}{
		"answer":           {args: []string{"probe_echo", `{"text":"こんにちは"}`}, stdout: "こんにちは\n"},
		"by name":          {args: []string{"probe_echo", "text=こんにちは"}, stdout: "こんにちは\n"},
		"a number as text": {args: []string{"probe_echo", "text=5"}, stdout: "5\n"},
		"another name": {args: []string{"probe_echo", "txt=a"}, code: exitFailed,
			stderr: []string{`did you mean "text"?`}},
		"by name and as JSON": {args: []string{"probe_echo", "text=a", "{}"}, code: exitUsage,
			stderr: []string{`"{}" is not of the form NAME=VALUE`, "See: hako call --help"}},
		"no such tool by name": {args: []string{"probe_ecko", "text=a"}, code: exitUsage,
			stderr: []string{"did you mean probe_echo?"}},
		"standard input": {args: []string{"probe_echo", "-"}, stdin: `{"text":"piped"}`, stdout: "piped\n"},
		"no arguments": {args: []string{"probe_now", "--clock", "2026-01-02T03:04:05+09:00"},
			stdout: "2026-01-01T18:04:05Z\n"},
		"tool error": {args: []string{"probe_fail", `{"text":"because"}`}, code: exitFailed,
			stderr: []string{"no: because"}},
		"bad arguments": {args: []string{"probe_echo", `{"txt":""}`}, code: exitFailed,
			stderr: []string{`did you mean "text"?`}},
		"no such tool": {args: []string{"probe_ecko", "{}"}, code: exitUsage,
			stderr: []string{`unknown tool "probe_ecko": did you mean probe_echo?`}},
		"the words in another order": {args: []string{"echo_probe", "{}"}, code: exitUsage,
			stderr: []string{`unknown tool "echo_probe": did you mean probe_echo?`}},
		"nothing alike": {args: []string{"weather"}, code: exitUsage,
			stderr: []string{`unknown tool "weather": hako tools lists`}},
		"no JSON": {args: []string{"probe_echo", `{"text":`}, code: exitUsage,
			stderr: []string{"at byte 8 of 8", "See: hako call --help"}},
		"no object": {args: []string{"probe_echo", `[1]`}, code: exitUsage,
			stderr: []string{"they are a JSON array"}},
		"null": {args: []string{"probe_echo", `null`}, code: exitUsage, stderr: []string{"they are null"}},
		"no time": {args: []string{"probe_now", "--clock", "noon"}, code: exitUsage,
			stderr: []string{`--clock "noon" is not a time`}},
		"guest's log": {args: []string{"probe_log", `{"text":"x"}`}, stdout: "x\n",
			stderr: []string{"info from the plugin", "warning from the plugin"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := invokeWith(t, dir, test.stdin, append([]string{"call"}, test.args...)...)
			o.want(t, test.code, test.stderr...)
			if o.stdout != test.stdout {
				t.Errorf("want %q on standard output, got %s", test.stdout, o)
			}
		})
	}
}

// TestCallShows: what a terminal cannot show is described, or printed whole as JSON.
func TestCallShows(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	want := "a caption\n[image, image/png, 8 bytes: --json prints its bytes]\n[link to a page: https://example.com/]\n" +
		"[resource probe://bytes, application/octet-stream, 2 bytes: --json prints its bytes]\n"
	if o := invoke(t, dir, "call", "probe_show"); o.stdout != want {
		t.Errorf("want %s\ngot %s", want, o)
	}
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n"))
	wantJSON := `{"content":[{"type":"text","text":"a caption"},{"type":"image","mimeType":"image/png","data":"` + png + `"},
		{"type":"resource_link","uri":"https://example.com/","name":"a page","mimeType":"text/html"},
		{"type":"resource","resource":{"uri":"probe://bytes","mimeType":"application/octet-stream","blob":"AAE="}}]}`
	if o := invoke(t, dir, "call", "probe_show", "--json"); canonical(t, o.stdout) != canonical(t, wantJSON) {
		t.Errorf("want %s\ngot %s", canonical(t, wantJSON), o)
	}
	o := invoke(t, dir, "call", "probe_fail", `{"text":"x"}`, "--json")
	o.want(t, exitFailed)
	if want := `{"content":[{"type":"text","text":"no: x"}],"isError":true}`; canonical(
		t,
		o.stdout,
	) != canonical(
		t,
		want,
	) {
		t.Errorf("want %s\ngot %s", want, o)
	}
}

func TestCallNotAllowed(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "")
	invoke(t, dir, "call", "probe_now").want(t, exitNotAllowed, "plugin probe is new. To approve it: hako plugin approve probe")
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitOK)
	invoke(t, dir, "call", "probe_now").want(t, exitOK)
	invoke(t, dir, "plugin", "revoke", "probe").want(t, exitOK, "Revoked")
	invoke(t, dir, "call", "probe_now").want(t, exitNotAllowed, "plugin probe was revoked on ")
}

// TestCallSettings: prefix, configuration and limits of a plugin come from the file.
func TestCallSettings(t *testing.T) {
	t.Parallel()
	dir := approved(
		t,
		"plugin:\n  probe:\n    prefix: my_\n    config: {base_url: 'https://mirror.example.com/'}\n    limits: {input: 16B}\n",
	)
	invoke(t, dir, "call", "my_probe_config").want(t, exitOK, "https://mirror.example.com/")
	invoke(t, dir, "call", "my_probe_echo", `{"text":"too long for that"}`).want(t, exitFailed,
		"input limit of 16 bytes")
	invoke(t, dir, "call", "probe_now").want(t, exitUsage, "unknown tool")
}

func TestCallInterrupted(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	stderr := new(watched)
	done := make(chan int)
	go func() {
		a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: stderr}
		done <- a.run(ctx, []string{"-C", dir, "call", "probe_wait"})
	}()
	<-stderr.await("waiting")
	cancel()
	if code := <-done; code != exitInterrupted || stdout.Len() > 0 {
		t.Errorf("exit code %d, standard output %q, standard error %s", code, stdout.String(), stderr)
	}
}

// TestNotWasm: a file that is no plugin is named where it is in the way.
func TestNotWasm(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	put(t, filepath.Join(dir, "plugins", "notes.wasm"), []byte("just some text"))
	invoke(t, dir, "call", "notes").want(t, exitUsage, "notes.wasm is not usable", "not a Wasm module")
	invoke(t, dir, "call", "probe_now").want(t, exitOK)
	invoke(t, dir, "plugin", "list").want(t, exitOK, "broken", "not a Wasm module")
	invoke(t, dir, "config", "check").want(t, exitUsage, "not a Wasm module")
}
