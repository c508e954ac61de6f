package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/pdktest"
)

// TestSchemas holds the tool's answer against the manifest's output schema, and its input schema against what it is to
// refuse.
func TestSchemas(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "manifests", "slack.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	tool := m.Tools[0]
	if err := tool.Output().Validate(newWorkspace(t).dm(t, aki, "x", "").StructuredContent); err != nil {
		t.Error(err)
	}
	w := newWorkspace(t)
	for _, name := range []string{"aki", "nobody"} {
		r := pdktest.CallTool(t, "find_slack_user", findArguments{name},
			pdktest.Options{Config: map[string]string{"base_url": w.url + "/api/"}})
		if err := m.Tools[1].Output().Validate(r.StructuredContent); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, test := range map[string]struct {
		in   arguments
		good bool
	}{
		"good":               {arguments{aki, "こんにちは"}, true},
		"the longest":        {arguments{aki, strings.Repeat("あ", 4000)}, true},
		"of the enterprise":  {arguments{"W012A3CDE", "x"}, true},
		"too long":           {arguments{aki, strings.Repeat("あ", 4001)}, false},
		"blank":              {arguments{aki, " \n　"}, false},
		"a name":             {arguments{"@aki", "x"}, false},
		"an e-mail address":  {arguments{"aki@example.com", "x"}, false},
		"a channel":          {arguments{"C024BE7LR", "x"}, false},
		"several":            {arguments{aki + "," + aki, "x"}, false},
		"in lower case":      {arguments{strings.ToLower(aki), "x"}, false},
		"with a line behind": {arguments{aki + "\n", "x"}, false},
	} {
		data, err := json.Marshal(test.in)
		if err != nil {
			t.Fatal(err)
		}
		if err := tool.Input().Validate(data); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
