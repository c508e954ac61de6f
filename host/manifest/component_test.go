package manifest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/wasmtest"
	"github.com/hako-run/hako/host/component/wasi"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

func TestPackedComponent(t *testing.T) {
	t.Parallel()
	wasm := wasmtest.Component(t, "echo")
	packed, err := wasmfile.Embed(wasm, map[string][]byte{abi.ManifestSection: []byte("name: echo\nversion: 1.0.0\n" +
		"tools: [{name: say, export: echo, description: {ja: 返す}}]\n")})
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasmfile.Read(packed)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := manifest.ParseModule(m)
	if err != nil || parsed.Tools[0].Export != "echo" {
		t.Errorf("%+v, %v", parsed, err)
	}
	plain, err := wasmfile.Embed(packed, map[string][]byte{abi.ManifestSection: nil})
	if err != nil || string(plain) != string(wasm) {
		t.Errorf("without the manifest it is not the same: %v", err)
	}
	if _, err := manifest.Parse(m.Manifest); err == nil || !strings.Contains(err.Error(), "export") {
		t.Errorf("the manifest of a core module: %v", err)
	}
}

func TestComponentImports(t *testing.T) {
	t.Parallel()
	for module, want := range map[string]string{
		"wasi:io/streams@0.2.6":            "",
		"wasi:cli/stdout@0.2.12":           "",
		"wasi:config/store@0.2.0-draft":    "",
		"wasi:logging/logging":             "",
		"wasi:logging/logging@0.1.0-draft": "",
		"hako:tool/log@1.0.0":              "",
		"hako:sql/database@1.0.0":          `does not ask for the permission "sql" that links it`,
		"hako:exec/commands@1.0.0":         `does not ask for the permission "exec" that links it`,
		"wasi:keyvalue/store@0.2.0-draft2": `does not ask for the permission "sql" that links it`,
		"wasi:sockets/tcp@0.2.9":           "",
		"wasi:http/handler@0.3.0":          `the component imports "wasi:http/handler@0.3.0", and hako runs components of WASI 0.2: build it for WASI 0.2`,
		"wasi:cli/stdout@1.0.0":            "hako runs components of WASI 0.2",
		"wasi:cli/stdot@0.2.0":             `unknown interface of wasi:cli "stdot": did you mean "stdout"?`,
		"wasi:nn/graph@0.2.0":              `unknown package "wasi:nn"`,
		"acme:math/add":                    "compose the component with one that exports it (wac plug)",
		"":                                 `the component imports "f", which is in no interface`,
	} {
		m := &wasmfile.Module{Component: &component.Component{},
			Imports: []wasmfile.Import{{Module: module, Name: "f"}, {Module: module, Name: "g"}}}
		err := manifest.CheckImports(m, manifest.Permissions{})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", module, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", module, err, want)
		case module != "" && err != nil && strings.Contains(err.Error(), "\n"):
			t.Errorf("one problem is there twice: %v", err)
		}
	}
}

// TestKnownInterfaces: a component may import every interface that hako implements, and no others.
func TestKnownInterfaces(t *testing.T) {
	t.Parallel()
	var offered []string
	for _, i := range wasi.New(nil) {
		offered = append(offered, i.Name)
	}
	slices.Sort(offered)
	if known := manifest.Interfaces(); !slices.Equal(known, offered) {
		t.Errorf("components may import %q, and hako implements %q", known, offered)
	}
}

// TestDraft: a component without a manifest gets one from its file name and from wassette's policy beside it.
func TestDraft(t *testing.T) {
	t.Parallel()
	const policy = `$schema: https://example.com/schema.json
version: "1.0"
description: A policy
permissions:
  storage:
    allow:
      - {uri: "fs:///srv/Data", access: [read]}
      - {uri: "fs://data/**", access: [read, write]}
  network:
    allow:
      - host: api.example.com
      - host: "https://rss.example.com/"
      - host: "*.example.org"
      - host: localhost:8080
  environment:
    allow: [{key: API_KEY}]
`
	wasm := wasmtest.Component(t, "echo")
	for _, beside := range []string{"Get_Weather.policy.yaml", "policy.yaml"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "Get_Weather.wasm")
		write(t, path, wasm)
		write(t, filepath.Join(dir, beside), []byte(policy))
		data, err := manifest.ReadFile(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		module, err := wasmfile.Read(data)
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.ParseModule(module)
		if err != nil {
			t.Fatal(err)
		}
		var asked []string
		for _, p := range m.Permissions.HTTP {
			asked = append(asked, p.URL)
		}
		for _, p := range m.Permissions.Files {
			access := ":ro"
			if p.Write {
				access = ":rw"
			}
			asked = append(asked, p.Mount+access)
		}
		want := "https://api.example.com/ https://rss.example.com/ https://*.example.org/ http://localhost:8080/ data:ro data-2:rw"
		if got := strings.Join(asked, " "); got != want {
			t.Errorf("%s asks for %s, want %s", beside, got, want)
		}
		if m.Name != "get-weather" || m.Config["API_KEY"].Type != "string" {
			t.Errorf("%+v", m)
		}
	}
}

func TestBadPolicies(t *testing.T) {
	t.Parallel()
	wasm := wasmtest.Component(t, "echo")
	for policy, problem := range map[string]string{
		"permissions: {network: {deny: [{host: a.example}]}}":                                "has no counterpart",
		"permissions: {network: {allow: [{cidr: 10.0.0.0/8}]}}":                              "has no counterpart",
		"permissions: {network: {allow: [{host: 'ftp://a.example'}]}}":                       "must start with",
		"permissions: {storage: {allow: [{uri: 'http://a/b', access: [read]}]}}":             "fs://",
		"permissions: {storage: {allow: [{uri: 'fs:///', access: [read]}]}}":                 "name of a folder",
		"permissions: {storage: {allow: [{uri: 'fs:///srv', access: [execute]}]}}":           "access",
		"permissions: {netwrok: {}}":                                                         "netwrok",
		"permissions: {storage: {allow: [" + strings.Repeat("{uri: 'fs://a'},", 257) + "]}}": "more than 256 folders",
		"rules: []": "rules",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "echo.wasm"), wasm)
		write(t, filepath.Join(dir, "policy.yaml"), []byte(policy))
		_, err := manifest.ReadFile(filepath.Join(dir, "echo.wasm"), 0)
		if err == nil || !strings.Contains(err.Error(), problem) || !strings.Contains(err.Error(), "policy.yaml") {
			t.Errorf("%s: %v, want %s", policy, err, problem)
		}
	}
}

func TestComponentWithoutName(t *testing.T) {
	t.Parallel()
	wasm := wasmtest.Component(t, "echo")
	path := filepath.Join(t.TempDir(), "1.wasm")
	write(t, path, wasm)
	if _, err := manifest.ReadFile(path, 0); err == nil || !strings.Contains(err.Error(), "rename the file") {
		t.Error(err)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
