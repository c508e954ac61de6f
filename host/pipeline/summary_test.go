package pipeline

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/pdk/abi"
)

// TestSummary checks the recorded kind of a response, and that its text is recorded only if configured.
func TestSummary(t *testing.T) {
	t.Parallel()
	p := new(Pipeline)
	p.settings.Store(&Settings{AuditFields: map[string][]string{"shown": {"n", "output_summary"}}})
	text := abi.Content{Type: abi.Text, Text: "hello"}
	for name, c := range map[string]struct {
		tool     string
		response *abi.Response
		want     audit.OutputSummary
	}{
		"nothing": {"", &abi.Response{}, audit.OutputSummary{Kind: "empty", Counts: map[string]int{}}},
		"text": {"", &abi.Response{Content: []abi.Content{text, text}},
			audit.OutputSummary{Kind: "text", Counts: map[string]int{"text": 2}}},
		"shown": {"shown", &abi.Response{Content: []abi.Content{text, text}},
			audit.OutputSummary{Kind: "text", Counts: map[string]int{"text": 2}, Text: "hellohello"}},
		"mixed": {"", &abi.Response{Content: []abi.Content{text, {Type: abi.Image}}},
			audit.OutputSummary{Kind: "mixed", Counts: map[string]int{"text": 1, "image": 1}}},
		"words": {"", &abi.Response{Content: []abi.Content{{Type: "s3cret"}}},
			audit.OutputSummary{Kind: "other", Counts: map[string]int{"other": 1}}},
		"a tool error": {"", &abi.Response{Content: []abi.Content{text}, IsError: true},
			audit.OutputSummary{Kind: "error", Counts: map[string]int{"text": 1}}},
		"a resource": {"", &abi.Response{Contents: []abi.ResourceContents{{}}},
			audit.OutputSummary{Kind: "contents", Counts: map[string]int{"contents": 1}}},
		"a prompt": {"", &abi.Response{Messages: []abi.PromptMessage{{}, {}}},
			audit.OutputSummary{Kind: "messages", Counts: map[string]int{"messages": 2}}},
		"a list": {"", &abi.Response{Content: []abi.Content{text},
			StructuredContent: json.RawMessage(`{"employees": [{"n": [1, 2]}, {"n": [3]}], "total": 2}`)},
			audit.OutputSummary{Kind: "object", Counts: map[string]int{"text": 1, "items": 2}}},
	} {
		if got := p.summary(&openRecord{Record: Record{Name: c.tool}}, c.response); !reflect.DeepEqual(got, &c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if p.summary(new(openRecord), nil) != nil {
		t.Error("a call without an answer has a summary")
	}
}

func TestCountItems(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`{}`: 0, `{"a":[]}`: 0, `{"a":[ ]}`: 0, `{"a":[1]}`: 1, `{"a":[1,2],"b":["x","y","z"]}`: 5,
		`{"a":{"b":[1,2]}}`: 0, `{"a":[[1,2],[3]]}`: 2,
		`{"a":["]","\\\"],","\\\\"],"b":1}`: 3, `{"a":[{"b":[1,2,3]},{"c":{}}]}`: 2, `{"a,b":",[","c":[null]}`: 1,
	} {
		if !json.Valid([]byte(text)) {
			t.Fatal(text)
		}
		if got := countItems([]byte(text)); got != want {
			t.Errorf("%s: %d items, want %d", text, got, want)
		}
	}
}
