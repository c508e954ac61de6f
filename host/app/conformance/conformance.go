// Package conformance tests PDKs ("hako plugin conformance"). Run calls the plugin that docs/abi.md describes under
// "Conformance", written with the PDK and built with pdk/conformance/manifest.yaml, and returns the Result of each
// test.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/brokers/sqlbroker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/internal/scratch"
	"github.com/hako-run/hako/pdk/abi"
)

// Result is the outcome of one test.
type Result struct {
	Name string
	// Err is nil if the plugin passed.
	Err error
}

// Run runs all tests on a plugin. cache is the directory of compiled code. An error says that no test could run.
func Run(ctx context.Context, wasm []byte, cache string) (_ []Result, err error) {
	s := &suite{ctx: ctx, log: new(recorder)}
	temp, err := scratch.New("", "hako-conformance")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temp.Remove()) }()
	stop, err := s.serve()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	web, err := httpbroker.New([]grant.HTTPRule{{Name: "server", URL: s.server, Methods: []string{"GET", "POST"},
		Paths: []string{"open/**"}, Private: true}}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, web.Close()) }()
	database := sqlbroker.New(&grant.SQL{Quota: 10 << 20,
		Migrations: []string{"CREATE TABLE t (n INTEGER PRIMARY KEY, s TEXT) STRICT"}},
		sqlbroker.Options{Dir: temp.Path})
	defer func() { err = errors.Join(err, database.Close()) }()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: cache, Logger: slog.New(s.log)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	s.plugin = engine.Load(sandbox.Spec{
		Name:    "conformance",
		Wasm:    func() ([]byte, error) { return wasm, nil },
		Modules: []broker.Module{web.Module(), database.Module()},
		Limits:  manifest.Limits{Time: time.Minute, Input: 8 << 20, Output: 8 << 20},
	})
	defer func() { err = errors.Join(err, s.plugin.Close()) }()
	if err := s.plugin.Prepare(ctx); err != nil {
		return nil, err
	}
	var results []Result
	for _, test := range tests {
		results = append(results, Result{test.name, test.run(s)})
	}
	return results, nil
}

type suite struct {
	ctx    context.Context // of Run
	plugin *sandbox.Plugin
	// server is the base URL of the HTTP server.
	server string
	log    *recorder
}

// serve starts the HTTP server and returns what stops it.
func (s *suite) serve() (stop func() error, err error) {
	listener, err := new(net.ListenConfig).Listen(s.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.server = "http://" + listener.Addr().String() + "/"
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			if strings.HasSuffix(r.URL.Path, "/missing") {
				w.WriteHeader(http.StatusNotFound)
			}
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body)
		})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	return func() error {
		err := server.Close()
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

func (s *suite) send(request *abi.Request) (*abi.Response, error) {
	return s.plugin.Call(s.ctx, &catalog.Invocation{Request: request})
}

// call calls a tool with arguments, which are encoded as JSON unless they are a json.RawMessage.
func (s *suite) call(tool string, arguments any) (*abi.Response, error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	return s.send(&abi.Request{Method: abi.CallTool, Name: tool, Arguments: raw, Locale: "ja",
		Config: json.RawMessage(`{"greeting":"Moin","later":{"unknown":[1,2.5e3,null]}}`)})
}

// text calls a tool that answers with one text.
func (s *suite) text(tool string, arguments any) (string, error) {
	response, err := s.call(tool, arguments)
	switch {
	case err != nil:
		return "", err
	case response.Error != nil:
		return "", response.Error
	case len(response.Content) != 1 || response.Content[0].Type != abi.Text:
		return "", fmt.Errorf("%d content blocks, want one text", len(response.Content))
	case response.IsError:
		return "", fmt.Errorf("the tool failed: %s", textOf(response.Content[0]))
	}
	return textOf(response.Content[0]), nil
}

// textOf is a block's text, which may have come as a blob.
func textOf(block abi.Content) string { return block.Text + string(block.Data) }

// wantText compares the answer of a tool.
func (s *suite) wantText(tool string, arguments any, want string) error {
	got, err := s.text(tool, arguments)
	if err == nil && got != want {
		err = fmt.Errorf("got %s, want %s", short(got), short(want))
	}
	return err
}

// wantFailure wants a tool to fail with a text that contains part.
func (s *suite) wantFailure(tool string, arguments any, part string) error {
	response, err := s.call(tool, arguments)
	switch {
	case err != nil:
		return err
	case !response.IsError || len(response.Content) != 1:
		return fmt.Errorf("got %d blocks, isError %v, want a tool error", len(response.Content), response.IsError)
	case !strings.Contains(textOf(response.Content[0]), part):
		return fmt.Errorf("the error is %s, want one with %q", short(textOf(response.Content[0])), part)
	}
	return nil
}

func short(text string) string {
	const shown = 80
	if len(text) > shown {
		return fmt.Sprintf("%q... (%d bytes)", text[:shown], len(text))
	}
	return fmt.Sprintf("%q", text)
}

// recorder keeps the messages of log records.
type recorder struct {
	mu       sync.Mutex
	messages []string
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *recorder) WithGroup(string) slog.Handler            { return r }

func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, record.Message)
	return nil
}

func (r *recorder) has(message string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.messages, message)
}
