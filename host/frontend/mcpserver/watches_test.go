package mcpserver

import (
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
)

// telling is a backend that tells of changes where it was asked to.
type telling struct {
	changing
	mu    sync.Mutex
	asked map[string]func()
}

func (b *telling) Subscribe(uri string, updated func()) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[uri] = updated
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.asked, uri)
	}
}

// tell changes a resource, and reports whether that was asked for.
func (b *telling) tell(uri string) bool {
	b.mu.Lock()
	updated := b.asked[uri]
	b.mu.Unlock()
	if updated != nil {
		updated()
	}
	return updated != nil
}

// TestTellers: a backend is asked to tell of what clients subscribe to, and so is the one that takes its place.
func TestTellers(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		first, second := &telling{asked: map[string]func(){}}, &telling{asked: map[string]func(){}}
		c := offerChanging(t, first)
		server := newServer(t, c, nil, nil)
		s := newSubscriber(t, func(o *mcp.ClientOptions) *mcp.ClientSession {
			return frontend.connect(t, server,
				version, o)
		})
		defer s.Close() // while the server still reads
		s.subscribe("probe://fixed", "probe://item/1")
		told := func(by *telling, uri string) {
			t.Helper()
			for ctx := testwait.Context(t); ; {
				asked := by.tell(uri)
				select {
				case got := <-s.told:
					if got != uri {
						continue // of an earlier change
					}
					return
				case <-time.After(20 * time.Millisecond): // the stream may not stand yet
				}
				if ctx.Err() != nil {
					t.Fatalf("not told of %s, asked: %v", uri, asked)
				}
			}
		}
		told(first, "probe://fixed")
		told(first, "probe://item/1")
		if first.tell("probe://item/2") {
			t.Error("asked for what nobody wants")
		}
		m, err := manifest.Parse([]byte(changingManifest))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Put(catalog.Source{Name: m.Name, Backend: second}, m); err != nil {
			t.Fatal(err)
		}
		told(second, "probe://fixed")
		if first.tell("probe://fixed") {
			t.Error("the one before is still asked")
		}
	})
}
