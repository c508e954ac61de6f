package mcpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/pdk/abi"
)

// TestOddTools: what breaks a rule is left out or made safe, by itself and with a reason.
func TestOddTools(t *testing.T) {
	t.Parallel()
	r := newRig(t, child("odd", "odd"))
	long := strings.Repeat("long", 30)
	var short []string
	for _, name := range r.tools() {
		if len(name) > 64 {
			t.Errorf("%s has %d characters", name, len(name))
		}
		if strings.HasPrefix(name, "odd_long") {
			short = append(short, name)
		}
	}
	if len(short) != 2 || short[0] == short[1] || strings.HasPrefix(short[0], "odd_"+long) {
		t.Errorf("the long names became %v", short)
	}
	rest := slices.DeleteFunc(r.tools(), func(n string) bool { return slices.Contains(short, n) })
	want := []string{"odd_a_b", "odd_a_b_2e1a2d5b", "odd_c_d", "odd_draft7", "odd_good", "odd_hidden", "odd_mute",
		"odd_output", "odd_wordy"}
	if len(rest) != len(want) || !strings.HasPrefix(rest[1], "odd_a_b_") {
		t.Fatalf("tools are %v, want some as %v", rest, want)
	}
	hidden, _ := r.catalog.View().Tool("odd_hidden")
	if got := hidden.Spec.Description.In("en"); got != "seethis text" || hidden.Spec.Title.In("en") != "two lines" {
		t.Errorf("got %q, %q", got, hidden.Spec.Title)
	}
	if output, _ := r.catalog.View().Tool("odd_output"); output.Spec.OutputSchema != nil {
		t.Errorf("output schema is %s", output.Spec.OutputSchema)
	}
	if wordy, _ := r.catalog.View().Tool("odd_wordy"); len(wordy.Spec.Description.In("en")) > 17_000 {
		t.Error("a long description was not cut")
	}
	for _, what := range []string{`tool "good": it has no name, or that of another`, `tool "list": the schema is not an object`, `tool "wrong": inputSchema`, `tool "broken": inputSchema`, `tool "fetch": inputSchema`, `output schema of tool "output"`} {
		if !slices.ContainsFunc(r.status("odd").Omitted, func(o string) bool { return strings.HasPrefix(o, what) }) {
			t.Errorf("%s is not in %q", what, r.status("odd").Omitted)
		}
	}
	if got := text(r.call(rest[1], "{}")); got != "ok" {
		t.Errorf("got %q", got)
	}
}

// TestLongLists: lists without end are cut.
func TestLongLists(t *testing.T) {
	t.Parallel()
	r := newRig(t, child("pages", "pages"), child("crowd", "crowd"))
	for name, most := range map[string]int{"pages": 64, "crowd": 256} {
		if s := r.status(name); s.State != mcpclient.Up || s.Tools != most || len(s.Omitted) == 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestFlood: a server that sends notifications without end holds up itself and nobody else.
func TestFlood(t *testing.T) {
	t.Parallel()
	began := time.Now()
	r := newRig(t, child("flood", "flood"), child("plain", "plain"))
	r.eventually("the flood", func() bool { return strings.Count(r.log.String(), "where=log") > 10 })
	for range 20 {
		if got := text(r.call("plain_echo", `{"text":"calm"}`)); got != "calm" {
			t.Fatalf("got %q", got)
		}
	}
	n := strings.Count(r.log.String(), "where=log")
	if most := mcpclient.LogBurst + mcpclient.LogRate*(1+time.Since(began).Seconds()); float64(n) > most {
		t.Errorf("%d lines in the log, want %.0f at most", n, most)
	}
}

// TestNoise: what a program writes in the place of messages is logged, marked and bounded, and the messages arrive.
func TestNoise(t *testing.T) {
	t.Parallel()
	r := newRig(t, child("noisy", "noisy"))
	if got := text(r.call("noisy_echo", `{"text":"clear"}`)); got != "clear" {
		t.Errorf("got %q", got)
	}
	log := r.log.String()
	for _, want := range []string{"Server listening!", "{not JSON", "noise on standard error"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in the log", want)
		}
	}
	if strings.Contains(log, strings.Repeat("y", 2100)) || strings.Contains(log, "\x1b") {
		t.Error("a line of the log is too long or holds control characters")
	}
}

// TestLargeResults: a result beyond the limit is an error that says so, and takes nothing else with it.
func TestLargeResults(t *testing.T) {
	t.Parallel()
	spec := child("plain", "plain")
	spec.Limits = manifest.Limits{Output: 1 << 20, Input: 1 << 10}
	r := newRig(t, spec)
	pid := text(r.call("plain_pid", "{}"))
	for _, bytes := range []string{"1200000", "20000000"} {
		got := r.call("plain_big", `{"bytes":`+bytes+`}`)
		if got.Outcome != pipeline.Size || !strings.Contains(text(got), "larger than 1 MiB") {
			t.Errorf("%s bytes: %s %.100q", bytes, got.Outcome, text(got))
		}
	}
	if got := r.call("plain_echo", `{"text":"`+strings.Repeat("x", 2000)+`"}`); got.Outcome != pipeline.Size ||
		!strings.Contains(text(got), "arguments") {
		t.Errorf("got %s %.100q", got.Outcome, text(got))
	}
	if got := len(text(r.call("plain_big", `{"bytes":1000000}`))); got != 1_000_000 {
		t.Errorf("got %d bytes", got)
	}
	if got := text(r.call("plain_pid", "{}")); got != pid {
		t.Errorf("the server was started again: %s, then %s", pid, got)
	}
}

// TestTimeAndCancel: a call ends at its limit or with its caller, and the server is told.
func TestTimeAndCancel(t *testing.T) {
	t.Parallel()
	spec := child("plain", "plain")
	spec.Limits.Time = 100 * time.Millisecond
	patient := child("patient", "plain")
	r := newRig(t, spec, patient)
	heard := func(server, what string) bool {
		for line := range strings.Lines(r.log.String()) {
			if strings.Contains(line, "upstream="+server) && strings.Contains(line, what) {
				return true
			}
		}
		return false
	}
	// On a busy machine the limit can end a call before the server has seen it.
	r.eventually("the server to hear of it", func() bool {
		if got := r.call("plain_hang", "{}"); got.Outcome != pipeline.Timeout ||
			!strings.Contains(text(got), "within 100ms") {
			t.Fatalf("got %s %q", got.Outcome, text(got))
		}
		return heard("plain", "hang was cancelled")
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		r.eventually("the call to arrive", func() bool { return heard("patient", "hang begins") })
		cancel()
	}()
	_, err := r.pipeline.Call(ctx, &pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: "patient_hang"}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	r.eventually("that server to hear of it", func() bool { return heard("patient", "hang was cancelled") })
}

// TestProgress: reports reach the caller in their order.
func TestProgress(t *testing.T) {
	t.Parallel()
	r := newRig(t, child("plain", "plain"))
	var seen []abi.Progress
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	_, err := r.pipeline.Call(ctx, &pipeline.Call{
		Request: abi.Request{Method: abi.CallTool, Name: "plain_progress"},
		Progress: func(p abi.Progress) {
			if seen = append(seen, p); len(seen) == 3 {
				enough()
			}
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for i, p := range seen {
		if p.Message != "step" || i > 0 && p.Progress <= seen[i-1].Progress {
			t.Errorf("report %d is %+v", i, p)
		}
	}
}

// TestQuestionsAreDeclined: a server that does not ask whether it may ask gets an error, where the operator declines
// questions.
func TestQuestionsAreDeclined(t *testing.T) {
	t.Parallel()
	spec := child("plain", "plain")
	spec.ProtocolVersion, spec.Elicitation = "2025-11-25", mcpclient.ElicitationDecline
	r := newRig(t, spec)
	if got := text(r.call("plain_ask", "{}")); !strings.Contains(got, "not support") {
		t.Errorf("got %q", got)
	}
}

// TestAnnotations: what a server says of its tools reaches clients, and decides nothing unless the operator trusts it.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	trusted := child("trusted", "claims")
	trusted.TrustAnnotations = true
	r := newRig(t, child("claims", "claims"), trusted)
	view := r.catalog.View()
	doubted, _ := view.Tool("claims_wipe")
	if reads := doubted.Spec.Annotations.ReadOnlyHint; reads == nil || !*reads ||
		doubted.Spec.Annotations.DestructiveHint != nil || doubted.Spec.Title.In("en") != "Wipe" {
		t.Errorf("clients are shown %+v", doubted.Spec)
	}
	if hints, _ := json.Marshal(doubted.Hints()); string(hints) != `{"ReadOnlyHint":null,"DestructiveHint":null,"IdempotentHint":null,"OpenWorldHint":null}` {
		t.Errorf("hints are %s", hints)
	}
	believed, _ := view.Tool("trusted_wipe")
	if reads := believed.Hints().ReadOnlyHint; reads == nil || !*reads {
		t.Errorf("hints are %+v", believed.Hints())
	}
}

// TestNullArgument: null in place of a prompt's argument is passed over.
func TestNullArgument(t *testing.T) {
	t.Parallel()
	r := newRig(t, child("nulls", "nulls"))
	if prompts := r.catalog.View().Prompts; len(prompts) != 1 || len(prompts[0].Spec.Arguments) != 0 {
		t.Errorf("prompts are %+v", prompts)
	}
}
