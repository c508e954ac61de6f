package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/managedagents"
	"github.com/hako-run/hako/host/secret"
)

// press is a Publisher, and the fake that it writes to.
type press struct {
	*Publisher
	t    *testing.T
	fake *managedagents.Server
	// before, if not nil, is called before each request.
	before func(*http.Request)
}

func newPress(t *testing.T) *press {
	t.Helper()
	p := &press{t: t, fake: &managedagents.Server{Key: key}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.before != nil {
			p.before(r)
		}
		p.fake.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.Publisher, err = NewPublisher(Spec{Key: secret.Source{File: path}, BaseURL: server.URL}, nil); err != nil {
		t.Fatal(err)
	}
	p.retry = time.Millisecond
	return p
}

// others change the agent behind hako's back.
func (p *press) others(body string) {
	p.t.Helper()
	if err := p.fake.Change(managedagents.DefaultAgent, body); err != nil {
		p.t.Fatal(err)
	}
}

func (p *press) plan(tools []Definition, adopt bool) *Plan {
	p.t.Helper()
	plan, err := p.Plan(p.t.Context(), managedagents.DefaultAgent, tools, adopt)
	if err != nil {
		p.t.Fatal(err)
	}
	return plan
}

// apply gives the agent tools, and returns the version that it has then.
func (p *press) apply(tools ...Definition) int64 {
	p.t.Helper()
	version, err := p.Apply(p.t.Context(), p.plan(tools, false))
	if err != nil {
		p.t.Fatal(err)
	}
	return version
}

// has are the agent's tools, in their order.
func (p *press) has() (names []string) {
	for _, tool := range p.fake.Agent(managedagents.DefaultAgent)["tools"].([]any) {
		raw, err := json.Marshal(tool)
		if err != nil {
			p.t.Fatal(err)
		}
		names = append(names, label(string(raw)))
	}
	return names
}

func define(name, description string, properties ...string) Definition {
	list := make([]string, len(properties))
	for i, property := range properties {
		list[i] = fmt.Sprintf("%q:{\"type\":\"string\"}", property)
	}
	schema := `{"type":"object","properties":{` + strings.Join(list, ",") + `},"additionalProperties":false}`
	return Definition{customType, name, description, json.RawMessage(schema)}
}

func changes(p *Plan) (list []string) {
	for _, c := range p.Changes {
		list = append(list, c.Text())
	}
	return list
}

const foreign = `{"mcp_servers":[{"type":"url","name":"docs","url":"https://docs.example/mcp"}],"tools":[
	{"type":"agent_toolset_20260401","configs":[{"name":"bash","enabled":false}]},
	{"type":"custom","name":"theirs","description":"Not hako's.","input_schema":{"type":"object"}},
	{"type":"mcp_toolset","mcp_server_name":"docs"}],"metadata":{"team":"approvals"}}`

// TestPublish adds, changes and removes tools among those of others, which stay as they are.
func TestPublish(t *testing.T) {
	t.Parallel()
	p := newPress(t)
	p.others(foreign)
	before := p.fake.Agent(managedagents.DefaultAgent)["tools"].([]any)
	plan := p.plan([]Definition{define("a", "A.", "x"), define("b", "B.")}, false)
	if got, want := changes(plan), []string{"+ a", "+ b"}; !slices.Equal(got, want) || plan.Empty() ||
		plan.Version != 2 {
		t.Errorf("version %d: %q", plan.Version, got)
	}
	if want := []string{"agent_toolset_20260401", "theirs", "the MCP server docs"}; !slices.Equal(plan.Kept, want) {
		t.Errorf("kept are %q", plan.Kept)
	}
	if version := p.apply(define("a", "A.", "x"), define("b", "B.")); version != 3 {
		t.Errorf("the version is %d", version)
	}
	next := []Definition{define("a", "A.", "x", "y"), define("c", "C.")}
	if got, want := changes(p.plan(next, false)), []string{"~ a (arguments: +y)", "- b", "+ c"}; !slices.Equal(got, want) {
		t.Errorf("the changes are %q", got)
	}
	if version := p.apply(next...); version != 4 {
		t.Errorf("the version is %d", version)
	}
	if got, want := p.has(), []string{"agent_toolset_20260401", "theirs", "the MCP server docs", "a",
		"c"}; !slices.Equal(got, want) {
		t.Errorf("the agent has %q", got)
	}
	agent := p.fake.Agent(managedagents.DefaultAgent)
	if after := agent["tools"].([]any)[:3]; fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("tools of others were\n%v and are\n%v", before, after)
	}
	if metadata := agent["metadata"].(map[string]any); metadata["team"] != "approvals" || agent["name"] != "Fake" {
		t.Errorf("the agent is %v", agent)
	}
	p.before = func(r *http.Request) {
		if r.Method == http.MethodPost {
			t.Error("an update is sent in which nothing changes")
		}
	}
	if version := p.apply(next...); version != 4 || !p.plan(next, false).Empty() {
		t.Errorf("applied again, the version is %d", version)
	}
	p.before = nil
	p.apply()
	if got, want := p.has(), []string{"agent_toolset_20260401", "theirs",
		"the MCP server docs"}; !slices.Equal(got, want) {
		t.Errorf("with no tools the agent has %q", got)
	}
	if metadata := p.fake.Agent(managedagents.DefaultAgent)["metadata"]; fmt.Sprint(metadata) != "map[team:approvals]" {
		t.Errorf("the metadata is %v", metadata)
	}
}

// TestAdopt has custom tools in the agent that are named like hako's.
func TestAdopt(t *testing.T) {
	t.Parallel()
	p := newPress(t)
	same := define("same", "D.")
	p.others(`{"tools":[{"type":"custom","name":"mine","description":"By hand.","input_schema":{"type":"object"}},` +
		string(encode(&same)) + `]}`)
	tools := []Definition{same, define("mine", "By hako.")}
	if _, err := p.Plan(t.Context(), managedagents.DefaultAgent, tools, false); err == nil ||
		!strings.Contains(err.Error(), "named like some that are: mine.") {
		t.Errorf("the error is %v", err)
	}
	plan := p.plan(tools, true)
	if got, want := changes(plan), []string{"~ mine (description)"}; !slices.Equal(got, want) {
		t.Errorf("the changes are %q", got)
	}
	if _, err := p.Apply(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	p.apply()
	if got := p.has(); len(got) != 0 {
		t.Errorf("tools that were adopted stay: %q", got)
	}
}

// TestSameToolsBecomeHakos: an agent that was given the definitions by hand is one that hako goes on with.
func TestSameToolsBecomeHakos(t *testing.T) {
	t.Parallel()
	p := newPress(t)
	d := define("a", "A.", "x")
	p.others(`{"tools":[` + string(encode(&d)) + `]}`)
	if plan := p.plan([]Definition{d}, false); plan.Empty() || len(plan.Changes) > 0 {
		t.Errorf("the plan is %+v", plan)
	}
	p.apply(d)
	if plan := p.plan([]Definition{d}, false); !plan.Empty() {
		t.Errorf("then the plan is %+v", plan)
	}
	if plan := p.plan(nil, false); !slices.Equal(changes(plan), []string{"- a"}) {
		t.Errorf("without it the changes are %q", changes(plan))
	}
}

// TestPublishAgainstOthers has somebody change the agent between the look and the change.
func TestPublishAgainstOthers(t *testing.T) {
	t.Parallel()
	tools := []Definition{define("a", "A.")}
	for name, test := range map[string]struct {
		meanwhile string
		want      error
		version   int64
	}{
		"something else": {`{"system":"s"}`, nil, 3},
		"a tool of theirs": {
			`{"tools":[{"type":"custom","name":"theirs","description":"d","input_schema":{"type":"object"}}]}`, nil, 3},
		"the same tool": {`{"tools":[` + string(encode(&tools[0])) + `],"metadata":{"hako_tools_1":"` +
			markOf("a") + `"}}`, nil, 2},
		"what was agreed to add": {
			`{"tools":[{"type":"custom","name":"a","description":"Old.","input_schema":{"type":"object"}}],"metadata":{"hako_tools_1":"` + markOf("a") + `"}}`, ErrChanged, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPress(t)
			plan := p.plan(tools, false)
			p.others(test.meanwhile)
			version, err := p.Apply(t.Context(), plan)
			if !errors.Is(err, test.want) || version != test.version {
				t.Fatalf("Apply returned %d, %v", version, err)
			}
			if test.want == nil && !slices.Contains(p.has(), "a") {
				t.Errorf("the agent has %q", p.has())
			}
			if strings.Contains(test.meanwhile, "theirs") && !slices.Contains(p.has(), "theirs") {
				t.Errorf("the agent has %q", p.has())
			}
		})
	}
}

// TestPublishRefused has the API refuse a change, with no word of a conflict: it is made again if there was one.
func TestPublishRefused(t *testing.T) {
	t.Parallel()
	for _, changed := range []bool{true, false} {
		p := newPress(t)
		p.fake.Faults.Add(fault.Fault{Method: "POST", Status: 400, Times: 1})
		plan := p.plan([]Definition{define("a", "A.")}, false)
		if changed {
			p.others(`{"system":"s"}`)
		}
		if _, err := p.Apply(t.Context(), plan); (err == nil) != changed || err != nil && !errors.Is(err, Refused) {
			t.Errorf("changed %t: Apply returned %v", changed, err)
		}
	}
}

// TestPublishForever changes the agent before each request: hako gives up.
func TestPublishForever(t *testing.T) {
	t.Parallel()
	p := newPress(t)
	plan := p.plan([]Definition{define("a", "A.")}, false)
	var n atomic.Int32
	p.before = func(r *http.Request) {
		if r.Method == http.MethodPost {
			p.others(fmt.Sprintf(`{"system":"%d"}`, n.Add(1)))
		}
	}
	var e *Error
	if _, err := p.Apply(t.Context(), plan); !errors.As(err, &e) || e.Status != http.StatusConflict ||
		n.Load() != publishTries {
		t.Errorf("after %d times Apply returned %v", n.Load(), err)
	}
}

// TestPublishOverFailures has requests fail: the change is made once.
func TestPublishOverFailures(t *testing.T) {
	t.Parallel()
	path := "/v1/agents/" + managedagents.DefaultAgent
	for name, faults := range map[string][]fault.Fault{
		"overload": {{Path: path, Status: 529, Times: 3}},
		"a rate limit": {{Path: path, Method: "POST", Status: 429,
			Header: http.Header{"Retry-After": {"0.02"}}, Times: 2}},
		"connections that break":     {{Path: path, Drop: true, Times: 3}},
		"a receipt that is lost":     {{Path: path, Method: "POST", After: true, Drop: true, Times: 1}},
		"a receipt that is an error": {{Path: path, Method: "POST", After: true, Status: 500, Times: 1}},
		"an answer that is cut off":  {{Path: path, Method: "POST", Truncate: true, Times: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPress(t)
			for _, f := range faults {
				p.fake.Faults.Add(f)
			}
			if version := p.apply(define("a", "A.")); version != 2 ||
				p.fake.Agent(managedagents.DefaultAgent)["version"] != 2. {
				t.Errorf("the version is %d", version)
			}
		})
	}
}

func TestPublishProblems(t *testing.T) {
	t.Parallel()
	many := make([]Definition, 200)
	for i := range many {
		many[i] = define(fmt.Sprintf("tool%d", i), "D.")
	}
	theirs := make([]string, 100)
	for i := range theirs {
		theirs[i] = fmt.Sprintf(`{"type":"custom","name":"their%d","description":"d","input_schema":{"type":"object"}}`,
			i)
	}
	keys := make([]string, maxMetadata)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":"v"`, i)
	}
	fits := []Definition{define("a", "A.")}
	for name, test := range map[string]struct {
		agent, others string
		tools         []Definition
		want          string
	}{
		"no ID":          {"../x", "", fits, "is not an agent ID"},
		"no such agent":  {"agent_9", "", fits, "there is no such session, agent or environment"},
		"a name":         {"", "", []Definition{define("a.b", "A.")}, `tool "a.b": a name has letters`},
		"a long name":    {"", "", []Definition{define(strings.Repeat("a", 129), "A.")}, "at most 128 of them"},
		"no description": {"", "", []Definition{define("a", "")}, "tool a: it has no description"},
		"a description": {"", "", []Definition{define("a", strings.Repeat("a", maxDescription+1))},
			"tool a: its description has 16385 bytes"},
		"a schema": {"", "", []Definition{define("a", "A.", strings.Repeat("a", maxSchema))},
			"tool a: its schema has"},
		"no object": {"", "", []Definition{{customType, "a", "A.", json.RawMessage(`{"type":"string"}`)}},
			"does not describe an object"},
		"no JSON": {"", "", []Definition{{customType, "a", "A.", json.RawMessage(`{`)}},
			"does not describe an object"},
		"two of a name": {"", "", []Definition{define("a", "A."), define("a", "B.")}, "there are two of that name"},
		"all of it": {"", "", []Definition{define("a", ""), define("b.", "B.")},
			"description, which agents choose tools by: write one\ntool \"b.\""},
		"too many": {"", `{"tools":[` + strings.Join(theirs, ",") + `]}`, many,
			"would have 300 tools, 100 of them not hako's, and takes 256"},
		"too much": {"", "", slices.Repeat([]Definition{define("a", strings.Repeat("a", maxDescription))}, 40),
			"bytes together"},
		"no room": {"", `{"metadata":{` + strings.Join(keys, ",") + `}}`, fits, "metadata has no room"},
		"what the API says": {"", "", []Definition{define("a", "A.", "場所")},
			"the API rejects the request (HTTP status 400): tools.0.input_schema.properties: Property keys"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPress(t)
			if test.others != "" {
				p.others(test.others)
			}
			if test.agent == "" {
				test.agent = managedagents.DefaultAgent
			}
			plan, err := p.Plan(t.Context(), test.agent, test.tools, false)
			if err == nil {
				_, err = p.Apply(t.Context(), plan)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, and it should have %s", err, test.want)
			}
		})
	}
}

func TestPublishToAnArchivedAgent(t *testing.T) {
	t.Parallel()
	p := newPress(t)
	d := []Definition{define("a", "A.")}
	plan := p.plan(d, false)
	if err := p.fake.Archive(managedagents.DefaultAgent); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply(t.Context(), plan); err == nil ||
		!strings.Contains(err.Error(), "is archived, and cannot be changed") {
		t.Errorf("Apply returned %v", err)
	}
}

func TestPublisherNeedsAKey(t *testing.T) {
	t.Parallel()
	if _, err := NewPublisher(Spec{}, nil); err == nil || !strings.Contains(err.Error(), "key") {
		t.Errorf("the error is %v", err)
	}
	p := newPress(t)
	p.fake.Key = "another"
	if _, err := p.Plan(t.Context(), managedagents.DefaultAgent, nil, false); !errors.Is(err, Auth) {
		t.Errorf("the error is %v", err)
	}
}

// TestSameArgumentsAnotherWay names an argument that has become required, and one of another type.
func TestSameArgumentsAnotherWay(t *testing.T) {
	t.Parallel()
	old, next := define("a", "A.", "x", "y", "z"), define("a", "A.", "x", "y", "z")
	next.InputSchema = json.RawMessage(strings.Replace(strings.Replace(string(next.InputSchema),
		`"y":{"type":"string"}`,
		`"y":{"type":"integer"}`, 1), `"type":"object"`, `"type":"object","required":["x"]`, 1))
	if got := (Change{Old: &old, New: &next}).Text(); got != "~ a (arguments: ~x ~y)" {
		t.Errorf("the change is %q", got)
	}
}

// TestMarks checks that the notes of as many tools as an agent takes fit into its metadata, and that nothing else in
// there is taken for one.
func TestMarks(t *testing.T) {
	t.Parallel()
	names := make([]string, MaxTools)
	for i := range names {
		names[i] = fmt.Sprintf("tool%d", i)
	}
	marks := marksOf(names)
	if len(marks) != 4 {
		t.Errorf("there are %d keys", len(marks))
	}
	for key, value := range marks {
		if len(value) > 512 || len(key) > 64 {
			t.Errorf("%s has %d characters", key, len(value))
		}
	}
	own := marked(marks)
	for _, name := range names {
		if !own(name) {
			t.Errorf("%s is not marked", name)
		}
	}
	if own("tool256") || marked(map[string]string{"k": markOf("a"), "hako_tools_1": "x"})("a") {
		t.Error("what is not marked is taken for marked")
	}
}

// TestSameAs goes through what the API may make of a definition, and what is another one.
func TestSameAs(t *testing.T) {
	t.Parallel()
	wanted := Definition{customType, "a", "A.",
		json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer"}},"required":[],"additionalProperties":false}`)}
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"x":{"type":"integer"}},"required":[],"additionalProperties":false}`: true,
		`{"required":null,"properties":{"x":{"type":"integer"}},"type":"object"}`:                            true,
		`{"type":"object","properties":{"x":{"type":"string"}}}`:                                             false,
		`{"type":"object"}`: false,
		`{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}`:                               false,
		`{"type":"object","properties":{"x":{"type":"integer"}},"additionalProperties":true}`:                    false,
		`{"type":"object","properties":{"x":{"type":"integer"}},"minProperties":1,"additionalProperties":false}`: false,
		`null`: false,
	} {
		shown := Definition{customType, "a", "A.", json.RawMessage(schema)}
		if shown.sameAs(&wanted) != want {
			t.Errorf("%s is taken for %t", schema, !want)
		}
	}
}
