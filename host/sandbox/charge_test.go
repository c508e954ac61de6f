package sandbox_test

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// TestHostileAnswerSize checks that an answer is charged for the memory that decoding it takes, which can be many times
// its length.
func TestHostileAnswerSize(t *testing.T) {
	t.Parallel()
	const n = 100_000
	repeat := func(text string) string { return strings.Repeat(text+",", n-1) + text }
	for name, document := range map[string]string{
		"blocks of nothing":   `{"content":[` + repeat(`{"type":"text"}`) + `]}`,
		"contents of nothing": `{"contents":[` + repeat(`{"uri":"a"}`) + `]}`,
		"messages of nothing": `{"messages":[` + repeat(`{"role":"user","content":{"type":"text"}}`) + `]}`,
		"empty completions":   `{"completion":{"values":[` + repeat(`""`) + `]}}`,
		"brackets and quotes": `{"content":[{"type":"text","text":"` + strings.Repeat(`[{\\\"`,
			n) + `"}],"contents":[` + repeat(`{"uri":"a"}`) + `]}`,
		"structured, repeated too": `{"structuredContent":[` + repeat(`0`) + `]}`,
		"control characters":       `{"content":[{"type":"text","text":"` + strings.Repeat(`\u0001`, n) + `"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response, err := sandbox.Decode("p", []byte(document), nil)
			if err != nil {
				t.Fatal(err)
			}
			least := cap(response.Content)*int(unsafe.Sizeof(abi.Content{})) +
				cap(response.Contents)*int(unsafe.Sizeof(abi.ResourceContents{})) +
				cap(response.Messages)*int(unsafe.Sizeof(abi.PromptMessage{})) + len(response.StructuredContent)
			if response.Completion != nil {
				least += cap(response.Completion.Values) * int(unsafe.Sizeof(""))
			}
			if got := sandbox.ReadingBytes([]byte(document), nil); got < int64(least) {
				t.Errorf("reading it is charged with %d bytes and takes %d", got, least)
			}
		})
	}
	controls := abi.Response{Content: []abi.Content{{Type: abi.Text, Text: strings.Repeat("\x01", n)}}}
	if got := sandbox.Weigh(&controls, 0, true); got < 6*n {
		t.Errorf("control characters are charged with %d bytes and take %d in JSON", got, 6*n)
	}
	letters := abi.Response{Content: []abi.Content{{Type: abi.Text, Text: strings.Repeat("a", n)}}}
	for _, whole := range []bool{true, false} {
		if got := sandbox.Weigh(&letters, 6*n, whole); got < 7*n {
			t.Errorf("letters are charged with %d bytes and keep a response of %d", got, 6*n)
		}
	}
	// What comes from the guest's response is charged with at least what counting it gives.
	for _, document := range []string{
		`{"content":[{"type":"text","text":"a\"\n\u0001\u00e9/"}],"structuredContent":{"a":"\u0001"}}`,
		`{"structuredContent":[1]}`, `{"content":[{"type":"text","text":"日本"},{"text":"","type":"text"}]}`} {
		response, err := sandbox.Decode("p", []byte(document), nil)
		if err != nil {
			t.Fatal(err)
		}
		least := sandbox.Weigh(response, 0, true)
		if got := sandbox.Weigh(response, int64(len(document)), true); got < least || got > least+3*int64(len(document)) {
			t.Errorf("%s: %d bytes, counted %d", document, got, least)
		}
	}
}
