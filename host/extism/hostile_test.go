package extism_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
)

// TestHostile runs every attack of the guest on the host, each followed by a call that must not be affected.
func TestHostile(t *testing.T) {
	t.Parallel()
	const timeout = 500 * time.Millisecond
	plugin := load(t, setup{wasm: second(t, guest(t)),
		spec: sandbox.Spec{Limits: manifest.Limits{Memory: 32 << 20, Output: 1 << 20}}})
	for name, test := range map[string]struct {
		arguments object
		limit     string // of the *limit.Error; empty means a *catalog.GuestError
		want      string
	}{
		"loop":    {nil, limit.Time, "500ms"},
		"recurse": {nil, limit.Time, "500ms"},
		"flood":   {nil, limit.Time, "500ms"},
		"sleep":   {nil, limit.Time, "500ms"},
		"memory":  {nil, limit.Memory, "32 MiB"},
		"blocks":  {nil, limit.Memory, "32 MiB"},
		"big":     {object{"n": 2 << 20}, limit.Output, "1 MiB"},
		"corrupt": {nil, "", "stopped: store_u64: offset "}, // the offset depends on the length of the input
		"wild":    {object{"n": 1 << 40}, "", "load_u64: offset 1099511627776 is in no block"},
		"trap":    {nil, "", "stopped: wasm error: unreachable"},
		"exit":    {nil, "", "exited with code 3"},
		"raw":     {object{"text": "no JSON"}, "", "unexpected JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			var limits manifest.Limits
			if test.limit == limit.Time {
				limits.Time = timeout
			}
			_, err := limitedCall(t, plugin, name, test.arguments, limits)
			t.Logf("over after %v", time.Since(started))
			var passed *limit.Error
			var broken *catalog.GuestError
			switch {
			case test.limit != "" && (!errors.As(err, &passed) || passed.Limit != test.limit):
				t.Errorf("want the limit %s, got %v", test.limit, err)
			case test.limit == "" && !errors.As(err, &broken):
				t.Errorf("want a guest's error, got %v", err)
			}
			wants(t, err, "plugin guest", test.want)
			if got := text(t, plugin, "count", nil); got != "1 1 1" {
				t.Errorf("the next call finds %s", got)
			}
		})
	}
}

// TestFreedBlocksAreReused allocates more blocks in total than the limit allows at once.
func TestFreedBlocksAreReused(t *testing.T) {
	t.Parallel()
	plugin := load(t, setup{wasm: guest(t), spec: sandbox.Spec{Limits: manifest.Limits{Memory: 32 << 20}}})
	if got := text(t, plugin, "churn", object{"n": 200}); got != "churned" {
		t.Errorf("%s", got)
	}
}

// TestGoGuestLivesWithinLimit lets a Go guest make garbage of several times its memory limit.
func TestGoGuestLivesWithinLimit(t *testing.T) {
	t.Parallel()
	plugin := load(t, setup{wasm: guest(t), spec: sandbox.Spec{Limits: manifest.Limits{Memory: 40 << 20, CPU: 1 << 50}}})
	if got := text(t, plugin, "waste", object{"n": 256}); got == "0" {
		t.Error("the guest has not collected its garbage")
	}
}

// TestHostileAnswers returns invalid responses.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	plugin := load(t, setup{wasm: guest(t)})
	deep := strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	for name, answer := range map[string]string{
		"nothing":               ``,
		"a list":                `[]`,
		"deep":                  `{"content":[],"structuredContent":` + deep + `}`,
		"content of texts":      `{"content":["hi"]}`,
		"no type":               `{"content":[{}]}`,
		"two meanings":          `{"content":[{"text":"a","uri":"b","name":"c"}]}`,
		"data of unknown kind":  `{"content":[{"data":"AQI=","mimeType":"application/pdf"}]}`,
		"unknown type":          `{"content":[{"type":"video","data":"AQI="}]}`,
		"no text":               `{"content":[{"type":"text"}]}`,
		"bad base64":            `{"content":[{"type":"image","data":"@","mimeType":"image/png"}]}`,
		"no media type":         `{"content":[{"type":"image","data":"AQI="}]}`,
		"link without name":     `{"content":[{"type":"resource_link","uri":"a:b"}]}`,
		"resource without URI":  `{"content":[{"type":"resource","resource":{"text":"x"}}]}`,
		"resource of nothing":   `{"content":[{"type":"resource"}]}`,
		"priority":              `{"content":[{"type":"text","text":"a","annotations":{"priority":7}}]}`,
		"structured text":       `{"content":[],"structuredContent":"x"}`,
		"structured list":       `{"content":[],"structuredContent":[1]}`,
		"a key twice":           `{"content":[],"isError":true,"isError":false}`,
		"error flag of another": `{"content":[],"isError":"yes"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response, err := call(t, plugin, "raw", object{"text": answer})
			var broken *catalog.GuestError
			if !errors.As(err, &broken) {
				t.Errorf("%+v, %v", response, err)
			}
		})
	}
}
