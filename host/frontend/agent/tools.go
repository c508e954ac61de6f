package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/strictjson"
)

// Definition is the definition of a custom tool (platform.claude.com/docs/en/managed-agents/tools).
type Definition struct {
	Type        string          `json:"type"` // "custom"
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// customType is the Type of all Definitions.
const customType = "custom"

// Definitions are the tools as an agent is to be given them, with descriptions in the language of locale. Names and
// schemas are changed to what the API accepts; a Runner turns calls back. Tools that the API would refuse, and those
// beyond 256, are left out, which is logged. A nil logger discards that.
func Definitions(tools []*catalog.Tool, locale string, logger *slog.Logger) []Definition {
	return defined(llm.NewCustomTools(logger).Fit(offered(tools, locale)))
}

func defined(box *llm.CustomToolbox) []Definition {
	list := []Definition{}
	for _, tool := range box.Definitions() {
		list = append(list, Definition{customType, tool.Name, tool.Description, tool.Schema})
	}
	return list
}

// MaxTools is the API's limit of tools per agent.
const MaxTools = 256

// Limits of definitions. The API documents none for these: a model reads all definitions with each of its requests, so
// that larger ones are a mistake.
const (
	maxDescription = 16 << 10  // bytes
	maxSchema      = 64 << 10  // bytes
	maxDefinitions = 512 << 10 // bytes, of all of an agent
)

// toolName matches names of custom tools.
var toolName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,128}$`)

// check validates a definition by the limits of the API.
func (d *Definition) check() error {
	var object struct{ Type any }
	switch {
	case !toolName().MatchString(d.Name):
		return fmt.Errorf("tool %q: a name has letters, digits, _ and -, and at most 128 of them: rename the tool",
			d.Name)
	case d.Description == "":
		return fmt.Errorf("tool %s: it has no description, which agents choose tools by: write one", d.Name)
	case len(d.Description) > maxDescription:
		return fmt.Errorf("tool %s: its description has %d bytes, and at most %d are sensible: shorten it", d.Name,
			len(d.Description), maxDescription)
	case len(d.InputSchema) > maxSchema:
		return fmt.Errorf(
			"tool %s: its schema has %d bytes, and at most %d are sensible: simplify it, or let the policy deny the tool to agents", d.Name, len(d.InputSchema), maxSchema)
	case json.Unmarshal(d.InputSchema, &object) != nil || object.Type != "object":
		return fmt.Errorf("tool %s: its schema does not describe an object", d.Name)
	}
	return nil
}

// checkDefinitions validates all definitions of an agent that has a number of other custom tools.
func checkDefinitions(list []Definition, others int) error {
	var errs []error
	names, size := map[string]bool{}, 0
	for i := range list {
		d := &list[i]
		errs = append(errs, d.check())
		if names[d.Name] {
			errs = append(errs, fmt.Errorf("tool %s: there are two of that name", d.Name))
		}
		names[d.Name] = true
		size += len(d.Name) + len(d.Description) + len(d.InputSchema)
	}
	if n := len(list) + others; n > MaxTools {
		errs = append(
			errs, fmt.Errorf(
				"the agent would have %d tools, %d of them not hako's, and takes %d: "+
					"let the policy deny some to agents", n,
				others, MaxTools))
	}
	if size > maxDefinitions {
		errs = append(
			errs, fmt.Errorf(
				"the definitions have %d bytes together, and at most %d are sensible, since the model reads them with each request: let the policy deny some tools to agents", size, maxDefinitions))
	}
	return errors.Join(errs...)
}

// sameAs reports whether an agent that shows d has other. Keywords of a schema that the API does not document are not
// compared where it does not show them, since it may not keep them.
func (d *Definition) sameAs(other *Definition) bool {
	if d.Name != other.Name || d.Description != other.Description {
		return false
	}
	shown, wanted := schemaOf(d), schemaOf(other)
	for keyword := range wanted {
		if _, there := shown[keyword]; !there && keyword != "properties" && keyword != "required" {
			delete(wanted, keyword)
		}
	}
	return reflect.DeepEqual(shown, wanted)
}

// schemaOf returns a definition's schema without meaningless members: null and empty properties.
func schemaOf(d *Definition) map[string]any {
	schema := map[string]any{}
	_ = json.Unmarshal(d.InputSchema, &schema) // what is no object says nothing
	for keyword, value := range schema {
		list, isList := value.([]any)
		object, isObject := value.(map[string]any)
		if value == nil || isList && len(list) == 0 || isObject && len(object) == 0 {
			delete(schema, keyword)
		}
	}
	return schema
}

// readDefinition parses a tool returned by the API. It reports false unless it is a custom tool.
func readDefinition(raw string) (Definition, bool) {
	var d Definition
	err := strictjson.Unmarshal([]byte(raw), &d)
	return d, err == nil && d.Type == customType && d.Name != ""
}
