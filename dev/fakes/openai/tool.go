package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// maxTools limits the tools of a request.
const maxTools = 128

// function is a tool's definition.
type function struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  map[string]any `json:"parameters"`
	Strict      bool           `json:"strict"`
	Deferred    bool           `json:"defer_loading"`
}

var functionName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)

// checkTools checks definitions; path is that of the i-th, with %d for i.
func (s *Server) checkTools(tools []function, path string) error {
	if len(tools) > maxTools && !s.Compatible {
		return invalid("tools",
			"Invalid 'tools': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", maxTools, len(tools))
	}
	for i, tool := range tools {
		at := fmt.Sprintf(path, i)
		switch {
		case !functionName().MatchString(tool.Name):
			return invalid(at+"name", "Invalid '%sname': string does not match pattern.", at)
		case s.Compatible:
		case len([]rune(tool.Description)) > 1024:
			return invalid(at+"description", "Invalid '%sdescription': string too long.", at)
		default:
			if err := checkParameters(tool.Parameters, true); err != nil {
				return invalid(at+"parameters", "Invalid schema for function '%s': %v", tool.Name, err)
			}
		}
	}
	return nil
}

// checkParameters checks a schema as the API does without "strict".
func checkParameters(schema map[string]any, top bool) error {
	if top {
		if schema["type"] != "object" {
			return fmt.Errorf("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%v\"'", schema["type"])
		}
		for _, keyword := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
			if schema[keyword] != nil {
				return fmt.Errorf(
					"schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level")
			}
		}
		if schema["properties"] == nil {
			return fmt.Errorf("object schema missing properties")
		}
	}
	if schema["type"] == "array" && schema["items"] == nil {
		return fmt.Errorf("array schema missing items")
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, property := range properties {
		if object, ok := property.(map[string]any); ok {
			if err := checkParameters(object, false); err != nil {
				return err
			}
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		return checkParameters(items, false)
	}
	return nil
}

// read reads a request into in strictly.
func read(body []byte, in any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(in)
	if err == nil {
		return nil
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		return &apiError{status: 400, kind: "invalid_request_error", code: "unknown_parameter", param: name,
			message: "Unknown parameter: '" + name + "'."}
	}
	return invalid("", "We could not parse the JSON body of your request: %v", err)
}
