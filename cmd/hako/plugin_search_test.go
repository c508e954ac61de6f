package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const toolsIndex = `
plugins:
  - name: weather
    version: 1.4.2
    reference: oci://registry.example.com/tools/weather:1.4.2
    title: {en: Weather, ja: 天気}
    publisher: "Example\e[31m K.K."
  - {name: probe, version: 2.0.0, reference: "files/$(id).wasm", keywords: [天気], digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
  - {name: vveather, reference: a.wasm, keywords: [天気]}
  - {name: rain, reference: a.wasm, keywords: [天気]}
  - {name: rain, reference: b.wasm}
`

func TestPluginSearch(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".wasm") {
			_, _ = w.Write(probePlugin(t))
			return
		}
		_, _ = w.Write([]byte(toolsIndex))
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\ncache: cache\nindex: {plugins: ['"+server.URL+"/index.yaml?key=secret', more.yaml]}\n"))
	if err := os.Mkdir(filepath.Join(dir, "plugins"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "plugins", "probe.wasm"), probePlugin(t))
	put(t, filepath.Join(dir, "more.yaml"), []byte("plugins: [{name: notes, reference: notes.wasm}]"))
	search := func(args ...string) outcome { return invoke(t, dir, append([]string{"plugin", "search"}, args...)...) }

	search("weather", "example").want(t, exitOK, "weather 1.4.2  Weather", "Example␦[31m K.K. (as the index says)",
		"hako plugin add oci://registry.example.com/tools/weather:1.4.2", "weather looks like vveather", "left out: line 11: rain")
	search("--config", "hako.yaml", "天気").want(t, exitOK, "NAME", "probe     2.0.0    1.0.0", "rain")
	search("probe").want(t, exitOK, "hako plugin add '"+server.URL+"/files/$%28id%29.wasm' --digest sha256:0123", "installed: 1.0.0")
	search("notes").want(t, exitOK, "hako plugin add "+filepath.Join(dir, "notes.wasm"))
	search("--json", "notes").want(t, exitOK, `"reference": "`, `"indexes"`)
	put(t, filepath.Join(dir, "notes.wasm"), probePlugin(t))
	add := func(name string) outcome { return invoke(t, dir, "plugin", "add", "--replace", name) }
	add("notes").want(t, exitOK, "probe 1.0.0 is in")
	add("probe").want(t, exitUsage, "instead of sha256:0123")
	add("nothing").want(t, exitUsage, "no index lists a plugin of that name")
	put(t, filepath.Join(dir, "more.yaml"), []byte("plugins: [{name: notes, reference: notes.wasm}, {name: weather, reference: w.wasm}]"))
	add("weather").want(t, exitUsage, "several indexes list weather: add one of oci://registry.example.com")
	search("nothing").want(t, exitOK, "No plugin matches all of these words")
	server.Close()
	o := search("weather", "example")
	o.want(t, exitOK, "weather 1.4.2", "this is the copy of", "0 minutes ago")
	if strings.Contains(o.stdout+o.stderr, "secret") {
		t.Errorf("the query is shown: %s %s", o.stdout, o.stderr)
	}

	invoke(t, t.TempDir(), "plugin", "search").want(t, exitUsage, "index.plugins")
	for config, want := range map[string]string{
		"index: {plugins: ['ftp://x']}": "neither an oci:// reference", "index: {plugins: [a, ./a]}": "occurs twice",
		"index: {plugins: ['http://plugins.example/']}": "neither an oci:// reference", "index: {servers: x}": "must be an https URL",
		"index: {plugins: ['oci://docker.io/a/b', 'OCI://index.docker.io/a/b']}": "occurs twice",
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "hako.yaml"), []byte(config))
		invoke(t, dir, "plugin", "search").want(t, exitUsage, want)
	}
}

func TestUpstreamsSearch(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"servers":[
			{"server":{"name":"com.example/weather","version":"1.0.0","description":"Weather","packages":[{"registryType":"npm","identifier":"@example/weather",
			"version":"1.0.0","environmentVariables":[{"name":"KEY","isSecret":true}]},{"registryType":"mcpb","identifier":"https://example.com/x"}]}},
			{"server":{"name":"com.example/weather-two","description":"Weather \u001b[2J"}}]}`))
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "hako.yaml"), []byte("index: {servers: '"+server.URL+"'}"))
	invoke(t, dir, "upstreams", "search", "weather").want(t, exitOK, "com.example/weather      1.0.0", "Weather ␦[2J")
	invoke(t, dir, "upstreams", "search", "com.example/weather").want(t, exitOK, `"mcpServers"`, `"@example/weather@1.0.0"`,
		`"KEY": "${WEATHER_KEY}"`, "set WEATHER_KEY (secret)", "mcpb: not for hako")
	invoke(t, dir, "upstreams", "search", "--json", "two").want(t, exitOK, `"setups": []`)
	invoke(t, dir, "upstreams", "search", "nothing").want(t, exitOK, "No server matches all of these words")
	invoke(t, t.TempDir(), "upstreams", "search").want(t, exitUsage, "index.servers")
}
