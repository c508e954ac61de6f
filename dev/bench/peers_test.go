package bench

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/measurement"
)

// peer is another host of sandboxed tools with an echo tool, or hako with one.
type peer struct {
	key string
	// program and guest are environment variables with paths: the server, and its guest with the tool. hako needs none but
	// for the guest of wassette.
	program, guest string
	tool           string
	// start starts the server.
	start func(t *testing.T, program, guest string) *served
}

var peers = []peer{
	{"hako_rust", "", "", "rust_echo", func(t *testing.T, _, _ string) *served {
		return serveCompiled(t, newTextSite(t, map[string][]byte{"rust": rustPlugin(t)}))
	}},
	{"hako_go", "", "", "go_echo", func(t *testing.T, _, _ string) *served {
		return serveCompiled(t, newTextSite(t, map[string][]byte{"go": echoPlugin(t, "go", "echo")}))
	}},
	{"hako_component", "", "HAKO_PEER_WASSETTE_GUEST", "component_echo", func(t *testing.T, _, guest string) *served {
		return serveCompiled(t, newTextSite(t, map[string][]byte{"component": readFile(t, guest)}))
	}},
	{"wassette", "HAKO_PEER_WASSETTE", "HAKO_PEER_WASSETTE_GUEST", "echo", serveWassette},
	{"hyper_mcp", "HAKO_PEER_HYPER_MCP", "HAKO_PEER_HYPER_MCP_GUEST", "echo-echo", serveHyperMCP},
}

// TestPeers compares hako with other hosts under the same load.
func TestPeers(t *testing.T) {
	if *out == "" || *program == "" {
		t.Skip("make bench-peers runs this")
	}
	var r results
	for _, p := range peers {
		t.Run(p.key, func(t *testing.T) { r.peer(t, p) })
	}
	if err := measurement.Write(*out, r); err != nil {
		t.Fatal(err)
	}
}

func (r *results) peer(t *testing.T, p peer) {
	for _, variable := range []string{p.program, p.guest} {
		if variable != "" && os.Getenv(variable) == "" {
			t.Logf("%s is left out: %s does not name its file", p.key, variable)
			return
		}
	}
	s := p.start(t, os.Getenv(p.program), os.Getenv(p.guest))
	defer s.stop()
	// The last version that all of them have.
	const version = "2025-03-26"
	awaitTool(t, s, version, p.tool)
	add := func(key string, value float64, unit string) { r.add(t, "peer_"+p.key+"_"+key, value, unit) }
	settlePeer()
	add("rest_rss_mib", s.resident(t), "MiB")
	for _, work := range []struct {
		name    string
		text    int
		clients []int
	}{{"small", 20, []int{1, 64, 512}}, {"22k", 22_000, []int{1, 8}}, {"900k", 900_000, []int{1, 8}}} {
		text := strings.Repeat("sixteen letters ", work.text/16+1)[:work.text]
		arguments := fmt.Sprintf(`{"text":%q}`, text)
		if work.name == "900k" {
			s.resetPeak(t)
		}
		for _, clients := range work.clients {
			load(t, s.url, version, clients, p.tool, arguments, text, *duration/4) // to get warm
			before := s.cpuTime(t)
			got := load(t, s.url, version, clients, p.tool, arguments, text, *duration)
			cpu := (s.cpuTime(t) - before) / time.Duration(got.calls)
			prefix := fmt.Sprintf("%s_c%d_", work.name, clients)
			add(prefix+"rate", got.perSecond, "calls/s")
			add(prefix+"p50_ms", ms(got.p50), "ms")
			add(prefix+"cpu_ms", ms(cpu), "ms of processor time of a call")
		}
		if work.name == "small" {
			add("after_load_rss_mib", s.resident(t), "MiB")
		}
	}
	add("large_peak_rss_mib", s.peak(t), "MiB")
}

// serveCompiled returns hako with the code of its plugins in the cache.
func serveCompiled(t *testing.T, s *site) *served {
	t.Helper()
	first := s.serve(t)
	settlePeer()
	first.stop()
	return s.serve(t)
}

// settlePeer waits until a server that has just started has compiled what it compiles.
func settlePeer() { time.Sleep(min(*settle, 10*time.Second)) }

func serveWassette(t *testing.T, program, guest string) *served {
	dir, address := t.TempDir(), freeAddress(t)
	writeFile(t, filepath.Join(dir, "components", "echo.wasm"), readFile(t, guest))
	return servePeer(t, dir, address, program, "serve", "--streamable-http", "--bind-address", address,
		"--component-dir", filepath.Join(dir, "components"), "--disable-builtin-tools")
}

func serveHyperMCP(t *testing.T, program, guest string) *served {
	dir, address := t.TempDir(), freeAddress(t)
	guest, err := filepath.Abs(guest)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "hyper.json")
	writeFile(t, config, fmt.Appendf(nil, `{"plugins":{"echo":{"url":%q}}}`, "file://"+guest))
	return servePeer(t, dir, address, program, "--config-file", config, "--transport", "streamable-http",
		"--bind-address", address)
}

// servePeer starts a server that keeps what it writes below dir.
func servePeer(t *testing.T, dir, address, program string, args ...string) *served {
	t.Helper()
	s := &served{command: exec.Command(program, args...), url: "http://" + address + "/mcp"}
	s.command.Dir = dir
	s.command.Env = append(os.Environ(), "RUST_LOG=warn", "HOME="+dir, "XDG_CACHE_HOME="+dir, "XDG_CONFIG_HOME="+dir,
		"XDG_DATA_HOME="+dir, "XDG_STATE_HOME="+dir)
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	s.stop = stopOnce(s.command)
	t.Cleanup(s.stop)
	return s
}

// awaitTool waits until a server lists the tool.
func awaitTool(t *testing.T, s *served, version, tool string) {
	t.Helper()
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		connection, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp"))
		if err != nil {
			continue
		}
		_ = connection.Close()
		_, data, err := connect(t, s.url, version).Post(t.Context(), "tools/list", "", []byte(list))
		if err == nil && strings.Contains(string(data), strconv.Quote(tool)) {
			return
		}
	}
	t.Fatalf("%s does not list the tool %s", s.command.Path, tool)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
}
