package httpbroker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/brokertest"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/pdk/abi"
)

// guest calls the functions of the module as a guest does.
type guest struct {
	t         *testing.T
	ctx       context.Context
	call      *broker.Call
	functions map[string]broker.Function
}

func newGuest(t *testing.T, b *Broker) *guest {
	g := &guest{t: t, ctx: t.Context(), call: newCall(t), functions: map[string]broker.Function{}}
	g.call.Memory = make(brokertest.Memory, 256<<10)
	m := b.Module()
	if m.Name != "hako:http/1" || len(m.Functions) != 5 {
		t.Fatalf("module %s with %d functions", m.Name, len(m.Functions))
	}
	for _, f := range m.Functions {
		g.functions[f.Name] = f
	}
	return g
}

func (g *guest) do(function string, params ...uint64) int32 {
	g.t.Helper()
	f := g.functions[function]
	if len(params) != len(f.Params) {
		g.t.Fatalf("%s takes %d parameters", function, len(f.Params))
	}
	return int32(uint32(f.Do(g.ctx, g.call, params)))
}

// request sends head, as JSON unless it is a string, and body.
func (g *guest) request(head any, body string) abi.HTTPResponse {
	g.t.Helper()
	encoded, ok := head.(string)
	if !ok {
		data, err := json.Marshal(head)
		if err != nil {
			g.t.Fatal(err)
		}
		encoded = string(data)
	}
	g.call.Memory.Write(0, []byte(encoded+body))
	var resp abi.HTTPResponse
	g.taken(g.do("request", 0, uint64(len(encoded)), uint64(len(encoded)), uint64(len(body))), &resp)
	return resp
}

// taken decodes the pending bytes, whose number was announced.
func (g *guest) taken(length int32, v any) {
	g.t.Helper()
	data := bytes.Join(g.call.Take(), nil)
	if len(data) != int(length) {
		g.t.Fatalf("%d bytes announced, %d pending", length, len(data))
	}
	if err := json.Unmarshal(data, v); err != nil {
		g.t.Fatalf("%s: %v", data, err)
	}
}

// readError reads and expects an error.
func (g *guest) readError(handle int32, capacity uint64) *abi.Error {
	g.t.Helper()
	n := g.do("read", uint64(uint32(handle)), 0, capacity)
	if n >= 0 {
		g.t.Fatalf("read gives %d, want an error", n)
	}
	failure := new(abi.Error)
	g.taken(-n, failure)
	return failure
}

func (g *guest) readAll(handle int32) string {
	g.t.Helper()
	var body strings.Builder
	for {
		n := g.do("read", uint64(uint32(handle)), 1000, 7)
		if n == 0 {
			return body.String()
		}
		if n < 0 {
			g.t.Fatalf("read: %s", g.call.Take())
		}
		data, _ := g.call.Memory.Read(1000, uint32(n))
		body.Write(data)
	}
}

func TestModule(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-method", r.Method)
		w.WriteHeader(404)
		_, _ = fmt.Fprint(w, "some text")
	})
	g := newGuest(t, newBroker(t, nil, everything(s.URL)))
	for want := range int32(3) {
		resp := g.request(abi.HTTPRequest{Method: "POST", URL: s.URL + "/x"}, "body")
		if resp.Error != nil || resp.Handle != want+1 || resp.Status != 404 || resp.URL != s.URL+"/x" ||
			resp.Headers["X-Method"][0] != "POST" {
			t.Fatalf("got %+v, %v", resp, resp.Error)
		}
		if body := g.readAll(resp.Handle); body != "some text" {
			t.Errorf("body %q", body)
		}
		if n := g.do("read", uint64(resp.Handle), 0, 10); n != 0 {
			t.Errorf("read after the end gives %d", n)
		}
		g.do("close", uint64(resp.Handle))
		g.do("close", uint64(resp.Handle))
	}
}

func TestModuleRequestErrors(t *testing.T) {
	t.Parallel()
	g := newGuest(t, newBroker(t, &Options{Limits: Limits{RequestBody: 10}}, everything("https://a.test")))
	for name, c := range map[string]struct {
		head any
		body string
		code string
	}{
		"not JSON":     {"GET /", "", abi.CodeInvalid},
		"unknown key":  {`{"url":"https://a.test","verb":"GET"}`, "", abi.CodeInvalid},
		"more":         {`{"url":"https://a.test"}{}`, "", abi.CodeInvalid},
		"empty":        {"", "", abi.CodeInvalid},
		"no URL":       {"{}", "", abi.CodeInvalid},
		"not granted":  {abi.HTTPRequest{URL: "https://b.test"}, "", abi.CodeNotGranted},
		"large body":   {abi.HTTPRequest{URL: "https://a.test"}, "12345678901", abi.CodeLimit},
		"large head":   {strings.Repeat(" ", maxHead+1), "", abi.CodeLimit},
		"nested head":  {strings.Repeat("[", maxHead), "", abi.CodeInvalid},
		"wrong header": {`{"url":"https://a.test","headers":{"X":"1"}}`, "", abi.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			resp := g.request(c.head, c.body)
			if resp.Error == nil || resp.Error.Code != c.code || resp.Handle != 0 {
				t.Errorf("got %+v, %v", resp, resp.Error)
			}
		})
	}
}

func TestModuleReadErrors(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 100)) })
	g := newGuest(t, newBroker(t, &Options{Limits: Limits{Decompressed: 50}}, everything(s.URL)))
	for _, handle := range []int32{0, 1, -1, 1 << 30} {
		if e := g.readError(handle, 10); e.Code != abi.CodeInvalid {
			t.Errorf("handle %d: %v", handle, e)
		}
		g.do("close", uint64(uint32(handle)))
	}
	resp := g.request(abi.HTTPRequest{URL: s.URL}, "")
	if e := g.readError(resp.Handle, 0); e.Code != abi.CodeInvalid {
		t.Errorf("no capacity: %v", e)
	}
	g.do("close", uint64(resp.Handle))
	if e := g.readError(resp.Handle, 10); e.Code != abi.CodeInvalid {
		t.Errorf("closed: %v", e)
	}

	large := newGuest(t, newBroker(t, &Options{Limits: Limits{ResponseBody: 50}}, everything(s.URL)))
	if resp := large.request(abi.HTTPRequest{URL: s.URL}, ""); resp.Error == nil || resp.Error.Code != abi.CodeLimit {
		t.Errorf("got %+v", resp)
	}
}

func TestModulePointers(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "text") })
	g := newGuest(t, newBroker(t, nil, everything(s.URL)))
	resp := g.request(abi.HTTPRequest{URL: s.URL}, "")
	for name, f := range map[string]func(){
		"head":     func() { g.do("request", 1<<32-1, 10, 0, 0) },
		"body":     func() { g.call.Memory.Write(0, []byte("{}")); g.do("request", 0, 2, 256<<10, 1) },
		"read":     func() { g.do("read", uint64(resp.Handle), 256<<10, 10) },
		"overflow": func() { g.do("request", 1<<32-1, 1<<10, 1<<32-1, 1<<10) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				err, _ := recover().(error)
				if trap := (*broker.PointerError)(nil); !errors.As(err, &trap) {
					t.Errorf("recovered %v, want a PointerError", err)
				}
			}()
			f()
		})
	}
}

func TestModuleOpenResponses(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "text") })
	b := newBroker(t, nil, everything(s.URL))
	g := newGuest(t, b)
	for range maxOpen {
		if resp := g.request(abi.HTTPRequest{URL: s.URL}, ""); resp.Error != nil {
			t.Fatal(resp.Error)
		}
	}
	resp := g.request(abi.HTTPRequest{URL: s.URL}, "")
	if resp.Error == nil || resp.Error.Code != abi.CodeLimit {
		t.Errorf("got %+v, %v", resp, resp.Error)
	}
	if err := g.call.Close(); err != nil || len(b.slots) != 0 {
		t.Errorf("after the call %d slots are taken, %v", len(b.slots), err)
	}
}
