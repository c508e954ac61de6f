package manifest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/wasmtest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
)

// extism is a module made for the Extism ABI, with an import and a manifest.
func extism(module, name, text string) []byte {
	return wasmtest.Module(wasmtest.Types,
		wasmtest.Section(2, wasmtest.Imported("extism:host/env", "length", 0, 4), wasmtest.Imported(module, name, 0, 4)),
		wasmtest.Custom("hako:manifest", text))
}

func TestExtismImports(t *testing.T) {
	t.Parallel()
	for module, want := range map[string]string{
		"extism:host/env": "", "extism:host/user": `unknown function "alloc"`,
		"wasi_snapshot_preview1": `unknown function "alloc"`,
		"hako:http/1":            `unknown import module "hako:http/1"`, "env": `unknown import module "env"`,
	} {
		m, err := wasmfile.Read(extism(module, "alloc", ""))
		if err != nil {
			t.Fatal(err)
		}
		err = manifest.CheckImports(m, manifest.Permissions{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", module, err)
		}
	}
}

func TestParseManifest(t *testing.T) {
	t.Parallel()
	const (
		head  = "name: x\nversion: 1.0.0\n"
		tools = "tools: [{name: a, description: a, inputSchema: {type: object}}]\n"
	)
	const http = "permissions: {http: [{name: a, url: \"https://a.example/\", credential: c, reason: r}]}\n"
	function := func(more string) string {
		return "tools: [{name: a, description: a, export: e, inputSchema: {type: object, properties: {x: {}}}, " + more + "}]\n"
	}
	for _, test := range []struct {
		name, want string
		wasm       []byte
	}{
		{"Extism, granting", "", extism("extism:host/env", "f", head)},
		{"Extism, with tools", "tools[0].export: is missing", extism("extism:host/env", "f", head+tools)},
		{"Extism, with functions", "", extism("extism:host/env", "f", head+function("argument: x"))},
		{"Extism, without the argument", "tools[0].argument: must be a property", extism("extism:host/env", "f", head+function("argument: y"))},
		{"Extism, with another result", `tools[0].result: must be "text" or "json"`, extism("extism:host/env", "f", head+function("result: xml"))},
		{"Extism, structured text", `tools[0].result: must be "json"`, extism("extism:host/env", "f", head+function("outputSchema: {type: object}"))},
		{"Extism, with prompts", "asked for its resources and prompts", extism("extism:host/env", "f", head+"prompts: [{name: x}]\n")},
		{"Extism, with a placeholder", "", extism("extism:host/env", "f", head+http+"config: {k: {type: string, credential: c}}\n")},
		{"Extism, with a placeholder for nothing", "must be the credential of an HTTP permission",
			extism("extism:host/env", "f", head+http+"config: {k: {type: string, credential: d}}\n")},
		{"Extism, with two placeholders", "has a placeholder already, a",
			extism("extism:host/env", "f", head+http+"config: {a: {type: string, credential: c}, b: {type: string, credential: c}}\n")},
		{"Extism, with a required placeholder", "neither default, enum nor required",
			extism("extism:host/env", "f", head+http+"config: {k: {type: string, credential: c, required: true}}\n")},
		{"Extism, with a placeholder and a state", "which the state session would outlive",
			extism("extism:host/env", "f", head+http+"state: session\nconfig: {k: {type: string, credential: c}}\n")},
		{"ABI 1, with a placeholder", "is for plugins of the Extism ABI",
			wasmtest.Plugin(nil, wasmtest.Custom("hako:manifest",
				head+tools+http+"config: {k: {type: string, credential: c}}\n"))},
		{"ABI 1, with functions", "tools[0].argument: is for functions of the Extism ABI",
			wasmtest.Plugin(nil, wasmtest.Custom("hako:manifest", head+function("argument: x")))},
		{"Extism, with commands", "has no functions for commands",
			extism("extism:host/env", "f", head+"permissions: {exec: {programs: [git], reason: r}}\n")},
		{"Extism, with a database", "has no functions for a database",
			extism("extism:host/env", "f", head+"permissions: {sql: {migrations: [a], reason: r}}\n")},
		{"Extism, wrong", "name: must be", extism("extism:host/env", "f", "name: X\nversion: 1.0.0\n")},
		{"ABI 1, granting", "offers nothing", wasmtest.Plugin(nil, wasmtest.Custom("hako:manifest", head))},
		{"ABI 1, with tools", "", wasmtest.Plugin(nil, wasmtest.Custom("hako:manifest", head+tools))},
	} {
		m, err := wasmfile.Read(test.wasm)
		if err != nil {
			t.Fatal(err)
		}
		_, err = manifest.ParseModule(m)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestExtismPage parses the example of docs/extism.md.
func TestExtismPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/extism.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```yaml\n")
	example, _, found := strings.Cut(example, "```")
	if !found {
		t.Fatal("the page has no example")
	}
	m, err := wasmfile.Read(extism("extism:host/env", "f", example))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.ParseModule(m); err != nil {
		t.Error(err)
	}
}
