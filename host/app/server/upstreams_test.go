package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

// neverComes are credentials that requests wait for until they end. A server that needs one never answers, also in a
// bubble of testing/synctest, whose time stops while a connection is read.
type neverComes struct{ mcpclient.Credentials }

func (neverComes) Credential(ctx context.Context, _, _ string) (*broker.Credential, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// answering is an MCP server with the tool "x". It closes each connection after one response.
func answering(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&request) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if request.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
		if request.Method == "tools/list" {
			result = `{"tools":[{"name":"x","description":"d","inputSchema":{"type":"object"}}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, result)
	}))
	server.Config.SetKeepAlivesEnabled(false)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// TestAwaitLists: commands wait ten seconds for a server that never answers, say that it is missing and have the tools
// of the others. They do not wait for servers that are in the cache.
func TestAwaitLists(t *testing.T) {
	url, dir := answering(t), t.TempDir()
	answers := mcpclient.Spec{Name: "answers", URL: url, ProtocolVersion: "2025-11-25", Start: mcpclient.Lazy,
		IdleTimeout: time.Second}
	silent := answers
	silent.Name, silent.Credential = "silent", "late"
	for _, test := range []struct {
		name    string
		specs   []mcpclient.Spec
		cancel  bool
		elapsed time.Duration
		tools   int
		missing []string
	}{
		{"one never answers", []mcpclient.Spec{silent, answers}, false, 10 * time.Second, 1, []string{"silent"}},
		{"again, the other one is cached", []mcpclient.Spec{silent, answers}, false, 10 * time.Second, 1, []string{"silent"}},
		{"one is cached", []mcpclient.Spec{answers}, false, 0, 1, nil},
		{"canceled", []mcpclient.Spec{silent}, true, 3 * time.Second, 0, []string{"silent"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				offered := new(catalog.Catalog)
				u, err := mcpclient.New(mcpclient.Options{Catalog: offered, Dir: dir, CacheDir: dir,
					Credentials: neverComes{}})
				if err != nil {
					t.Fatal(err)
				}
				defer u.Close()
				if err := u.Apply(test.specs); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.cancel {
					time.AfterFunc(test.elapsed, cancel)
				}
				began := time.Now()
				if err := awaitLists(ctx, u); (err != nil) != test.cancel || err != nil && !errors.Is(err, ctx.Err()) {
					t.Errorf("error is %v", err)
				}
				if got := time.Since(began); got != test.elapsed {
					t.Errorf("it took %v, want %v", got, test.elapsed)
				}
				if got := len(offered.View().Tools); got != test.tools {
					t.Errorf("%d tools", got)
				}
				var missing []string // which printMissingUpstreams of cmd/hako names
				for _, s := range u.Status() {
					if s.State == mcpclient.Connecting && !s.Listed {
						missing = append(missing, s.Name)
					}
				}
				if !slices.Equal(missing, test.missing) {
					t.Errorf("%v are missing, want %v. Status is %+v", missing, test.missing, u.Status())
				}
			})
		})
	}
}
