package pipeline_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/results"
	"github.com/hako-run/hako/host/govern/secretscan"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// TestKept: a result over the caller's limit is kept with its secrets masked, for this user and token only; the record
// has the size of the whole.
func TestKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	k := results.New(nil)
	if err := k.Offer(f.catalog); err != nil {
		t.Fatal(err)
	}
	scanner, err := secretscan.New(new(secretscan.Rules))
	if err != nil {
		t.Fatal(err)
	}
	p := pipeline.New(f.catalog, &pipeline.Options{Results: k, Observer: &f.observer,
		Governance: pipeline.Governance{Scanner: func() *secretscan.Scanner { return scanner }}})
	const secret = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
	body := strings.Repeat("line\n", 2000) + secret
	f.backend.answer = func() (*abi.Response, error) { return text(body), nil }

	caller := pipeline.Caller{Frontend: pipeline.FrontendHTTP, Tenant: "acme", User: "aki", Token: "ci", SessionSecret: "s1"}
	call := func(c pipeline.Caller, maxResult int, name, arguments string) *abi.Response {
		t.Helper()
		result, err := p.Call(t.Context(), &pipeline.Call{Caller: c, MaxResult: maxResult,
			Request: abi.Request{Method: abi.CallTool, Name: name, Arguments: json.RawMessage(arguments)}})
		if err != nil {
			t.Fatal(err)
		}
		return result.Response
	}
	whole := call(caller, 0, "p_free", `{"n":1}`)
	if len(whole.Content) != 1 || strings.Contains(whole.Content[0].Text, secret) || len(whole.Content[0].Text) < 10_000 {
		t.Fatalf("without a limit: %d blocks", len(whole.Content))
	}
	short := call(caller, 4<<10, "p_free", `{"n":1}`)
	if len(short.Content) != 2 || short.Content[1].Type != abi.ResourceLink || short.IsError {
		t.Fatalf("%+v", short.Content)
	}
	if f.observer.last.Output != len(whole.Content[0].Text) || f.observer.last.Caller.SessionSecret != "" {
		t.Errorf("recorded %d bytes for %+v", f.observer.last.Output, f.observer.last.Caller)
	}
	query := `{"id":"` + short.Content[1].URI + `"}`
	if got := call(caller, 0, results.Tool, query); got.Content[0].Text != whole.Content[0].Text {
		t.Errorf("kept %d bytes", len(got.Content[0].Text))
	}
	another := caller
	if another.SessionSecret = "s2"; call(another, 0, results.Tool, query).IsError {
		t.Error("the same user cannot read it in another session")
	}
	for name, change := range map[string]func(*pipeline.Caller){
		"user":     func(c *pipeline.Caller) { c.User = "ben" },
		"tenant":   func(c *pipeline.Caller) { c.Tenant = "other" },
		"token":    func(c *pipeline.Caller) { c.Token = "" },
		"frontend": func(c *pipeline.Caller) { c.Frontend = pipeline.FrontendSlack },
		"nobody":   func(c *pipeline.Caller) { *c = pipeline.Caller{Frontend: c.Frontend, SessionSecret: "s1"} },
	} {
		other := caller
		if change(&other); !call(other, 0, results.Tool, query).IsError {
			t.Errorf("another %s reads it", name)
		}
	}
}
