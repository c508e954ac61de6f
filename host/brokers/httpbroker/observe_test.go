package httpbroker

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/pdk/abi"
)

func TestObserveAndLog(t *testing.T) {
	t.Parallel()
	var seen []Observation
	var log bytes.Buffer
	s, b := newOrigin(t, &Options{Observe: func(o Observation) { seen = append(seen, o) },
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))},
		"Cache-Control: max-age=60")
	mustGet(t, b, "https://a.test/x?token=hush")
	mustGet(t, b, "https://a.test/x?token=hush")
	_, _ = get(t, b, "https://b.test/x?token=hush")
	network(func(*http.Request) (*http.Response, error) {
		return nil, &outbound.RefusedError{Host: "a.test", Addr: netip.MustParseAddr("10.0.0.1"),
			Kind: "a private", Need: address.Private}
	}).under(b)
	_, _ = do(t, b, &abi.HTTPRequest{Method: "POST", URL: "https://a.test/x",
		Headers: map[string][]string{"Authorization": {"hush"}}}, "hush")
	want := []Observation{
		{Rule: "test", Status: 200, Source: SourceNetwork, Tries: 1, Bytes: 8},
		{Rule: "test", Status: 200, Source: SourceCache, Bytes: 8},
		{Code: abi.CodeNotGranted},
		{Rule: "test", Code: abi.CodeNotGranted, Tries: 1},
	}
	if len(seen) != len(want) || len(s.asked) != 1 {
		t.Fatalf("%d observations, %d requests", len(seen), len(s.asked))
	}
	for i, o := range seen {
		if o.Duration <= 0 {
			t.Errorf("observation %d has no duration", i)
		}
		if o.Duration = 0; o != want[i] {
			t.Errorf("observation %d: %+v, want %+v", i, o, want[i])
		}
	}
	text := log.String()
	if strings.Contains(text, "hush") || strings.Count(text, "\n") != 4 {
		t.Errorf("log: %s", text)
	}
	for _, w := range []string{"plugin=weather", "url=https://a.test/x ",
		"level=WARN msg=\"http address refused\"", "address=10.0.0.1"} {
		if !strings.Contains(text, w) {
			t.Errorf("log lacks %s: %s", w, text)
		}
	}
}
