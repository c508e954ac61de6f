package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/manifest"
)

// TestHostileDescriptions: no text of a manifest that people review or models read holds what people do not see.
func TestHostileDescriptions(t *testing.T) {
	t.Parallel()
	schema := func(text string) func(string) string {
		return func(hidden string) string {
			return strings.Replace(minimal, "{type: object}", fmt.Sprintf(text, hidden), 1)
		}
	}
	more := func(text string) func(string) string {
		return func(hidden string) string { return minimal + fmt.Sprintf(text, hidden) }
	}
	places := map[string]func(string) string{
		"description of the plugin": more("description: %q\n"),
		"description of a tool": func(hidden string) string {
			return strings.Replace(minimal, "Greets a person.", fmt.Sprintf("%q", hidden), 1)
		},
		"title":                       more("    title: %q\n"),
		"description in a schema":     schema("{type: object, properties: {a: {description: %q}}}"),
		"title in a schema":           schema("{type: object, title: %q}"),
		"enum":                        schema("{type: object, properties: {a: {enum: [b, %q]}}}"),
		"const":                       schema("{type: object, properties: {a: {const: %q}}}"),
		"default":                     schema("{type: object, properties: {a: {default: {b: [%q]}}}}"),
		"examples":                    schema("{type: object, examples: [{a: %q}]}"),
		"pattern":                     schema("{type: object, properties: {a: {pattern: %q}}}"),
		"name of a property":          schema("{type: object, properties: {%q: {}}}"),
		"keyword that nobody knows":   schema("{type: object, x-note: {a: %q}}"),
		"description of a prompt":     more("prompts: [{name: p, description: %q}]\n"),
		"description of an argument":  more("prompts: [{name: p, arguments: [{name: a, description: %q}]}]\n"),
		"name of a resource":          more("resources: [{uri: 'notes://a', name: %q}]\n"),
		"description of a resource":   more("resources: [{uri: 'notes://a', name: n, description: %q}]\n"),
		"reason of a permission":      more("permissions: {files: [{mount: w, access: read-only, reason: %q}]}\n"),
		"description of a config key": more("config: {a: {type: string, description: %q}}\n"),
		"word for what has retired":   more("retired: [{tool: a, instead: %q}]\n"),
	}
	for place, yaml := range places {
		for what, hidden := range map[string]string{
			"tags": "a\U000e0041", "supplementary selectors": "a\U000e0100", "selectors": "a\ufe01",
			"zero width": "a\u200bb", "joiner": "a\u200db",
			"filler": "a\u3164", "half-width filler": "a\uffa0", "blank": "a\u2800", "override": "a\u202eb",
			"isolate": "a\u2067b", "mark": "a\u200fb",
			"soft hyphen": "a\u00adb", "escape": "a\x1b[8mb", "C1": "a\u009b8mb", "invisible times": "a\u2062b",
			"annotation":     "a\ufff9b",
			"flood of marks": "a" + strings.Repeat("\u0301", 20),
		} {
			t.Run(place+": "+what, func(t *testing.T) {
				t.Parallel()
				if _, err := manifest.Parse([]byte(yaml("plain"))); err != nil {
					t.Fatal(err)
				}
				_, err := manifest.Parse([]byte(yaml(hidden)))
				if err == nil || !strings.Contains(err.Error(), "invisible character U+") {
					t.Errorf("got %v", err)
				}
			})
		}
		t.Run(place+": what people write", func(t *testing.T) {
			t.Parallel()
			if _, err := manifest.Parse([]byte(yaml("天気 ❤\ufe0f 👩\u200d💻 می\u200cخواهم"))); err != nil {
				t.Error(err)
			}
		})
	}
}
