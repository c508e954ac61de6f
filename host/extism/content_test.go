package extism_test

import (
	"encoding/json"
	"testing"

	"github.com/hako-run/hako/pdk/abi"
)

// TestAnswers decodes every form of response that guests give, including blocks without type of hyper-mcp's Go
// template.
func TestAnswers(t *testing.T) {
	t.Parallel()
	plugin := load(t, setup{wasm: guest(t)})
	for name, test := range map[string]struct{ answer, want string }{
		"text":              {`{"content":[{"type":"text","text":"hi"}]}`, `{"content":[{"type":"text","text":"hi"}]}`},
		"empty text":        {`{"content":[{"type":"text","text":""}]}`, `{"content":[{"type":"text"}]}`},
		"text without type": {`{"content":[{"text":"hi"}]}`, `{"content":[{"type":"text","text":"hi"}]}`},
		"image": {`{"content":[{"type":"image","data":"AQI=","mimeType":"image/png"}]}`,
			`{"content":[{"type":"image","mimeType":"image/png","data":"AQI="}]}`},
		"image without type": {`{"content":[{"data":"AQI=","mimeType":"image/png"}]}`,
			`{"content":[{"type":"image","mimeType":"image/png","data":"AQI="}]}`},
		"audio without type": {`{"content":[{"data":"AQI=","mimeType":"audio/wav"}]}`,
			`{"content":[{"type":"audio","mimeType":"audio/wav","data":"AQI="}]}`},
		"link without type": {`{"content":[{"uri":"a:b","name":"n","size":3}]}`,
			`{"content":[{"type":"resource_link","uri":"a:b","name":"n","size":3}]}`},
		"resource": {`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"AQI="}}]}`,
			`{"content":[{"type":"resource","resource":{"uri":"a:b","data":"AQI="}}]}`},
		"resource without type": {`{"content":[{"resource":{"uri":"a:b","text":"t"}}]}`,
			`{"content":[{"type":"resource","resource":{"uri":"a:b","text":"t"}}]}`},
		"resource of the first family": {`{"content":[{"type":"resource","text":"t","mimeType":"text/plain"},{"type":"resource","data":"AQI="}]}`,
			`{"content":[{"type":"resource","resource":{"uri":"extism:content","mimeType":"text/plain","text":"t"}},` +
				`{"type":"resource","resource":{"uri":"extism:content","data":"AQI="}}]}`},
		"structured": {`{"content":[],"structuredContent":{"a":1},"_meta":{}}`, `{"structuredContent":{"a":1}}`},
		"null":       {`{"content":null,"structuredContent":null,"isError":null}`, `{}`},
		"error":      {`{"content":[{"type":"text","text":"no","annotations":{"audience":["user"],"priority":0.5}}],"isError":true}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response, err := call(t, plugin, "raw", object{"text": test.answer})
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" {
				if !response.IsError || response.Content[0].Annotations.Audience[0] != "user" {
					t.Errorf("%+v", response)
				}
				return
			}
			if got := shown(t, response); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// shown returns a response as JSON, with the binary data.
func shown(t *testing.T, r *abi.Response) string {
	t.Helper()
	type contents struct {
		*abi.ResourceContents
		Data []byte `json:"data,omitempty"`
	}
	type block struct {
		abi.Content
		Data     []byte    `json:"data,omitempty"`
		Resource *contents `json:"resource,omitempty"`
	}
	out := struct {
		Content           []block         `json:"content,omitempty"`
		StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	}{StructuredContent: r.StructuredContent}
	for _, c := range r.Content {
		b := block{Content: c, Data: c.Data}
		if c.Resource != nil {
			b.Resource = &contents{c.Resource, c.Resource.Data}
		}
		out.Content = append(out.Content, b)
	}
	data, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
