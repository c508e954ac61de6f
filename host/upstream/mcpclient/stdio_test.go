package mcpclient_test

import (
	"encoding/json"
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
