package sandbox_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// TestLongTextIsCheap checks that a Go guest looks at the bytes of a long text less than once each: the PDK does not
// decode and encode it as JSON.
func TestLongTextIsCheap(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{})
	for name, test := range map[string]struct {
		text  string
		steps int64 // for 2 bytes
	}{
		"plain":   {strings.Repeat("some text ", 10_000), 2},
		"escapes": {strings.Repeat("a line of some length, as it is usual\n", 3_000), 4},
	} {
		arguments, err := json.Marshal(object{"text": test.text})
		if err != nil {
			t.Fatal(err)
		}
		var steps int64
		response, err := plugin.Call(t.Context(), &catalog.Invocation{
			Request: &abi.Request{Method: abi.CallTool, Name: "echo", Arguments: arguments}, Steps: &steps,
		})
		if err != nil || response.Content[0].Text != test.text {
			t.Fatalf("%s: the text has changed (%v)", name, err)
		}
		if most := int64(len(arguments)) * test.steps / 2; steps > most {
			t.Errorf("%s: %d steps for %d bytes, want at most %d", name, steps, len(arguments), most)
		}
	}
}

// TestLongTexts checks long texts that the PDK attaches: more than there may be blobs, in a result that the guest
// returns again, and such that are not UTF-8.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{State: manifest.StateShared,
		Limits: manifest.Limits{Output: 8 << 20}})
	for range 2 {
		response, err := call(t, plugin, "texts", object{"n": 300})
		if err != nil {
			t.Fatal(err)
		}
		if len(response.Content) != 300 {
			t.Fatalf("%d texts: %+.200v", len(response.Content), response.Content)
		}
		for i, content := range response.Content {
			if want := strings.Repeat(fmt.Sprint(i, " "), 1000); content.Text != want {
				t.Fatalf("text %d is %.20q", i, content.Text)
			}
		}
	}
	if got := text(t, plugin, "not_utf8", object{"n": 3000}); got != strings.Repeat("\ufffd", 3000) {
		t.Errorf("a text that is not UTF-8 becomes %.20q", got)
	}
}
