package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/pipeline"
)

// converse writes lines to a server over stdio, one after another, waiting for an answer where there is to be one.
func converse(t *testing.T, s *Server, script string) {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- s.ServeStdio(t.Context(), in, out)
		out.Close()
	}()
	answers := bufio.NewScanner(fromServer)
	answers.Buffer(nil, 1<<20)
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(strings.TrimLeft(line, "\t"), "\n")
		kind, content, _ := strings.Cut(line, " ")
		switch kind {
		case ">":
			if _, err := io.WriteString(toServer, content+"\n"); err != nil {
				t.Fatal(err)
			}
		case "<":
			if !answers.Scan() {
				t.Fatalf("the server has ended; want %s", content)
			}
			if !sameJSON(t, answers.Text(), content) {
				t.Errorf("got  %s\nwant %s", answers.Text(), content)
			}
		}
	}
	toServer.Close()
	if answers.Scan() {
		t.Errorf("one answer more: %s", answers.Text())
	}
	if err := <-served; err != nil {
		t.Errorf("ServeStdio: %v", err)
	}
}

func TestMalformedLines(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"not JSON": `
			> this is no JSON
			< {"jsonrpc":"2.0","error":{"code":-32700,"message":"the line is not valid JSON: byte 1: invalid character 'h' in literal true (expecting 'r')"}}
			> {"jsonrpc":"2.0","id":1,"method":"ping"}
			< {"jsonrpc":"2.0","id":1,"result":{}}`,
		"byte order mark": `
			> ` + "\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"ping"}
			< {"jsonrpc":"2.0","id":1,"result":{}}
			> ` + "\ufeff" + `
			> {"jsonrpc":"2.0","id":2,"method":"ping"}
			< {"jsonrpc":"2.0","id":2,"result":{}}`,
		"cut off": `
			> {"jsonrpc":"2.0","id":1,"method":"ping"
			< {"jsonrpc":"2.0","error":{"code":-32700,"message":"the line is not valid JSON: it ends early"}}
			> {"jsonrpc":"2.0","id":1,"method":"ping"}
			< {"jsonrpc":"2.0","id":1,"result":{}}`,
		"two messages in a line": `
			> {"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}
			< {"jsonrpc":"2.0","error":{"code":-32700,"message":"the line is not valid JSON: unexpected data after the value"}}`,
		"a key twice": `
			> {"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}
			< {"jsonrpc":"2.0","error":{"code":-32700,"message":"the line is not valid JSON: the value has the duplicate key \"method\""}}
			> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"to":"a","t\u006f":"b"}}}
			< {"jsonrpc":"2.0","error":{"code":-32700,"message":"the line is not valid JSON: the value at \"/params/arguments\" has the duplicate key \"to\""}}`,
		"JSON, but no message": `
			> 42
			< {"jsonrpc":"2.0","error":{"code":-32600,"message":"the line ` + transport.NoMessage + `"}}
			> {"id":7,"method":"ping"}
			< {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"the line ` + transport.NoMessage + `"}}
			> {"jsonrpc":"2.0","id":{},"method":"ping"}
			< {"jsonrpc":"2.0","error":{"code":-32600,"message":"the line ` + transport.NoMessage + `"}}
			> {"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}
			< {"jsonrpc":"2.0","error":{"code":-32600,"message":"the line ` + transport.ErrID.Error() + `"}}
			> {"jsonrpc":"2.0"}
			< {"jsonrpc":"2.0","error":{"code":-32600,"message":"the line ` + transport.NoMessage + `"}}
			> {"jsonrpc":"2.0","id":1,"method":"ping"}
			< {"jsonrpc":"2.0","id":1,"result":{}}`,
		"batch": `
			> [{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]
			< {"jsonrpc":"2.0","error":{"code":-32600,"message":"batches are not supported: send one message per line"}}
			> {"jsonrpc":"2.0","id":3,"method":"ping"}
			< {"jsonrpc":"2.0","id":3,"result":{}}`,
		"too long": `
			> {"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 300_000) + `"}}
			< {"jsonrpc":"2.0","error":{"code":-32700,"message":"the line is longer than the server's limit"}}
			> {"jsonrpc":"2.0","id":1,"method":"ping"}
			< {"jsonrpc":"2.0","id":1,"result":{}}`,
		"deep": `
			> ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `
			< {"jsonrpc":"2.0","error":{"code":-32600,"message":"batches are not supported: send one message per line"}}
			> {"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat(`{"x":`, 5000) + "1" + strings.Repeat("}", 5000) + `}
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the line ` + transport.NoMessage + `"}}
			> {"jsonrpc":"2.0","id":1,"method":"ping"}
			< {"jsonrpc":"2.0","id":1,"result":{}}`,
		"empty lines": `
			> 
			>    
			> {"jsonrpc":"2.0","id":1,"method":"ping"}
			< {"jsonrpc":"2.0","id":1,"result":{}}`,
		"before initialize": `
			> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"method \"tools/list\" is invalid during session initialization"}}`,
		"unknown method": `
			> {"jsonrpc":"2.0","id":1,"method":"no/such"}
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"method \"no/such\" is invalid during session initialization"}}
			> ` + initialize(withSessions) + `
			< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"completions":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}},"serverInfo":{"name":"hako","version":"dev"}}}
			> {"jsonrpc":"2.0","id":1,"method":"no/such"}
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found: \"no/such\""}}`,
		"control characters in a URI": `
			> ` + message(withoutSessions, 1, "resources/read", `{"uri":"test:\u0001\u007f"}`) + `
			< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown resource \"test:\\x01\\x7f\"","data":{"uri":"test:\u0001\u007f"}}}
			> {"jsonrpc":"2.0","id":1,"method":"ping"}
			< {"jsonrpc":"2.0","id":1,"result":{}}`,
	}
	for name, script := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			converse(t, newServer(t, offer(t, serveEverything, "x"), nil,
				&Options{Limits: limits.Limits{Message: 200_000}}),
				script)
		})
	}
}

// TestEndOfInput: what was asked before it is answered, as far as that goes quickly.
func TestEndOfInput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := caller(func(ctx context.Context, call *pipeline.Call) (*pipeline.Result, error) {
			wait := time.Second
			if call.Request.Name == "slow" {
				wait = time.Hour
			}
			select {
			case <-time.After(wait):
				return ok(text("done"))
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		s := newServer(t, offer(t, nil, "quick", "slow"), calls, nil)
		in := message(withoutSessions, 1, "tools/call", `{"name":"quick"}`) + "\n" +
			message(withoutSessions, 2, "tools/call", `{"name":"slow"}`) + "\n" +
			message(withoutSessions, 3, transport.MethodListen, `{"notifications":{"toolsListChanged":true}}`) // without a line feed
		var out bytes.Buffer
		began := time.Now()
		if err := s.ServeStdio(t.Context(), strings.NewReader(in), &out); err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("took %v, want the grace of 5s", took)
		}
		if got := out.String(); !strings.Contains(got, `"id":1,"result"`) ||
			!strings.Contains(got, "subscriptions/acknowledged") {
			t.Errorf("output: %s", got)
		}
	})
}

// TestStdioRefusesIDInFlight: the second request with an ID gets an error of its own, and the first one its answer.
func TestStdioRefusesIDInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := caller(func(_ context.Context, call *pipeline.Call) (*pipeline.Result, error) {
			time.Sleep(time.Second)
			return ok(text("from %s", call.Request.Name))
		})
		s := newServer(t, offer(t, nil, "one", "two"), calls, nil)
		listen := message(withoutSessions, 2, transport.MethodListen, `{"notifications":{"toolsListChanged":true}}`)
		in := message(withoutSessions, 1, "tools/call", `{"name":"one"}`) + "\n" +
			message(withoutSessions, 1, "tools/call", `{"name":"two"}`) + "\n" + listen + "\n" + listen
		var out bytes.Buffer
		if err := s.ServeStdio(t.Context(), strings.NewReader(in), &out); err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
		got := out.String()
		for _, want := range []string{"duplicate in-flight request ID 1", "duplicate in-flight request ID 2",
			"from one", "subscriptions/acknowledged"} {
			if strings.Count(got, want) != 1 {
				t.Errorf("%q is not there once: %s", want, got)
			}
		}
		if strings.Contains(got, "from two") || strings.Count(got, `"id":1,`) != 1 {
			t.Errorf("output: %s", got)
		}
	})
}

func TestEndOfInputWithNothingToDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := newServer(t, offer(t, serveEverything, "x"), nil, nil)
		subscription := message(withoutSessions, 3, transport.MethodListen,
			`{"notifications":{"toolsListChanged":true}}`)
		for _, in := range []string{"", subscription} {
			if err := s.ServeStdio(t.Context(), strings.NewReader(in), io.Discard); err != nil ||
				time.Since(began) != 0 {
				t.Errorf("ServeStdio with %q: %v after %v", in, err, time.Since(began))
			}
		}
	})
}

func TestStdioEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, offer(t, serveEverything, "x"), nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		in, client := io.Pipe()
		time.AfterFunc(time.Second, cancel)
		if err := s.ServeStdio(ctx, in, io.Discard); err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
		client.Close() // lets go of the read that is left behind
	})
}

func TestStdioReportsBrokenPipes(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	s := newServer(t, offer(t, serveEverything, "x"), nil, nil)
	if err := s.ServeStdio(t.Context(), iotest.ErrReader(broken), io.Discard); !errors.Is(err, broken) {
		t.Errorf("in: %v", err)
	}
	in, client := io.Pipe()
	go func() {
		io.WriteString(client, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	}()
	_, out := io.Pipe()
	out.CloseWithError(broken)
	reader, writer := io.Pipe()
	reader.CloseWithError(broken)
	if err := s.ServeStdio(t.Context(), in, writer); !errors.Is(err, broken) {
		t.Errorf("out: %v", err)
	}
	client.Close()
}

func FuzzLine(f *testing.F) {
	for _, seed := range []string{"", "{}", "[]", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1.5}`, "\xff", `{"jsonrpc":"2.0","id":"a","error":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		message, refusal := parse(line{data: data})
		if (message == nil) == (refusal == nil) {
			t.Fatal("neither or both of a message and a refusal")
		}
		if refusal == nil {
			return
		}
		encoded, err := jsonrpc.EncodeMessage(refusal)
		if err != nil || !json.Valid(encoded) {
			t.Fatalf("the refusal does not encode: %v", err)
		}
	})
}

func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"), 2)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		limit = min(max(limit, 1), 1<<20)
		reader := bufio.NewReaderSize(bytes.NewReader(data), 16)
		for _, want := range bytes.SplitAfter(data, []byte("\n")) {
			if len(want) == 0 {
				continue
			}
			l := readLine(reader, limit)
			if l.err != nil && len(want) <= limit {
				t.Fatalf("line %q: %v", want, l.err)
			}
			if l.long != (len(want) > limit) && l.err == nil {
				t.Fatalf("line of %d bytes with limit %d: long is %v", len(want), limit, l.long)
			}
			if !l.long && l.err == nil && !bytes.Equal(l.data, want) {
				t.Fatalf("got %q, want %q", l.data, want)
			}
		}
	})
}
