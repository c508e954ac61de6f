package component_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/component"
)

// referenceCommand is a command of a .wast file as `wasm-tools json-from-wast` writes it.
type referenceCommand struct {
	Type     string
	Line     int
	Filename string
	Kind     string `json:"module_type"`
	Text     string
}

// TestReference runs the tests of the Component Model's repository (its folder test) if HAKO_COMPONENT_TESTS names a
// folder with what json-from-wast made of them.
func TestReference(t *testing.T) {
	folder := os.Getenv("HAKO_COMPONENT_TESTS")
	if folder == "" {
		t.Skip("HAKO_COMPONENT_TESTS names no folder")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", folder, err)
	}
	passed, failed, skipped := 0, 0, map[string]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var script struct{ Commands []referenceCommand }
		if err := json.Unmarshal(data, &script); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, command := range script.Commands {
			reason, why := validate(t, folder, command)
			switch {
			case reason != "":
				skipped[reason]++
			case why != "":
				failed++
				t.Errorf("%s:%d: %s", strings.TrimSuffix(filepath.Base(file), ".json"), command.Line, why)
			default:
				passed++
			}
		}
	}
	t.Logf("passed %d, failed %d, out of scope %v", passed, failed, skipped)
}

// validate decodes the component of a command. It returns why the command is out of scope, or why it failed.
func validate(t *testing.T, folder string, command referenceCommand) (outOfScope, failure string) {
	t.Helper()
	if command.Filename == "" {
		return command.Type, ""
	}
	if command.Kind != "binary" {
		return "text format", ""
	}
	wasm, err := os.ReadFile(filepath.Join(folder, command.Filename))
	if err != nil {
		t.Fatal(err)
	}
	_, err = component.Decode(wasm)
	switch command.Type {
	case "assert_invalid", "assert_malformed":
		if err == nil {
			return "", command.Type + " is accepted: " + command.Text
		}
	default:
		if err != nil {
			return "", command.Type + " is refused: " + err.Error()
		}
	}
	return "", ""
}
