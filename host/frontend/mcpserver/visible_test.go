package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
)

// listed lists the tools page by page. No page but the last may be empty, and none larger than most.
func listed(t *testing.T, session *mcp.ClientSession, most int) []string {
	t.Helper()
	var names []string
	for params := new(mcp.ListToolsParams); ; {
		page, err := session.ListTools(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Tools) > most || len(page.Tools) == 0 && page.NextCursor != "" {
			t.Errorf("a page of %d tools", len(page.Tools))
		}
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		if params.Cursor = page.NextCursor; params.Cursor == "" {
			return names
		}
	}
}

func TestToolsListIsTheCallers(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		g := newGoverned(t, askingPolicy, nil, nil)
		session := frontend.connect(t, g.Server, version, nil)
		if names := listed(t, session, 10); !slices.Equal(names, []string{"erase", "look", "move"}) {
			t.Errorf("listed: %v", names)
		}
		result := callWith(t, session, "secret", 1)
		if got := textOf(t, result); !result.IsError || !strings.Contains(got, `rule "never" denies it`) ||
			g.done.Load() != 0 {
			t.Errorf("a call of what is not listed: %v, %q", result.IsError, got)
		}
	})
}

// TestHiddenPages: most tools are hidden, whole pages of them.
func TestHiddenPages(t *testing.T) {
	t.Parallel()
	var names []string
	for n := range 30 {
		names = append(names, fmt.Sprintf("t%02d", n))
	}
	want := []string{"t00", "t11", "t12", "t28"}
	for _, version := range versions {
		for size := 1; size < 7; size++ {
			c := offer(t, serveEverything, names...)
			s := newServer(t, c, hiding{pipeline.New(c, nil),
				func(_ pipeline.Caller, name string) bool { return slices.Contains(want, name) }},
				&Options{PageSize: size})
			if got := listed(t, connectStdio(t, s, version, nil), size); !slices.Equal(got, want) {
				t.Errorf("%s, pages of %d: %v", version, size, got)
			}
		}
	}
}

// hiding shows some tools alone.
type hiding struct {
	*pipeline.Pipeline
	visible func(caller pipeline.Caller, tool string) bool
}

func (h hiding) Described(caller pipeline.Caller, tool *catalog.Tool) *catalog.Tool {
	spec := *tool.Spec
	spec.Description = manifest.Text{"en": "For " + caller.User + "."}
	return &catalog.Tool{Source: tool.Source, Name: tool.Name, Spec: &spec}
}

func (h hiding) Visible(caller pipeline.Caller, tool *catalog.Tool) bool {
	return h.visible(caller, tool.Name)
}

// TestToolsOfUsers: who asks is who the token is for, in both versions.
func TestToolsOfUsers(t *testing.T) {
	t.Parallel()
	aki, akiHash := bearer.New()
	ben, benHash := bearer.New()
	c := offer(t, serveEverything, "of_aki", "of_ben", "of_acme")
	calls := hiding{pipeline.New(c, nil), func(caller pipeline.Caller, tool string) bool {
		return tool == "of_"+caller.User || tool == "of_"+caller.Tenant
	}}
	h := newServer(t, c, calls, &Options{Auth: newAuth(t, auth.Options{Tokens: []bearer.Token{
		{Name: "aki", Hash: akiHash, Tenant: "acme"}, {Name: "ben", Hash: benHash},
	}})}).Handler()
	for token, want := range map[string]string{aki: "of_acme of_aki", ben: "of_ben"} {
		authorization := "Bearer " + token
		for _, version := range versions {
			headers := []string{"Authorization", authorization}
			if version == withSessions {
				headers = append(headers, "Mcp-Session-Id", openSession(t, h, "Authorization", authorization))
			}
			var list struct {
				Tools []struct{ Name, Description string }
			}
			if err := json.Unmarshal(answerOf(t, do(h, post(version, message(version, 1, "tools/list", `{}`), headers...))).Result, &list); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
				if user := strings.Split(want, "_"); tool.Description != "For "+user[len(user)-1]+"." {
					t.Errorf("%s: %s is described as %q", version, tool.Name, tool.Description)
				}
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s: %q, want %q", version, got, want)
			}
		}
	}
}

// TestToolsChanged tells clients of changes that are not the catalog's.
func TestToolsChanged(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		s := newServer(t, offer(t, serveEverything, "x"), nil, nil)
		options, told := watching()
		session := frontend.connect(t, s, version, options)
		for deadline := testwait.Context(t).Done(); ; { // a stream may not stand yet
			s.ToolsChanged()
			select {
			case <-told:
				if result := call(t, session, "x"); result.IsError {
					t.Errorf("the tool is not as before: %v", result.Content)
				}
				return
			case <-time.After(50 * time.Millisecond):
			case <-deadline:
				t.Fatal("not told")
			}
		}
	})
	newServer(t, new(catalog.Catalog), nil, nil).ToolsChanged() // there is nothing to tell
}
