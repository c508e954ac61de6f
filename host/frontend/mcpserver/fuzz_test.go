package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
)

// FuzzMessage sends arbitrary bodies over HTTP in both versions. Whatever they are, there is an answer, and it is JSON,
// an event stream or a refusal; a panic anywhere ends the fuzzing.
func FuzzMessage(f *testing.F) {
	for _, version := range versions {
		for _, seed := range []string{
			message(version, 1, "tools/call", `{"name":"greet","arguments":{"name":"Aki"}}`),
			message(version, 1, "tools/list", `{"cursor":"x"}`),
			message(version, 1, "resources/read", `{"uri":"test://item/1"}`),
			message(version, 1, "prompts/get", `{"name":"ask","arguments":{"topic":"x"}}`),
			message(version, 1, "completion/complete",
				`{"ref":{"type":"ref/prompt","name":"ask"},"argument":{"name":"topic","value":"x"}}`),
			message(version, 1, "server/discover", `{}`),
			message(version, 1, transport.MethodListen, `{"notifications":{"toolsListChanged":true}}`),
			initialize(version), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `[]`,
			`null`, `{}`,
		} {
			f.Add([]byte(seed))
		}
	}
	s := newServer(f, offerAll(f, serveEverything, everything()), nil, &Options{Limits: limits.Limits{Rate: 1 << 30}})
	h := s.Handler()
	session := openSession(f, h)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, version := range versions {
			r := post(version, string(body))
			if version < withoutSessions {
				r.Header.Set("Mcp-Session-Id", session)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			w := do(h, r.WithContext(ctx))
			cancel()
			kind := w.Result().Header.Get("Content-Type")
			if w.Code == http.StatusOK && kind == "application/json" && w.Body.Len() > 0 &&
				!json.Valid(w.Body.Bytes()) {
				t.Errorf("answer to %q: %q", body, w.Body)
			}
			if w.Code == http.StatusInternalServerError {
				t.Errorf("answer to %q: %d %q", body, w.Code, w.Body)
			}
		}
	})
}
