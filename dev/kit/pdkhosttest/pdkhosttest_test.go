//go:build !wasip1

package pdkhosttest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/pdkhosttest"
	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
)

type settings struct {
	Base string `json:"base"`
	Unit string `json:"unit"`
}

func init() {
	pdk.HandleTool("item_get", func(ctx context.Context, in struct {
		ID   int    `json:"id"`
		Path string `json:"path"`
	}) (map[string]any, error) {
		var config settings
		if err := pdk.Config(ctx, &config); err != nil {
			return nil, err
		}
		pdk.Progress(ctx, 1, 2, "asking")
		response, err := pdk.Fetch(ctx, &pdk.HTTPRequest{URL: config.Base + in.Path})
		if err != nil {
			return nil, err
		}
		if in.ID == 13 {
			return map[string]any{"nothing": true}, nil
		}
		pdk.ResourceUpdated(ctx, "item://13")
		return map[string]any{"body": string(response.Body), "unit": config.Unit}, nil
	})
	pdk.HandleResourceTemplate("item://{id}",
		func(_ context.Context, uri string, variables map[string]string) ([]pdk.ResourceContents, error) {
			return []pdk.ResourceContents{{URI: uri, Text: "item " + variables["id"]}}, nil
		})
	pdk.HandlePrompt("describe", func(_ context.Context, arguments map[string]string) (*pdk.Prompt, error) {
		return &pdk.Prompt{Messages: []pdk.PromptMessage{{Role: "user",
			Content: pdk.Content{Type: abi.Text, Text: "Describe " + arguments["item"]}}}}, nil
	})
	pdk.CompletePrompt("describe", "item", func(_ context.Context, value string, _ map[string]string) ([]string, error) {
		return []string{value + "1", value + "2"}, nil
	})
}

// TestHost calls handlers under a manifest.
func TestHost(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.URL.Path + " " + r.Header.Get("Authorization")))
	}))
	t.Cleanup(server.Close)
	var reports, updated []string
	live := pdkhosttest.New(t, "testdata/manifest.yaml", pdkhosttest.Options{
		HTTP:     map[string]string{"api": server.URL + "/v1/"},
		Progress: func(p abi.Progress) { reports = append(reports, p.Message) },
		Updated:  func(uri string) { updated = append(updated, uri) }})
	recorded := pdkhosttest.New(t, "testdata/manifest.yaml", pdkhosttest.Options{
		Recordings: "testdata/recordings.json", Config: map[string]any{"unit": "g"}})
	for name, test := range map[string]struct {
		host      *pdkhosttest.Host
		arguments map[string]any
		want      string
	}{
		"a server of the test": {live, map[string]any{"path": "items"}, `{"body":"/v1/items Bearer ***************","unit":"kg"}`},
		"a recording":          {recorded, map[string]any{"path": "items"}, `{"body":"one","unit":"g"}`},
		"no recording":         {recorded, map[string]any{"path": "more"}, "no recording answers GET https://api.example.com/v1/more"},
		"not granted":          {live, map[string]any{"path": "../v2"}, "no grant for GET " + server.URL + "/v2"},
		"a wrong argument":     {live, map[string]any{"path": "items", "id": "x"}, "id: must be"},
		"an unknown argument":  {live, map[string]any{"path": "items", "more": 1}, "more"},
		"a wrong result":       {recorded, map[string]any{"path": "items", "id": 13}, "body"},
	} {
		response, err := test.host.CallTool("item_get", test.arguments)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case response.IsError:
			got = response.Content[0].Text
		default:
			got = string(response.StructuredContent)
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
	if len(reports) == 0 || reports[0] != "asking" || len(updated) != 1 || updated[0] != "item://13" {
		t.Errorf("reports %q, updates %q", reports, updated)
	}
	if _, err := live.CallTool("item_put", nil); err == nil {
		t.Error("a tool that the manifest does not list was called")
	}
	if r, err := live.ReadResource("item://7"); err != nil || r.Contents[0].Text != "item 7" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := live.GetPrompt("describe", map[string]string{"item": "7"}); err != nil || r.Messages[0].Content.Text != "Describe 7" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := live.GetPrompt("describe", nil); err == nil {
		t.Errorf("without the required argument: %+v", r)
	}
	r, err := live.Complete(abi.Ref{Type: "ref/prompt", Name: "describe"}, abi.Argument{Name: "item", Value: "1"})
	if err != nil || strings.Join(r.Completion.Values, " ") != "11 12" {
		t.Errorf("%+v, %v", r, err)
	}
}
