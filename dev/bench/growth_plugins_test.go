package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/dev/kit/mcpload"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// growPlugins measures folders of small plugins with consent, at their second start.
func (r *results) growPlugins(t *testing.T) {
	sizes := []int{1, 10, 100, 1000}
	var folders []*pluginFolder
	for _, n := range sizes {
		folders = append(folders, newPluginFolder(t, n))
	}
	time.Sleep(3 * time.Second) // the index omits files that have just changed
	for i, n := range sizes {
		folders[i].measure(t, r, n)
	}
}

// pluginFolder is a directory with a plugin folder, consents and a cache.
type pluginFolder struct {
	dir     string
	options *host.Options
}

func newPluginFolder(t *testing.T, plugins int) *pluginFolder {
	t.Helper()
	f := &pluginFolder{dir: t.TempDir()}
	f.options = &host.Options{Folders: []string{filepath.Join(f.dir, "plugins")},
		Consents: filepath.Join(f.dir, "consents.yaml"), CacheDir: filepath.Join(f.dir, "cache"),
		Updates: grant.SamePermissions}
	if err := os.Mkdir(f.options.Folders[0], 0o755); err != nil {
		t.Fatal(err)
	}
	f.write(t, 0, "1.0.0")
	consents, err := grant.Load(f.options.Consents)
	if err != nil {
		t.Fatal(err)
	}
	first := smallPlugin(t, 0, "1.0.0")
	approve(t, consents, first)
	text, err := os.ReadFile(f.options.Consents)
	if err != nil {
		t.Fatal(err)
	}
	// One write instead of one for each plugin.
	head, entry, _ := strings.Cut(string(text), "  p0:")
	whole := new(strings.Builder)
	whole.WriteString(head)
	for i := range plugins {
		wasm := f.write(t, i, "1.0.0")
		fmt.Fprintf(whole, "  p%d:%s", i, strings.ReplaceAll(entry, digestOf(t, first), digestOf(t, wasm)))
	}
	if err := os.WriteFile(f.options.Consents, []byte(whole.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

func digestOf(t *testing.T, wasm []byte) string {
	t.Helper()
	module, err := wasmfile.Read(wasm)
	if err != nil {
		t.Fatal(err)
	}
	return module.Digest
}

// write writes the plugin with this number.
func (f *pluginFolder) write(t *testing.T, number int, version string) []byte {
	t.Helper()
	wasm := smallPlugin(t, number, version)
	path := filepath.Join(f.options.Folders[0], fmt.Sprintf("p%d.wasm", number))
	if err := os.WriteFile(path, wasm, 0o644); err != nil {
		t.Fatal(err)
	}
	return wasm
}

// smallPlugin returns a plugin with one tool and next to no code.
func smallPlugin(t *testing.T, number int, version string) []byte {
	t.Helper()
	text := strings.NewReplacer("NAME", fmt.Sprintf("p%d", number), "TOOL", fmt.Sprintf("tool%d", number),
		"1.0.0", version).Replace(plainManifest)
	wasm, err := wasmfile.Embed(guesttest.Assemble(1, []byte{0x41, 0}), map[string][]byte{
		abi.ManifestSection: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

const plainManifest = `
name: NAME
version: 1.0.0
description: Echoes.
tools:
  - name: TOOL
    description: Returns the text that it is given.
    inputSchema: {type: object, properties: {text: {type: string}}, required: [text], additionalProperties: false}
`

// started is a host with an MCP server on it.
type started struct {
	host   *host.Host
	server *mcpserver.Server
	client *mcpload.Client
}

func startHost(t *testing.T, options *host.Options) *started {
	t.Helper()
	h, err := host.New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	server, err := mcpserver.New(h.Catalog(), h, nil)
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, server.Handler()) + "/mcp"
	return &started{h, server, connect(t, url, protocolVersions[0])}
}

func (s *started) stop(t *testing.T) {
	t.Helper()
	_ = s.server.Close()
	if err := s.host.Close(); err != nil {
		t.Fatal(err)
	}
}

func (f *pluginFolder) measure(t *testing.T, r *results, plugins int) {
	startHost(t, f.options).stop(t) // fills the index
	var s *started
	var before float64
	fastest := time.Hour
	for range 3 {
		if s != nil {
			s.stop(t)
		}
		before = memory()
		begin := time.Now()
		s = startHost(t, f.options)
		list(t, s.client, plugins)
		fastest = min(fastest, time.Since(begin))
	}
	defer func() { s.stop(t) }()
	r.addPoint(t, "plugins", plugins, "start_ms", ms(fastest), "ms")
	r.addPoint(t, "plugins", plugins, "mib", (memory()-before)/(1<<20), "MiB")
	r.addPoint(t, "plugins", plugins, "list_ms", ms(perRun(t, 10, func() error { list(t, s.client, plugins); return nil })),
		"ms")
	versions := 0
	reload := perRun(t, 5, func() error {
		versions++
		f.write(t, 0, fmt.Sprintf("1.0.%d", versions))
		return s.host.Load(t.Context())
	})
	for _, status := range s.host.Plugins() {
		if status.State != host.Active || status.Name == "p0" && status.Version != fmt.Sprintf("1.0.%d", versions) {
			t.Fatalf("%s %s is %s: %s", status.Name, status.Version, status.State, status.Reason)
		}
	}
	r.addPoint(t, "plugins", plugins, "reload_ms", ms(reload), "ms")
}
