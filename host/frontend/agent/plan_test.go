package agent

import (
	"encoding/json"
	"testing"
)

// FuzzPlan plans changes to an agent with whatever tools and metadata: what is not hako's stays, byte for byte, and a
// second plan is empty.
func FuzzPlan(f *testing.F) {
	for _, seed := range []string{
		`{"type":"custom","name":"a","description":"d","input_schema":{"type":"object"}}`,
		`{"type":"custom","name":"a","input_schema":null}`,
		`{"type":"agent_toolset_20260401","configs":[]}`, `{"type":"mcp_toolset","mcp_server_name":"x"}`,
		`{"type":"custom"}`,
		`{}`, `[]`, `{"type":7}`,
	} {
		f.Add(seed, markOf("a"))
		f.Add(seed, "short")
	}
	wanted := []Definition{define("a", "A.", "x"), define("b", "B.")}
	f.Fuzz(func(t *testing.T, raw, mark string) {
		if !json.Valid([]byte(raw)) {
			return // the SDK has read it
		}
		agent := &agentObject{id: "agent_1", version: 1, tools: []string{raw},
			metadata: map[string]string{"hako_tools_1": mark, "k": "v"}}
		first, err := plan(agent, wanted, true)
		if err != nil {
			t.Fatal(err)
		}
		d, custom := readDefinition(raw)
		if own := marked(agent.metadata); (!custom || d.Name != "a" && d.Name != "b" && !own(d.Name)) &&
			string(first.tools[0]) != raw {
			t.Errorf("%s became %s", raw, first.tools[0])
		}
		agent.tools = nil
		for _, tool := range first.tools {
			agent.tools = append(agent.tools, string(tool))
		}
		for key, value := range first.metadata {
			if delete(agent.metadata, key); value != nil {
				agent.metadata[key] = *value
			}
		}
		second, err := plan(agent, wanted, false)
		if err != nil || !second.Empty() {
			t.Errorf("after %s there is still something to do: %+v, %v", raw, second, err)
		}
	})
}
