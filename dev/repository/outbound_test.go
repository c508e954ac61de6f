package repository_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// connecting names functions, types and variables that open connections, and the files that may use them because they
// obey outbound.proxy, or because what they reach is of this machine. All others use host/outbound.
var connecting = map[string][]string{
	"net/http.DefaultClient":        nil,
	"net/http.DefaultTransport":     nil,
	"net/http.ProxyFromEnvironment": nil,
	"net/http.Get":                  nil,
	"net/http.Head":                 nil,
	"net/http.Post":                 nil,
	"net/http.PostForm":             nil,
	"net/http.Transport": {
		"host/outbound/proxy.go", "host/brokers/httpbroker/broker.go",
		"host/brokers/execbroker/gateway/http.go", // whose connections the session opens
	},
	"net/http.Client": {
		"host/app/pluginfile/fetch.go", "host/app/server/listen.go", "host/frontend/agent/client.go", "host/credential/token.go",
		"host/registry/index/load.go",
		"host/frontend/issuer/client.go", "host/frontend/mcpserver/authserver/authserver.go",
		"host/frontend/llm/transport.go", "host/upstream/mcpclient/remote.go", "host/registry/registry.go", "host/frontend/slackbot/client.go",
	},
	"net.Dial":        nil,
	"net.DialIP":      nil,
	"net.DialTCP":     nil,
	"net.DialUDP":     nil,
	"net.Dialer":      {"host/outbound/dial.go", "host/outbound/proxy.go"},
	"net.DialTimeout": {"cmd/hako/console.go"}, // a hako on this machine
	"net.DialUnix":    {"host/app/server/systemd_linux.go"},
	"crypto/tls.Dial": nil, "crypto/tls.DialWithDialer": nil, "crypto/tls.Dialer": nil,
	"golang.org/x/net/http/httpproxy.FromEnvironment": nil,
	"golang.org/x/net/proxy.FromEnvironment":          nil,
	"golang.org/x/net/proxy.FromURL":                  {"host/outbound/proxy.go"},

	"github.com/gorilla/websocket.DefaultDialer":                                nil,
	"github.com/gorilla/websocket.Dialer":                                       {"host/frontend/slackbot/socket.go"},
	"github.com/slack-go/slack.New":                                             {"host/frontend/slackbot/workspace.go"},
	"github.com/slack-go/slack/socketmode.New":                                  {"host/frontend/slackbot/socket.go"},
	"github.com/coreos/go-oidc/v3/oidc.NewProvider":                             {"host/frontend/issuer/keys.go"},
	"github.com/coreos/go-oidc/v3/oidc.NewRemoteKeySet":                         nil,
	"github.com/modelcontextprotocol/go-sdk/mcp.StreamableClientTransport":      {"host/upstream/mcpclient/session.go"},
	"github.com/modelcontextprotocol/go-sdk/mcp.SSEClientTransport":             nil,
	"golang.org/x/oauth2.NewClient":                                             nil,
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp.NewClient": {"host/trace/export.go"},
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp.New":       nil,
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc.NewClient": {"host/trace/export.go"},
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc.New":       nil,
	"oras.land/oras-go/v2/registry/remote/auth.Client":                          {"host/registry/registry.go"},
	"oras.land/oras-go/v2/registry/remote/auth.DefaultClient":                   nil,
	"oras.land/oras-go/v2/registry/remote.NewRepository":                        nil,
	"github.com/sigstore/sigstore-go/pkg/root.FetchTrustedRoot":                 nil,
	"github.com/sigstore/sigstore-go/pkg/root.FetchTrustedRootWithOptions":      nil,
	"github.com/sigstore/sigstore-go/pkg/root.NewLiveTrustedRoot":               nil,
	"github.com/sigstore/sigstore-go/pkg/tuf.New":                               nil,
	"google.golang.org/grpc.NewClient":                                          nil,
	"google.golang.org/grpc.Dial":                                               nil,
	"github.com/hako-run/hako/host/outbound.Dialer": {"host/brokers/httpbroker/broker.go",
		"host/brokers/execbroker/gateway/gateway.go"},
}

// TestConnectionsObeyTheProxy finds every use of what connects, so that a new one cannot bypass outbound.proxy or obey
// HTTP_PROXY unseen.
func TestConnectionsObeyTheProxy(t *testing.T) {
	t.Parallel()
	inRoot(t)
	used := map[string][]string{}
	for _, root := range []string{"cmd", "host", "internal"} {
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			name = filepath.ToSlash(name)
			switch {
			case err != nil:
				return err
			case name == "dev/fakes", entry.Name() == "testdata", entry.Name() == "template":
				return fs.SkipDir
			case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
				for _, symbol := range connections(t, name, nil) {
					used[symbol] = append(used[symbol], name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for symbol, files := range connecting {
		for _, file := range used[symbol] {
			if !slices.Contains(files, file) {
				t.Errorf(
					"%s uses %s: use outbound.NewTransport or outbound.Connect, or see to outbound.proxy and add the file to the list",
					file,
					symbol,
				)
			}
		}
		for _, file := range files {
			if !slices.Contains(used[symbol], file) {
				t.Errorf("%s does not use %s any more: take it off the list", file, symbol)
			}
		}
	}
}

// connections lists what of connecting a file uses. Its text is read from the file if source is nil.
func connections(t *testing.T, name string, source any) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	imported := map[string]string{}
	for _, spec := range file.Imports {
		from, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		imported[packageName(spec, from)] = from
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		if star, ok := n.(*ast.StarExpr); ok { // a pointer's type makes nothing, but the value of a variable is a copy
			selector, ok := star.X.(*ast.SelectorExpr)
			return !ok || strings.HasPrefix(selector.Sel.Name, "Default")
		}
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := selector.X.(*ast.Ident); ok {
				symbol := imported[x.Name] + "." + selector.Sel.Name
				if _, listed := connecting[symbol]; listed && !slices.Contains(found, symbol) {
					found = append(found, symbol)
				}
			}
		}
		return true
	})
	return found
}

// packageName is the name that a file has for a package that it imports.
func packageName(spec *ast.ImportSpec, from string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	if base := path.Base(from); len(base) > 1 && base[0] == 'v' && base[1] >= '0' && base[1] <= '9' {
		from = path.Dir(from)
	}
	return strings.TrimSuffix(strings.TrimSuffix(path.Base(from), "-sdk-go"), "-go")
}

// TestConnections shows that the list finds what it is for, also under another name.
func TestConnections(t *testing.T) {
	t.Parallel()
	inRoot(t)
	for source, want := range map[string]string{
		`import "net/http"; var c = http.DefaultClient`:                                             "net/http.DefaultClient",
		`import web "net/http"; func f() { web.Get("") }`:                                           "net/http.Get",
		`import "net/http"; func f() { _ = &http.Client{} }`:                                        "net/http.Client",
		`import "github.com/gorilla/websocket"; func f() { websocket.DefaultDialer.Dial("", nil) }`: "github.com/gorilla/websocket.DefaultDialer",
		`import "net/http"; func f(r *http.Request) { var http struct{ Get func() }; _ = http }`:    "",
		`import http "example.com/broker/http"; var o http.Client`:                                  "",
		`import "net/http"; func f() { c := *http.DefaultClient; _ = c }`:                           "net/http.DefaultClient",
		`import "net/http"; func f(c *http.Client) {}`:                                              "",
	} {
		if got := strings.Join(connections(t, "x.go", "package x; "+source), " "); got != want {
			t.Errorf("%s: %q", source, got)
		}
	}
}
