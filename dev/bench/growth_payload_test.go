package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// growPayload measures calls over MCP HTTP with text of many sizes in and out, one caller after the other.
func (r *results) growPayload(t *testing.T) {
	url := sandboxed(t, t.TempDir(), echoPlugin(t, "echo", "echo"))
	// The guest is interpreted until it is compiled.
	load(t, url, protocolVersions[0], 1, "echo", `{"text":"warm"}`, "warm", 3*time.Second)
	client := connect(t, url, protocolVersions[0])
	for _, kib := range []int{1, 4, 16, 64, 256, 1024, 4095} { // a message has at most 4 MiB
		arguments := fmt.Sprintf(`{"text":%q}`, strings.Repeat("sixteen letters ", kib*64))
		body := client.Body("echo", arguments)
		call := func() error { return client.Call(t.Context(), "echo", body, "sixteen") }
		if err := call(); err != nil {
			t.Fatal(err)
		}
		r.addPoint(t, "payload", kib, "call_ms", ms(perRun(t, 20, call)), "ms")
	}
}
