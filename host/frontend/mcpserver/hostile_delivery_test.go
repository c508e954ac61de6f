package mcpserver

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// delivery observes the charge for the answer of a call, which ends with the context, or when the response is garbage.
type delivery struct {
	ctx      context.Context
	response weak.Pointer[abi.Response]
}

func (d *delivery) charged() bool {
	runtime.GC()
	return d.ctx != nil && d.ctx.Err() == nil && d.response.Value() != nil
}

// serveCaptured returns a server whose calls store their delivery in captured.
func serveCaptured(t *testing.T, captured *delivery) *Server {
	t.Helper()
	offered := offerAll(t, nil, &manifest.Manifest{Name: "test", Tools: []manifest.Tool{tool("big")},
		Resources: []manifest.Resource{{URI: "test://big", Name: "big", Description: manifest.Text{"en": "Big."}}}})
	return newServer(t, offered, caller(func(ctx context.Context, _ *pipeline.Call) (*pipeline.Result, error) {
		response := text("big")
		response.Contents = []abi.ResourceContents{{URI: "test://big", Text: "big"}}
		*captured = delivery{ctx, weak.Make(response)}
		return ok(response)
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

// TestHostileDelivery: the memory of an answer is charged until the context of its call ends, or the response is
// garbage. A client that can be asked questions, or reads slowly, causes neither before the answer has been written.
func TestHostileDelivery(t *testing.T) {
	t.Parallel()
	for _, version := range []string{withSessions, withoutSessions} {
		for _, capabilities := range []string{`{}`, `{"elicitation":{}}`} {
			for _, test := range []struct {
				method, params string
				bySDK          bool
			}{
				{abi.CallTool, `{"name":"big","arguments":{}}`, false},
				{abi.CallTool, `{"name":"big","arguments":{}}`, true},
				{abi.ReadResource, `{"uri":"test://big"}`, true},
			} {
				var d delivery
				h := serveCaptured(t, &d).Handler()
				r := post(version, strings.Replace(message(version, 1, test.method, test.params),
					`Capabilities":{}`, `Capabilities":`+capabilities, 1))
				if version == withSessions {
					opening := post(version, strings.Replace(initialize(version), `"capabilities":{}`,
						`"capabilities":`+capabilities, 1))
					r.Header.Set("Mcp-Session-Id", do(h, opening).Header().Get("Mcp-Session-Id"))
				}
				if test.bySDK {
					r = aside(r)
				}
				written := false
				w := &writes{httptest.NewRecorder(), func() {
					if d.ctx != nil {
						written = true
						if !d.charged() {
							t.Errorf("%s %s, %+v: it ends before the answer is written", version, capabilities, test)
						}
					}
				}}
				h.ServeHTTP(w, r)
				if !written || w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"big"`) {
					t.Fatalf("%s %s, %+v: %d %s", version, capabilities, test, w.Code, w.Body)
				}
				<-d.ctx.Done()
			}
		}
	}
}

// TestHostileDeliveryStdio is TestHostileDelivery for a client that does not read its standard input.
func TestHostileDeliveryStdio(t *testing.T) {
	t.Parallel()
	for _, capabilities := range []string{`{}`, `{"elicitation":{}}`} {
		synctest.Test(t, func(t *testing.T) {
			var d delivery
			s := serveCaptured(t, &d)
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
			if !d.charged() {
				t.Errorf("%s: it ends before the answer is read: %v", capabilities, d.ctx)
			}
			if !answers.Scan() || !strings.Contains(answers.Text(), `"big"`) {
				t.Errorf("%s: answer %s", capabilities, answers.Text())
			}
			synctest.Wait()
			if d.charged() {
				t.Errorf("%s: it does not end after the answer", capabilities)
			}
			toServer.Close()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}
