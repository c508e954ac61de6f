package extism_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/sandbox"
)

// TestPanicIsOneRecord checks that the panic of a Go program, which it prints line by line, is one record of the log.
func TestPanicIsOneRecord(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	plugin := load(t, setup{wasm: guest(t),
		options: sandbox.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))}})
	if _, err := call(t, plugin, "trap", nil); err == nil {
		t.Fatal("no error")
	}
	var found []string
	for line := range strings.Lines(log.String()) {
		var record struct{ Msg, Stack, Tool string }
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		if record.Tool == "trap" && record.Msg != sandbox.StoppedMessage {
			found = append(found, record.Msg+"\n"+record.Stack)
		}
	}
	if len(found) != 1 || !strings.HasPrefix(found[0], "panic: broken\ngoroutine 1 [running]:\n  at main.") {
		t.Errorf("%d records:\n%s", len(found), strings.Join(found, "\n---\n"))
	}
}
