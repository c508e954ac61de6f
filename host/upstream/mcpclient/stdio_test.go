package mcpclient_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/pdk/abi"
)

// TestAC4ConnectsAndListsTools: a server is connected, and its tools are in the catalog with their schemas.
func TestAC4ConnectsAndListsTools(t *testing.T) {
	t.Parallel()
	r := newRig(t, child("plain", "plain"))
	if got := r.tools(); !slices.Contains(got, "plain_echo") {
		t.Fatalf("tools are %v", got)
	}
	tool, _ := r.catalog.View().Tool("plain_echo")
	if got := tool.Spec.Description.In("en"); got != "echo does things." || tool.Source.Name != "plain" ||
		string(tool.Spec.InputSchema) != `{"type":"object"}` {
		t.Errorf("tool is %+v of %+v", tool.Spec, tool.Source)
	}
	if s := r.status("plain"); s.State != mcpclient.Up || s.Tools == 0 || s.Server != "plain" || s.Version != "1.2.3" ||
		s.Protocol == "" || s.Restarts != 0 {
		t.Errorf("status is %+v", s)
	}
}

// TestAC5CallsTool: a call reaches the tool, and the result comes back as it is.
func TestAC5CallsTool(t *testing.T) {
	t.Parallel()
	r := newRig(t, child("plain", "plain"))
	if got := text(r.call("plain_echo", `{"text":"東京"}`)); got != "東京" {
		t.Errorf("got %q", got)
	}
	failed := r.call("plain_fail", "{}")
	if !failed.Response.IsError || text(failed) != "it is broken" || failed.Outcome != pipeline.ToolError {
		t.Errorf("got %+v", failed)
	}
	refused := r.call("plain_refuse", "{}")
	if !refused.Response.IsError || !strings.Contains(text(refused), "no such thing") {
		t.Errorf("got %+v", refused.Response)
	}
	everything := r.call("plain_everything", "{}").Response
	data, err := json.Marshal(everything)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"words"`, `"mimeType":"image/png"`, `"uri":"plain+memo://one"`, `"uri":"https://example.com/"`, `"uri":"plain+memo://two"`, `"structuredContent":{"sum":9007199254740993}`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is not in %s", want, data)
		}
	}
	if image := everything.Content[1]; string(image.Data) != "\x01\x02\x03" {
		t.Errorf("image is %+v", image)
	}
}

// TestResourcesAndPrompts: what else a server has takes the same way.
func TestResourcesAndPrompts(t *testing.T) {
	t.Parallel()
	r := newRig(t, child("plain", "plain"))
	ask := func(request abi.Request) *abi.Response {
		t.Helper()
		result, err := r.pipeline.Call(t.Context(), &pipeline.Call{Request: request})
		if err != nil {
			t.Fatal(err)
		}
		return result.Response
	}
	if got := ask(abi.Request{Method: abi.ReadResource, URI: "plain+memo://one"}).Contents[0]; got.Text != "first memo" || got.URI != "plain+memo://one" {
		t.Errorf("resource is %+v", got)
	}
	if got := ask(abi.Request{Method: abi.ReadResource, URI: "plain+day://monday"}).Contents[0]; got.Text != "day day://monday" {
		t.Errorf("resource of a template is %+v", got)
	}
	if got := ask(abi.Request{Method: abi.GetPrompt, Name: "plain_greet", Arguments: json.RawMessage(`{"name":"Aki"}`)}).Messages[0]; got.Content.Text != "Hello Aki" {
		t.Errorf("message is %+v", got)
	}
	got := ask(abi.Request{Method: abi.Complete, Ref: &abi.Ref{Type: "ref/prompt", Name: "plain_greet"},
		Argument: &abi.Argument{Name: "name", Value: "A"}}).Completion
	if !slices.Equal(got.Values, []string{"greet", "A"}) {
		t.Errorf("completion is %+v", got)
	}
	got = ask(abi.Request{Method: abi.Complete, Ref: &abi.Ref{Type: "ref/resource", URI: "plain+day://{day}"},
		Argument: &abi.Argument{Name: "day", Value: "m"}}).Completion
	if !slices.Equal(got.Values, []string{"day://{day}", "m"}) {
		t.Errorf("completion is %+v", got)
	}
}

// TestCleanEnvironment: a program gets PATH, HOME and the like, what its entry names, and nothing else of the host's.
func TestCleanEnvironment(t *testing.T) {
	t.Parallel()
	spec := child("plain", "plain")
	spec.Env = merged(spec.Env, map[string]mcpclient.Value{"GIVEN": {Text: "a ${LOCAL} b"},
		"OTHER": {Text: "${UNSET:-default}"}})
	var dir string
	r := newRigWith(t, func(o *mcpclient.Options) {
		dir = o.Dir
		o.Environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=/home/aki", "LOCAL=value",
			"SLACK_BOT_TOKEN=xoxb-secret", "HAKO_STORE_KEY=secret"}
	}, spec)
	lines := strings.Split(text(r.call("plain_environment", "{}")), "\n")
	slices.Sort(lines)
	want := []string{"GIVEN=a value b", asServer + "=plain", "HOME=/home/aki", "OTHER=default",
		"PATH=" + os.Getenv("PATH"), "PWD " + dir}
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "PWD=") })
	if !slices.Equal(lines, want) {
		t.Errorf("the program has %q, want %q", lines, want)
	}
}

// TestBadResponses: what a program writes in the place of a response is the error of that call, and the call in flight
// beside it goes on.
func TestBadResponses(t *testing.T) {
	t.Parallel()
	spec := child("rude", "rude")
	r := newRig(t, spec)
	slow := make(chan string)
	go func() { slow <- text(r.call("rude_say", `{"text":"slow"}`)) }()
	r.eventually("the slow call", func() bool { return strings.Contains(r.log.String(), "slow begins") })
	for said, want := range map[string]string{
		`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"video"}]}}`:                           `has the type "video"`,
		`{"jsonrpc":"2.0","id":ID,"result":{"content":"plain"}}`:                                      "its content is a text",
		`{"jsonrpc":"2.0","id":ID,"result":{"content":[],"resultType":7}}`:                            `does not have the form of MCP: {"content":[],"resultType":7}`,
		`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"annotations":[]}]}}`:                         "content[0] has no type",
		`{"jsonrpc":"2.0","id":ID,"error":"no"}`:                                                      `"no"`,
		`{"id":ID,"result":{"content":[]}}`:                                                           `"jsonrpc": "2.0"`,
		`{"jsonrpc":"2.0","id":ID,"result":{"content":[],"x":Infinity}}`:                              "not valid JSON",
		`working ...{"jsonrpc":"2.0","id":"ID","result":{"content":[{"type":"text","text":"fine"}]}}`: "fine",
	} {
		arguments, _ := json.Marshal(map[string]string{"text": said})
		if got := text(r.call("rude_say", string(arguments))); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", said, got, want)
		}
	}
	go func() {
		_, _ = r.pipeline.Call(t.Context(), &pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: "rude_say",
			Arguments: json.RawMessage(`{"text":"end"}`)}})
	}()
	if got := <-slow; got != "slow done" {
		t.Errorf("the call beside them got %q", got)
	}
	if s := r.status("rude"); s.State != mcpclient.Up || s.Restarts != 0 {
		t.Errorf("status is %+v", s)
	}
}

// TestFailingLists: a list that is announced and fails does not cost the others.
func TestFailingLists(t *testing.T) {
	t.Parallel()
	tests := []struct{ failing, want string }{
		{"prompts -32601", "1 0 2 prompts: the server announces them, but the list failed"},
		{"prompts -32603", "1 0 2 prompts: "},
		{"resources -32601", "1 1 1 resources: "},
		{"resources/templates -32603", "1 1 1 resource templates: "},
		{"resources/templates -32601", "1 1 1 "},
		{"prompts -1,resources -2,resources/templates -3", "1 0 0 prompts: "},
		{"tools -32603", "0 1 2 tools: "},
		{"tools -1,prompts -1,resources -1,resources/templates -32601", "list tools: "},
	}
	var specs []mcpclient.Spec
	for i, test := range tests {
		spec := child(fmt.Sprintf("s%d", i), "lists")
		spec.Env = merged(spec.Env, map[string]mcpclient.Value{asFailing: {Text: test.failing}})
		specs = append(specs, spec)
	}
	r := newRig(t, specs...)
	for i, test := range tests {
		s := r.status(specs[i].Name)
		got := fmt.Sprintf("%d %d %d %s", s.Tools, s.Prompts, s.Resources, strings.Join(s.Omitted, "|"))
		if s.State == mcpclient.Down {
			got = s.Error
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.failing, got, test.want)
		}
	}
}
