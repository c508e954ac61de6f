package sandbox_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// TestUpdated checks which notifications about changed resources a call may send, and that each is sent once, after the
// call.
func TestUpdated(t *testing.T) {
	t.Parallel()
	var records syncBuffer
	plugin := newPlugin(t, sandbox.Options{Logger: slog.New(slog.NewTextHandler(&records, nil))}, sandbox.Spec{})
	long := "probe://item/" + strings.Repeat("x", 3000)
	for _, test := range []struct {
		tool      string
		arguments any
		want      []string
		count     int
		fails     bool
		warned    bool
	}{
		{"update", object{"text": "probe://a probe://b probe://a"}, []string{"probe://a", "probe://b"}, 2, false,
			false},
		{"update", object{"text": "probe://a \xff"}, nil, 2, false, false}, // JSON makes U+FFFD of it
		{"update_and_trap", object{"text": "probe://a"}, []string{"probe://a"}, 1, true, false},
		{"update", object{"text": "probe://a " + long}, []string{"probe://a"}, 1, false, true},
		{"update_flood", object{"n": 300}, nil, 256, false, true},
		{"echo", object{"text": "x"}, nil, 0, false, false},
	} {
		before := strings.Count(records.String(), "are not announced")
		arguments, err := json.Marshal(test.arguments)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		_, err = plugin.Call(t.Context(), &catalog.Invocation{
			Request: &abi.Request{Method: abi.CallTool, Name: test.tool, Arguments: arguments},
			Updated: func(uri string) { got = append(got, uri) },
		})
		if (err != nil) != test.fails {
			t.Errorf("%s: %v", test.tool, err)
		}
		if len(got) != test.count || test.want != nil && !slices.Equal(got, test.want) {
			t.Errorf("%s %.60s: %d updates %.300s, want %d %q", test.tool, arguments, len(got), fmt.Sprint(got),
				test.count, test.want)
		}
		if warned := strings.Count(records.String(), "are not announced") - before; (warned == 1) != test.warned {
			t.Errorf("%s: warned %d times", test.tool, warned)
		}
	}
	if _, err := call(t, plugin, "update", object{"text": "probe://a"}); err != nil {
		t.Errorf("without a listener: %v", err)
	}
	if bytes.Contains([]byte(records.String()), []byte("xxxx")) {
		t.Error("the log contains text of the guest")
	}
}
