package mcpserver

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hako-run/hako/host/pipeline"
)

// serveCaptured returns a server whose calls store their context in captured.
func serveCaptured(t *testing.T, captured *context.Context) *Server {
	t.Helper()
	return newServer(t, offer(t, nil, "big"), caller(func(ctx context.Context, _ *pipeline.Call) (*pipeline.Result, error) {
		*captured = ctx
		return ok(text("big"))
	}), nil)
}

// writes calls check before every write.
type writes struct {
	*httptest.ResponseRecorder
	check func()
}

func (w *writes) Write(data []byte) (int, error) {
	w.check()
	return w.ResponseRecorder.Write(data)
}

// TestHostileDelivery: the memory of an answer is charged until the context of its call ends. A client that can be asked
// questions, or reads slowly, does not end it before the answer has been written.
func TestHostileDelivery(t *testing.T) {
	t.Parallel()
	for _, version := range []string{withSessions, withoutSessions} {
		for _, capabilities := range []string{`{}`, `{"elicitation":{}}`} {
			for _, bySDK := range []bool{false, true} {
				var ctx context.Context
				h := serveCaptured(t, &ctx).Handler()
				r := post(version, strings.Replace(message(version, 1, "tools/call", `{"name":"big","arguments":{}}`),
					`Capabilities":{}`, `Capabilities":`+capabilities, 1))
				if version == withSessions {
					opening := post(version, strings.Replace(initialize(version), `"capabilities":{}`,
						`"capabilities":`+capabilities, 1))
					r.Header.Set("Mcp-Session-Id", do(h, opening).Header().Get("Mcp-Session-Id"))
				}
				if bySDK {
					r = aside(r)
				}
				written := false
				w := &writes{httptest.NewRecorder(), func() {
					if ctx != nil {
						written = true
						if ctx.Err() != nil {
							t.Errorf("%s %s, by the SDK %v: it ends before the answer is written", version, capabilities, bySDK)
						}
					}
				}}
				h.ServeHTTP(w, r)
				if !written || w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"big"`) {
					t.Fatalf("%s %s, by the SDK %v: %d %s", version, capabilities, bySDK, w.Code, w.Body)
				}
				<-ctx.Done()
			}
		}
	}
}

// TestHostileDeliveryStdio is TestHostileDelivery for a client that does not read its standard input.
func TestHostileDeliveryStdio(t *testing.T) {
	t.Parallel()
	for _, capabilities := range []string{`{}`, `{"elicitation":{}}`} {
		synctest.Test(t, func(t *testing.T) {
			var ctx context.Context
			s := serveCaptured(t, &ctx)
			in, toServer := io.Pipe()
			fromServer, out := io.Pipe()
			served := make(chan error, 1)
			go func() { served <- s.ServeStdio(t.Context(), in, out) }()
			answers := bufio.NewScanner(fromServer)
			for _, line := range []string{
				strings.Replace(initialize(withSessions), `"capabilities":{}`, `"capabilities":`+capabilities, 1),
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
				message(withSessions, 1, "tools/call", `{"name":"big","arguments":{}}`),
			} {
				if _, err := io.WriteString(toServer, line+"\n"); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(line, "initialize\"") && !answers.Scan() {
					t.Fatal("not initialized")
				}
			}
			synctest.Wait()
			if ctx == nil || ctx.Err() != nil {
				t.Errorf("%s: it ends before the answer is read: %v", capabilities, ctx)
			}
			if !answers.Scan() || !strings.Contains(answers.Text(), `"big"`) {
				t.Errorf("%s: answer %s", capabilities, answers.Text())
			}
			synctest.Wait()
			if ctx == nil || ctx.Err() == nil {
				t.Errorf("%s: it does not end after the answer", capabilities)
			}
			toServer.Close()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}
