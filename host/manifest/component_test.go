package manifest_test

import (
	"crypto/sha256"
	"encoding/hex"
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
		m := parse(t, data)
		want := "https://api.example.com/ https://rss.example.com/ https://*.example.org/ http://localhost:8080/ data:ro data-2:rw"
		if got := strings.Join(asked(m), " "); got != want {
			t.Errorf("%s asks for %s, want %s", beside, got, want)
		}
		if m.Name != "get-weather" || m.Config["API_KEY"].Type != "string" {
			t.Errorf("%+v", m)
		}
	}
}

// TestBadPolicies: what asks for less when it is left out is left out, and said; anything else is an error.
func TestBadPolicies(t *testing.T) {
	t.Parallel()
	wasm := wasmtest.Component(t, "echo")
	for policy, test := range map[string]struct{ problem, left string }{
		"permissions: {network: {deny: [{host: a.example}]}}": {problem: "has no counterpart"},
		"permissions: {netwrok: {}}":                          {problem: "netwrok"},
		"rules: []":                                           {problem: "rules"},
		"permissions: {network: {allow: [{cidr: 10.0.0.0/8}]}}": {
			left: "permissions.network.allow[0].cidr: addresses are not granted by their range"},
		"permissions: {network: {allow: [{host: 'ftp://a.example'}]}}":           {left: "must start with"},
		"permissions: {storage: {allow: [{uri: 'http://a/b', access: [read]}]}}": {left: "does not start with \"fs://\""},
		"permissions: {storage: {allow: [{uri: 'fs:///', access: [read]}]}}": {
			left: `permissions.storage.allow[0]: uri "fs:///" does not end in the name of a folder`},
		"permissions: {storage: {allow: [{uri: 'fs:///srv', access: [execute]}]}}": {left: "access"},
		"permissions: {environment: {allow: [{key: A-B}]}}":                        {left: "key of the configuration"},
		"permissions: {storage: {allow: [" + strings.Repeat("{uri: 'fs://a'},", 257) + "]}}": {
			left: "more than 256 folders"},
		"permissions: {network: {allow: [" + strings.Repeat("{host: 'a b'},", 300) + "]}}": {left: "292 more"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "echo.wasm"), wasm)
		write(t, filepath.Join(dir, "policy.yaml"), []byte(policy))
		data, err := manifest.ReadFile(filepath.Join(dir, "echo.wasm"), 0)
		if test.problem != "" {
			if err == nil || !strings.Contains(err.Error(), test.problem) || !strings.Contains(err.Error(), "policy.yaml") {
				t.Errorf("%s: %v, want %s", policy, err, test.problem)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", policy, err)
			continue
		}
		m := parse(t, data)
		if left := strings.Join(m.LeftOut(), "\n"); !strings.Contains(left, test.left) || len(m.Permissions.HTTP) > 0 {
			t.Errorf("%s leaves out %s, want %s; it asks for %+v", policy, left, test.left, m.Permissions)
		}
	}
}

// TestExtismDraft: a plugin made for Extism needs no manifest either. Extism's own beside it says what it asks for.
func TestExtismDraft(t *testing.T) {
	t.Parallel()
	wasm := wasmtest.Module(wasmtest.Types, wasmtest.Section(2, wasmtest.Imported("extism:host/env", "length", 0, 4)))
	digest := sha256.Sum256(wasm)
	const asks = `"memory": {"max_pages": 9}, "timeout_ms": 5, "allowed_hosts": ["api.example.com", "*", "a b"],
		"allowed_paths": {"/srv/data": "/data", "ro:./in": "/in", "/": "/"}, "config": {"api_key": "secret", "a-b": "x"}, "odd": 1}`
	for name, test := range map[string]struct {
		settings, problem string
		asked             []string
		left              int
	}{
		"nothing beside it":   {},
		"its own":             {settings: `{"wasm": [{"path": "./dist/Time.wasm"}], ` + asks, asked: []string{"https://api.example.com/", "https://*/", "data:rw", "in:ro"}, left: 4},
		"with the hash":       {settings: `{"wasm": [{"path": "Time.wasm", "hash": "` + hex.EncodeToString(digest[:]) + `"}]}`},
		"of another version":  {settings: `{"wasm": [{"path": "Time.wasm", "hash": "00"}]}`, problem: "hash of another file"},
		"linked":              {settings: `{"wasm": [{"path": "Time.wasm"}, {"path": "lib.wasm"}]}`, problem: "several modules"},
		"a wrong type":        {settings: `{"wasm": [{"path": "Time.wasm"}], "allowed_hosts": 1}`, problem: "allowed_hosts"},
		"another plugin's":    {settings: `{"wasm": [{"path": "other.wasm"}], ` + asks},
		"a web application's": {settings: `{"name": "x", "icons": []}`},
		"no JSON":             {settings: `{`},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "Time.wasm"), wasm)
		if test.settings != "" {
			write(t, filepath.Join(dir, "manifest.json"), []byte(test.settings))
		}
		data, err := manifest.ReadFile(filepath.Join(dir, "Time.wasm"), 0)
		if test.problem != "" || err != nil {
			if test.problem == "" || err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("%s: %v, want %q", name, err, test.problem)
			}
			continue
		}
		m := parse(t, data)
		if got := asked(m); !slices.Equal(got, test.asked) || len(m.LeftOut()) != test.left || m.Name != "time" {
			t.Errorf("%s: %s asks for %q and leaves out %q; want %q", name, m.Name, got, m.LeftOut(), test.asked)
		}
		if strings.Contains(string(data), "secret") {
			t.Errorf("%s: a value of the configuration is in the plugin", name)
		}
	}
}

func TestExtismModule(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "manifest.json")
	for text, want := range map[string]string{
		`{"wasm": [{"path": "time.wasm"}]}`:                  "",
		`{"wasm": [{"path": "../time.wasm"}]}`:               "a file beside it",
		`{"wasm": [{"path": "/time.wasm"}]}`:                 "a file beside it",
		`{"wasm": [{"url": "https://a.example/t.wasm"}]}`:    "a file beside it",
		`{"wasm": [{"path": "a.wasm"}, {"path": "b.wasm"}]}`: "several modules",
		`{"wasm": []}`: "neither a plugin", `{`: "neither a plugin", `[]`: "neither a plugin",
	} {
		write(t, path, []byte(text))
		file, err := manifest.ExtismModule(path)
		if want == "" && (err != nil || file != filepath.Join(filepath.Dir(path), "time.wasm")) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %s, %v; want %q", text, file, err, want)
		}
	}
}

func parse(t *testing.T, data []byte) *manifest.Manifest {
	t.Helper()
	module, err := wasmfile.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.ParseModule(module)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// asked lists the hosts and mounts that a manifest asks for.
func asked(m *manifest.Manifest) (asked []string) {
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
	return asked
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
