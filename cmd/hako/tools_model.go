package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/inspect"
	"github.com/hako-run/hako/internal/terminal"
)

var toolsHeading = manifest.Text{"en": "Available tools:", "ja": "利用可能なツール:"}

// printToolText lists the tools for the prompt of a model, each on one line, whatever is in its description.
func (a *app) printToolText(v *view, list []inspect.ToolInfo) error {
	var text strings.Builder
	fmt.Fprintln(&text, toolsHeading.In(v.config.Locale))
	for _, t := range list {
		fmt.Fprintf(&text, "- %s: %s\n", t.Name, terminal.Sentence(strings.Join(strings.Fields(t.Description), " ")))
	}
	return printf(a.stdout, "%s", block(text.String()))
}

// toolSchema is a tool as models that plan its calls get it.
type toolSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// printToolSchemas lists the tools with the schemas of their parameters.
func (a *app) printToolSchemas(_ *view, list []inspect.ToolInfo) error {
	schemas := make([]toolSchema, 0, len(list))
	for _, t := range list {
		schemas = append(schemas, toolSchema{t.Name, strings.TrimSpace(t.Description), t.InputSchema})
	}
	return a.printJSON(schemas)
}
