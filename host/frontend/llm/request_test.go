package llm

import (
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files of requests")

// TestRequests compares the request for a conversation with everything in it, for each provider.
func TestRequests(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		for name, change := range map[string]func(*model, *Request){
			"tools": func(_ *model, r *Request) { r.Cache = true },
			"text": func(m *model, r *Request) {
				temperature := 0.5
				r.NoTools, r.Temperature, r.MaxTokens = true, &temperature, 7
				m.without = map[string]bool{"include": true, "max_tokens": true, "stream_options": true}
			},
		} {
			s := spec(t, provider)
			s.Images, s.Retries = true, -1
			var header http.Header
			var body []byte
			record := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				header = r.Header
				body, _ = io.ReadAll(r.Body)
				w.WriteHeader(http.StatusTeapot)
			})
			chain, err := New(Options{Specs: []Spec{s}})
			if err != nil {
				t.Fatal(err)
			}
			m := chain.models[0]
			m.vendor = newVendor(&m.spec, &http.Client{Transport: inMemory{record}})
			request := everything(provider)
			change(m, request)
			if _, err := chain.Complete(t.Context(), request, nil); err == nil {
				t.Fatal("the answer of a teapot is accepted")
			}
			if kind := header.Get("Content-Type"); kind != "application/json" {
				t.Errorf("Content-Type %q", kind)
			}
			compareGolden(t, provider+"_"+name, body)
		}
	})
}

// everything returns a conversation with all that a request may contain.
func everything(provider string) *Request {
	image := Image{MIMEType: "image/png", Data: []byte("a picture")}
	unknown := Image{MIMEType: "image/tiff", Data: []byte("a picture")}
	thought := &State{origin: origin{provider, "thinker"}, parts: []json.RawMessage{
		json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"signed"}`),
		json.RawMessage(`{"type":"text","text":"<これ> & that"}`)}}
	return &Request{
		System: "Answer <briefly> & in 日本語.",
		Messages: []Message{
			{Role: RoleUser, Text: "What is this?", Images: []Image{image, unknown}},
			{Role: RoleAssistant, Text: "I look.", Calls: []Call{
				{ID: "1", Name: "get weather", Arguments: json.RawMessage(`{"location":"東京 <&>"}`)},
				{ID: "2", Name: "gone"},
				{ID: "3", Name: "get weather", Arguments: json.RawMessage(`{}`)}}},
			{Role: RoleUser, Results: []Result{
				{CallID: "1", Text: "晴れ", Images: []Image{image, unknown}},
				{CallID: "2", Text: "there is no such tool", IsError: true}, {CallID: "3"}}},
			{Role: RoleAssistant, Text: "これ & that", State: thought},
			{Role: RoleUser, Images: []Image{image}},
			{Role: RoleAssistant, Calls: []Call{{ID: "4", Name: "gone"}}}, // without text
			{Role: RoleUser, Results: []Result{{CallID: "4", Text: "nothing"}}},
			{Role: RoleAssistant, Text: "A picture."},
			{Role: RoleUser, Text: "Thanks."},
		},
		Tools: []Tool{{Name: "get weather", Description: "天気予報を返します。", Schema: weatherTool.Schema},
			{Name: "undescribed", Schema: json.RawMessage(`{"type":"object"}`)}},
	}
}

// compareGolden compares the JSON with testdata/NAME.json.
func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".json")
	if *update {
		var value any
		if err := json.Unmarshal(got, &value); err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var is, want any
	if err := json.Unmarshal(got, &is); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if err := json.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(is, want) {
		t.Errorf("%s: the request is\n%s\nwant\n%s", path, got, golden)
	}
}
