package mcpserver

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
)

const guestDir = "dev/kit/guesttest/guests/conformance"

// guestLimits give guests time: they may run in the interpreter, under the race detector, on a busy machine.
var guestLimits = manifest.Limits{Time: 10 * time.Minute}

// offerGuest is a catalog with the conformance guest in a real sandbox.
func offerGuest(t *testing.T) *catalog.Catalog {
	t.Helper()
	wasm := guesttest.Build(t, guestDir)
	text, err := os.ReadFile(filepath.Join(guesttest.Root(), guestDir, "conformance.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	plugin := engine.Load(sandbox.Spec{Name: m.Name, Wasm: func() ([]byte, error) { return wasm, nil },
		Limits: guestLimits})
	t.Cleanup(func() {
		plugin.Close()
		engine.Close()
	})
	c := new(catalog.Catalog)
	if err := c.Put(catalog.Source{Name: m.Name, Backend: plugin}, m); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestGuestThroughTheFrontend takes calls the whole way, from a client to a guest and back.
func TestGuestThroughTheFrontend(t *testing.T) {
	t.Parallel()
	c := offerGuest(t)
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		s := newServer(t, c, nil, nil)
		steps := make(chan float64, 3)
		client := frontend.connect(t, s, version, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context,
				req *mcp.ProgressNotificationClientRequest) {
				steps <- req.Params.Progress
			},
		})
		mixed := call(t, client, "test_multiple_content_types")
		if len(mixed.Content) != 3 {
			t.Fatalf("%d blocks, want 3", len(mixed.Content))
		}
		if image, ok := mixed.Content[1].(*mcp.ImageContent); !ok || image.MIMEType != "image/png" ||
			string(image.Data[:4]) != "\x89PNG" {
			t.Errorf("second block: %+v", mixed.Content[1])
		}
		if failed := call(t, client, "test_error_handling"); !failed.IsError {
			t.Errorf("error: %+v", failed)
		}
		params := &mcp.CallToolParams{Name: "test_tool_with_progress"}
		params.SetProgressToken("p")
		if _, err := client.CallTool(t.Context(), params); err != nil {
			t.Error(err)
		}
		if got := []float64{<-steps, <-steps, <-steps}; !slices.Equal(got, []float64{0, 50, 100}) {
			t.Errorf("progress %v", got)
		}
		read, err := client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://template/7/data"})
		if err != nil || read.Contents[0].Text != `{"id":"7"}` {
			t.Errorf("resource: %+v, %v", read, err)
		}
		prompt, err := client.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "test_prompt_with_image"})
		if err != nil || len(prompt.Messages) != 2 {
			t.Errorf("prompt: %+v, %v", prompt, err)
		}
		completed, err := client.Complete(t.Context(), &mcp.CompleteParams{
			Ref:      &mcp.CompleteReference{Type: "ref/resource", URI: "test://template/{id}/data"},
			Argument: mcp.CompleteParamsArgument{Name: "id", Value: "4"},
		})
		if err != nil || !slices.Equal(completed.Completion.Values, []string{"41", "42"}) {
			t.Errorf("completion: %+v, %v", completed, err)
		}
	})
}

// TestFixturesAreThereOnDemand: the suite's own run covers them; this is about not offering them otherwise.
func TestFixturesAreThereOnDemand(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		answer := func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Aki"}}, nil
		}
		const name = "test_input_required_result_elicitation"
		s := newServer(t, offer(t, serveEverything, "x"), nil, &Options{Extension: extension()})
		client := frontend.connect(t, s, version, &mcp.ClientOptions{ElicitationHandler: answer})
		if got := textOf(t, call(t, client, name)); got != "Hello, Aki!" {
			t.Errorf("with fixtures: %s", got)
		}
		plain := frontend.connect(t, newServer(t, offer(t, serveEverything, "x"), nil, nil), version, nil)
		if _, err := plain.CallTool(t.Context(), &mcp.CallToolParams{Name: name}); err == nil {
			t.Error("without: the fixture answers")
		}
	})
}
