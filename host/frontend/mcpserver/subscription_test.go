package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// changing is a backend whose tool changes the resources that its arguments name.
type changing struct{}

func (changing) Call(_ context.Context, invocation *catalog.Invocation) (*abi.Response, error) {
	var in struct{ Text string }
	if err := json.Unmarshal(invocation.Request.Arguments, &in); err != nil {
		return nil, err
	}
	for uri := range strings.FieldsSeq(in.Text) {
		invocation.Updated(uri)
	}
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: "changed"}}}, nil
}

const changingManifest = `
name: probe
version: 1.0.0
tools: [{name: update, description: Changes., inputSchema: {type: object}}]
resources: [{uri: "probe://fixed", name: fixed}]
resourceTemplates: [{uriTemplate: "probe://item/{id}", name: item}]
`

func offerChanging(t *testing.T, backend catalog.Backend) *catalog.Catalog {
	t.Helper()
	m, err := manifest.Parse([]byte(changingManifest))
	if err != nil {
		t.Fatal(err)
	}
	c := new(catalog.Catalog)
	if err := c.Put(catalog.Source{Name: m.Name, Backend: backend}, m); err != nil {
		t.Fatal(err)
	}
	return c
}

// subscriber is a client that collects the URIs that it is told of.
type subscriber struct {
	*mcp.ClientSession
	t    *testing.T
	told chan string
}

func newSubscriber(t *testing.T, connect func(*mcp.ClientOptions) *mcp.ClientSession) *subscriber {
	t.Helper()
	s := &subscriber{t: t, told: make(chan string, 1000)}
	s.ClientSession = connect(&mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context,
			req *mcp.ResourceUpdatedNotificationRequest) {
			s.told <- req.Params.URI
		},
	})
	return s
}

func (s *subscriber) subscribe(uris ...string) {
	s.t.Helper()
	for _, uri := range uris {
		if err := s.Subscribe(s.t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
			s.t.Fatalf("subscribe to %s: %v", uri, err)
		}
	}
}

func (s *subscriber) change(uris string) {
	s.t.Helper()
	if _, err := s.CallTool(s.t.Context(), &mcp.CallToolParams{Name: "update", Arguments: map[string]string{"text": uris}}); err != nil {
		s.t.Fatal(err)
	}
}

// toldOf changes resources until the client has been told of the last of them, and returns what it was told of. A
// stream may not stand yet, and what is missed is missed.
func (s *subscriber) toldOf(uris string) []string {
	s.t.Helper()
	last := uris[strings.LastIndex(uris, " ")+1:]
	var told []string
	for {
		s.change(uris)
		for patience := time.After(100 * time.Millisecond); ; {
			select {
			case uri := <-s.told:
				if told = append(told, uri); uri == last {
					return told
				}
				continue
			case <-patience:
			}
			break
		}
	}
}

// TestSubscriptions subscribes over every transport in each protocol version, with a guest that says what has changed.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	wasm := guesttest.Build(t, "dev/kit/guesttest/guests/probe")
	engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	web, err := httpbroker.New(nil, nil) // the guest imports it
	if err != nil {
		t.Fatal(err)
	}
	plugin := engine.Load(sandbox.Spec{Name: "probe", Wasm: func() ([]byte, error) { return wasm, nil },
		Modules: []broker.Module{web.Module()}, Limits: guestLimits})
	t.Cleanup(func() {
		if err := errors.Join(plugin.Close(), engine.Close(), web.Close()); err != nil {
			t.Error(err)
		}
	})
	c := offerChanging(t, plugin)
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		s := newServer(t, c, nil, nil)
		client := newSubscriber(t, func(o *mcp.ClientOptions) *mcp.ClientSession {
			return frontend.connect(t, s,
				version, o)
		})
		defer client.Close()
		client.subscribe("probe://item/7", "probe://item/before", "probe://fixed")
		if told := client.toldOf("probe://item/8 probe://elsewhere probe://item/7"); slices.Contains(told, "probe://item/8") || slices.Contains(told, "probe://elsewhere") {
			t.Errorf("told of %q", told)
		}
		client.toldOf("probe://fixed")
		if version >= withoutSessions {
			return // the end of a stream takes its time
		}
		if err := client.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "probe://item/7"}); err != nil {
			t.Fatal(err)
		}
		client.toldOf("probe://item/before") // and so of all that was before it
		if told := client.toldOf("probe://item/7 probe://fixed"); slices.Contains(told, "probe://item/7") {
			t.Errorf("told of %q after the unsubscription", told)
		}
	})
}

// carrying adds a token to requests.
type carrying string

func (b carrying) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return web.Transport.RoundTrip(r)
}

// TestSubscriptionsOfTenants: what happens at one tenant's is told to nobody of another. Each client has one stream, on
// which changes are told in their order: who is told of the last has been told of all.
func TestSubscriptionsOfTenants(t *testing.T) {
	t.Parallel()
	streams := map[string]func(t *testing.T, url, token string) *subscriber{withSessions: sessionStream,
		withoutSessions: listenStream}
	for version, stream := range streams {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			acme, acmeHash := bearer.New()
			zeta, zetaHash := bearer.New()
			s := newServer(t, offerChanging(t, changing{}), nil,
				&Options{Auth: newAuth(t, auth.Options{Tokens: []bearer.Token{
					{Name: "a", Hash: acmeHash, Tenant: "acme"}, {Name: "z", Hash: zetaHash, Tenant: "zeta"},
				}})})
			url := listen(t, s) + Path
			ofAcme, ofZeta := stream(t, url, acme), stream(t, url, zeta)
			ofAcme.toldOf("probe://item/acme")
			ofZeta.toldOf("probe://item/zeta")
			if told := ofAcme.toldOf("probe://fixed"); slices.Contains(told, "probe://item/zeta") {
				t.Errorf("acme was told of %q", told)
			}
			if told := ofZeta.toldOf("probe://fixed"); slices.Contains(told, "probe://item/acme") {
				t.Errorf("zeta was told of %q", told)
			}
		})
	}
}

// watched are the resources that both tenants subscribe to.
var watched = []string{"probe://item/acme", "probe://item/zeta", "probe://fixed"}

// sessionStream subscribes as clients up to 2025-11-25 do. Its stream stands when the client has been told of
// something.
func sessionStream(t *testing.T, url, token string) *subscriber {
	s := newSubscriber(t, func(o *mcp.ClientOptions) *mcp.ClientSession {
		return connect(t, &mcp.StreamableClientTransport{Endpoint: url,
			HTTPClient: &http.Client{Transport: carrying(token)}}, withSessions, o)
	})
	t.Cleanup(func() { s.Close() })
	s.subscribe(watched...)
	s.toldOf("probe://fixed")
	return s
}

// listenStream subscribes as clients from 2026-07-28 do, to all in one stream.
func listenStream(t *testing.T, url, token string) *subscriber {
	s := newSubscriber(t, func(o *mcp.ClientOptions) *mcp.ClientSession {
		return connect(t, &mcp.StreamableClientTransport{Endpoint: url,
			HTTPClient: &http.Client{Transport: carrying(token)}}, withoutSessions, o)
	})
	t.Cleanup(func() { s.Close() })
	asked, err := json.Marshal(watched)
	if err != nil {
		t.Fatal(err)
	}
	r := post(withoutSessions, message(withoutSessions, 1, transport.MethodListen,
		`{"notifications":{"resourceSubscriptions":`+
			string(asked)+`}}`))
	ctx, cancel := context.WithCancel(context.Background())
	sent, err := http.NewRequestWithContext(ctx, http.MethodPost, url, r.Body)
	if err != nil {
		t.Fatal(err)
	}
	sent.Header = r.Header
	response, err := carrying(token).RoundTrip(sent)
	if err != nil {
		t.Fatal(err)
	}
	events := bufio.NewScanner(response.Body)
	acknowledged := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		defer response.Body.Close()
		for events.Scan() {
			data, ok := strings.CutPrefix(events.Text(), "data: ")
			var event struct {
				Method string
				Params struct{ URI string }
			}
			switch {
			case !ok || json.Unmarshal([]byte(data), &event) != nil:
			case event.Method == "notifications/subscriptions/acknowledged":
				close(acknowledged)
			case event.Method == "notifications/resources/updated":
				s.told <- event.Params.URI
			}
		}
	})
	t.Cleanup(func() { cancel(); reading.Wait() })
	<-acknowledged
	return s
}

// TestSubscriptionsAreLimited: only to what there is, not to more than can be kept, and nothing is kept of who has
// gone.
func TestSubscriptionsAreLimited(t *testing.T) {
	t.Parallel()
	s := newServer(t, offerChanging(t, changing{}), nil, nil)
	client := newSubscriber(t, func(o *mcp.ClientOptions) *mcp.ClientSession {
		return connectHTTP(t, s, withSessions,
			o)
	})
	refused := func(uri string, code int64) {
		t.Helper()
		err := client.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri})
		if wire, ok := errors.AsType[*jsonrpc.Error](err); !ok || wire.Code != code {
			t.Errorf("%.30s: %v", uri, err)
		}
	}
	for _, uri := range []string{"probe://nothing", "probe://item/" + strings.Repeat("x", maxURI), ""} {
		refused(uri, jsonrpc.CodeInvalidParams)
	}
	for i := range maxSubscriptions {
		client.subscribe(fmt.Sprint("probe://item/", i))
	}
	client.subscribe("probe://item/0") // again
	refused("probe://item/one-more", codeBusy)
	if err := client.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "probe://item/0"}); err != nil {
		t.Fatal(err)
	}
	client.subscribe("probe://item/one-more")
	client.Close()
	none := func() bool {
		s.subscriptions.mu.Lock()
		defer s.subscriptions.mu.Unlock()
		return len(s.subscriptions.sessions) == 0
	}
	if !testwait.Until(t, none) {
		t.Fatal("the subscriptions of a session that has ended are kept")
	}
}

// TestListenIsAcknowledged: a stream begins with what the client gets of what it asked for, under the resources' own
// names.
func TestListenIsAcknowledged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newServer(t, offerChanging(t, changing{}), nil, nil).Handler()
		uris := []string{"probe://nothing", "probe://fixed", "probe://fixed"}
		for i := range maxSubscriptions + 10 {
			uris = append(uris, fmt.Sprint("probe://item/", i))
		}
		asked, err := json.Marshal(uris)
		if err != nil {
			t.Fatal(err)
		}
		r := post(withoutSessions, message(withoutSessions, 1, transport.MethodListen,
			`{"notifications":{"resourceSubscriptions":`+string(asked)+`}}`))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w := do(h, r.WithContext(ctx))
		_, first, _ := strings.Cut(w.Body.String(), "data: ")
		first, _, _ = strings.Cut(first, "\n")
		var ack struct {
			Method string
			Params mcp.SubscriptionsAcknowledgedParams
		}
		if err := json.Unmarshal([]byte(first), &ack); err != nil {
			t.Fatalf("%q: %v", w.Body, err)
		}
		got := ack.Params.Notifications.ResourceSubscriptions
		if ack.Method != "notifications/subscriptions/acknowledged" || len(got) != maxSubscriptions ||
			got[0] != "probe://fixed" || got[1] != "probe://item/0" {
			t.Errorf("%s of %d: %.80q", ack.Method, len(got), got)
		}
	})
}

// TestChangesAreTakenInQuickly: a call does not wait for the clients that are told, and what waits to be told is
// bounded.
func TestChangesAreTakenInQuickly(t *testing.T) {
	t.Parallel()
	s := newServer(t, offerChanging(t, changing{}), nil, nil)
	subscriptions := s.subscriptions
	subscriptions.notifying = true // and never done
	for range 2 {
		subscriptions.updated("acme", "probe://fixed")
	}
	if n := len(subscriptions.pending); n != 1 {
		t.Errorf("a change that waits already waits %d times", n)
	}
	for i := range 2 * maxPending {
		subscriptions.updated("acme", fmt.Sprint("probe://item/", i))
	}
	if n := len(subscriptions.pending); n != maxPending {
		t.Errorf("%d changes wait, want %d", n, maxPending)
	}
}

// TestSubscriptionsWithoutUpdates: a Pipeline need not report changes.
func TestSubscriptionsWithoutUpdates(t *testing.T) {
	t.Parallel()
	nothing := caller(func(context.Context, *pipeline.Call) (*pipeline.Result, error) {
		return nil, errors.New("not called")
	})
	s := newServer(t, offerChanging(t, changing{}), nothing, nil)
	client := newSubscriber(t, func(o *mcp.ClientOptions) *mcp.ClientSession {
		return connectHTTP(t, s, withSessions,
			o)
	})
	client.subscribe("probe://fixed")
}
