package toolschema_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/toolschema"
)

// provider describes the tools that an API takes unchanged, with strict checking of arguments where it has that.
// Bounds of numbers, texts and lists are in every set: where an API does not enforce them, its SDKs and clients move
// them into the description.
type provider struct {
	name        *regexp.Regexp
	description int // characters; 0 is any number
	key         *regexp.Regexp
	depth       int // levels of objects and lists
	keywords    []string
	formats     []string
}

var (
	everywhere = strings.Fields(`$defs $ref additionalProperties anyOf const default description enum exclusiveMaximum exclusiveMinimum format
		items maxItems maxLength maximum minItems minLength minimum multipleOf pattern properties required title type`)
	// common is without what the Schema of Gemini's API does not have: references and exclusive bounds.
	common = slices.DeleteFunc(slices.Clone(everywhere), func(keyword string) bool {
		return slices.Contains([]string{"$defs", "$ref", "const", "exclusiveMaximum", "exclusiveMinimum",
			"multipleOf"}, keyword)
	})
)

var providers = map[string]provider{
	"OpenAI": {
		name: regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`), description: 1024, key: regexp.MustCompile(`^.{1,64}$`),
		depth:    10,
		keywords: everywhere,
		formats:  []string{"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"},
	},
	"Anthropic": {
		name: regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`), key: regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`), depth: 32,
		keywords: everywhere,
		formats:  []string{"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"},
	},
	"Gemini": {
		name:  regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,62}$`),
		key:   regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`),
		depth: 32, keywords: common,
		formats: []string{"date", "date-time", "time"},
	},
}

// refuses returns why the provider would refuse a tool.
func (p *provider) refuses(name, description string, schema map[string]any) (reasons []string) {
	if !p.name.MatchString(name) {
		reasons = append(reasons, "its name")
	}
	if description == "" || p.description > 0 && len([]rune(description)) > p.description {
		reasons = append(reasons, fmt.Sprintf("a description of %d characters", len([]rune(description))))
	}
	if schema["type"] != "object" {
		reasons = append(reasons, "its top is no object")
	}
	for _, keyword := range toolschema.Composed(schema) {
		reasons = append(reasons, keyword+" at the top")
	}
	return append(reasons, p.refusesBelow("", schema, 1)...)
}

func (p *provider) refusesBelow(at string, schema map[string]any, depth int) (reasons []string) {
	refuse := func(format string, args ...any) { reasons = append(reasons, at+": "+fmt.Sprintf(format, args...)) }
	if depth > p.depth {
		refuse("nested deeper than %d", p.depth)
		return reasons
	}
	for keyword := range schema {
		if !slices.Contains(p.keywords, keyword) {
			refuse("the keyword %s", keyword)
		}
	}
	kind, single := schema["type"].(string)
	if !single && schema["anyOf"] == nil && schema["$ref"] == nil {
		refuse("no type, or several")
	}
	if schema["enum"] != nil && kind != "string" {
		refuse("an enum of something else than texts")
	}
	if format, ok := schema["format"].(string); ok && !slices.Contains(p.formats, format) {
		refuse("the format %s", format)
	}
	items, list := schema["items"].(map[string]any)
	if list != (kind == "array") {
		refuse("items and type do not agree")
	}
	if list {
		reasons = append(reasons, p.refusesBelow(at+"[]", items, depth+1)...)
	}
	if kind == "object" && schema["additionalProperties"] != false {
		refuse("it is open to other properties")
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		if !p.key.MatchString(name) {
			refuse("the name %q", name)
		}
		reasons = append(reasons, p.refusesBelow(at+"."+name, property.(map[string]any), depth+1)...)
	}
	branches, _ := schema["anyOf"].([]any)
	for _, branch := range branches {
		reasons = append(reasons, p.refusesBelow(at+"(anyOf)", branch.(map[string]any), depth)...)
	}
	return reasons
}

func decoded(t *testing.T, schema json.RawMessage) (object map[string]any) {
	t.Helper()
	if err := json.Unmarshal(schema, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestShippedTools checks that every provider accepts the listed schemas of the shipped tools and the examples.
func TestShippedTools(t *testing.T) {
	t.Parallel()
	shipped, _ := filepath.Glob("../../manifests/*.yaml")
	examples, _ := filepath.Glob("../../examples/*/manifest.yaml")
	if len(shipped) < 7 || len(examples) < 5 {
		t.Fatalf("%d and %d manifests", len(shipped), len(examples))
	}
	for _, file := range append(shipped, examples...) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range m.Tools {
			for name, p := range providers {
				for _, language := range []string{"en", "ja"} {
					schema := decoded(t, toolschema.Listed(tool.InputSchema))
					for _, reason := range p.refuses(tool.Name, tool.Description.In(language), schema) {
						if tool.Name == "create_record" && reason == ".data: it is open to other properties" {
							continue // a record has the fields that its table has
						}
						t.Errorf("%s, %s: %s refuses %s", file, tool.Name, name, reason)
					}
				}
			}
		}
	}
}

// TestProviders checks that the table detects what the providers refuse.
func TestProviders(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                                  "",
		`{"type":"object","additionalProperties":false,"anyOf":[{"type":"object","additionalProperties":false}]}`:              "Anthropic Gemini OpenAI",
		`{"type":"object","properties":{"a":{"enum":["x"]}},"additionalProperties":false}`:                                     "Anthropic Gemini OpenAI",
		`{"type":"object","properties":{"a":{"type":"array"}},"additionalProperties":false}`:                                   "Anthropic Gemini OpenAI",
		`{"type":"object","properties":{"a":{"type":["string","null"]}},"additionalProperties":false}`:                         "Anthropic Gemini OpenAI",
		`{"type":"object","properties":{"a":{"type":"integer","exclusiveMinimum":0}},"additionalProperties":false}`:            "Gemini",
		`{"type":"object","properties":{"a":{"type":"string","format":"uri"}},"additionalProperties":false}`:                   "Gemini OpenAI",
		`{"type":"object","properties":{"場所":{"type":"string"}},"additionalProperties":false}`:                                 "Anthropic Gemini",
		`{"type":"object","properties":{"a":{"type":"object","properties":{}}},"additionalProperties":false}`:                  "Anthropic Gemini OpenAI",
		`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"integer"}]}},"additionalProperties":false}`:   "Anthropic Gemini OpenAI",
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}},"additionalProperties":false}`:   "",
		`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"}]}},"additionalProperties":false}`: "Anthropic Gemini OpenAI",
		`{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"$ref":"#/x"}},"additionalProperties":false}`:  "Gemini",
		`{"type":"object","properties":{},"additionalProperties":false,"patternProperties":{"^x":{"type":"string"}}}`:          "Anthropic Gemini OpenAI",
	} {
		var refusing []string
		for name, p := range providers {
			if p.refuses("a_tool", "Does it.", decoded(t, json.RawMessage(schema))) != nil {
				refusing = append(refusing, name)
			}
		}
		slices.Sort(refusing)
		if got := strings.Join(refusing, " "); got != want {
			t.Errorf("%s is refused by %q, want %q", schema, got, want)
		}
	}
}
