package repository_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/hako-run/hako"

// wrapped lists the packages that may import a dependency, tests aside: its types stay inside them.
var wrapped = map[string][]string{
	"github.com/tetratelabs/wazero":          {"host/wasm", "host/sandbox", "host/brokers/file"},
	"github.com/modelcontextprotocol/go-sdk": {"host/frontend/mcpserver", "host/upstream/mcpclient", "host/credential", "dev"},
	"github.com/coreos/go-oidc":              {"host/frontend/mcpserver", "host/frontend/console", "host/frontend/issuer"},
	"github.com/go-jose/go-jose":             {"host/frontend/issuer"},
	"github.com/santhosh-tekuri/jsonschema":  {"host/schema"},
	"github.com/yosida95/uritemplate":        {"host/catalog", "host/manifest"},
	"github.com/prometheus/client_golang":    {"host/app/metrics"},
	"go.opentelemetry.io/otel":               {"host/trace"},
	"google.golang.org/grpc":                 {"host/trace"},
	"github.com/extism/go-sdk":               {"host/extism"},
	"github.com/jackc/pgx":                   {"host/store/postgres", "host/app/background", "dev/kit/postgrestest"},
	"github.com/riverqueue/river":            {"host/app/background"},
	"github.com/ncruces/go-sqlite3":          {"host/brokers/sqlbroker/database", "host/store/sqlite"},
	"github.com/google/go-containerregistry": {"dev/kit/registrytest"},
	"oras.land/oras-go":                      {"host/registry"},
	"github.com/opencontainers":              {"host/registry"},
	"github.com/sigstore":                    {"host/registry/signature", "dev/kit/sigstoretest"},
	"github.com/secure-systems-lab":          {"host/registry/signature"},
	"github.com/slack-go/slack":              {"host/frontend/slackbot"},
	"github.com/gorilla/websocket":           {"host/frontend/slackbot", "dev/fakes/slack"},
	"github.com/landlock-lsm/go-landlock":    {"host/confine"},
	"mvdan.cc/sh":                            {"host/judge", "host/confine", "host/brokers/execbroker"},
	"github.com/spf13/cobra":                 {"cmd/hako", "cmd/hako-dev"},
	"github.com/spf13/viper":                 {"host/app/config"},
	"charm.land/bubbles":                     {"host/frontend/terminal"},
	"charm.land/bubbletea":                   {"host/frontend/terminal"},
	"charm.land/lipgloss":                    {"host/frontend/terminal"},
	"github.com/charmbracelet":               {"host/frontend/terminal"},
	"github.com/muesli/cancelreader":         {"host/frontend/terminal"},
	"github.com/yuin/goldmark":               {"host/frontend/terminal"},
	"github.com/fsnotify/fsnotify":           {"host"},
	"go.yaml.in/yaml":                        {"internal/strictyaml", "host/grant"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

// TestImportRules holds the rules of the house: guests import only the PDK, the host never imports plugins, and each
// dependency stays in the package that wraps it.
func TestImportRules(t *testing.T) {
	t.Parallel()
	inRoot(t)
	for _, p := range packages(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		for _, imported := range p.Imports {
			if reason := forbidden(name, imported); reason != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, reason)
			}
		}
	}
}

func forbidden(name, imported string) string {
	own, isOwn := strings.CutPrefix(imported, module+"/")
	switch {
	case !isOwn:
	case (under(name, "plugins") || under(name, "examples")) && !under(own, "pdk") && !under(own, name):
		return "a plugin imports only pdk"
	case under(name, "pdk") && !under(own, "pdk"):
		return "the PDK imports nothing else of the project"
	case under(own, "plugins"):
		return "nothing imports plugins"
	case under(own, "cmd") && !under(name, "cmd"), under(own, "scripts"):
		return "programs are not libraries"
	case under(name, "host/upstream/mcpclient") && under(own, "host/sandbox"):
		return "upstream servers run outside of the sandbox"
	}
	if (under(name, "plugins") || under(name, "examples") || under(name, "pdk")) && !isOwn &&
		strings.Contains(strings.Split(imported, "/")[0], ".") {
		return "guest code needs nothing but the standard library"
	}
	for dependency, allowed := range wrapped {
		if (imported == dependency || strings.HasPrefix(imported, dependency+"/")) &&
			!slices.ContainsFunc(allowed, func(tree string) bool { return under(name, tree) }) {
			return "only " + strings.Join(allowed, " and ") + " may"
		}
	}
	return ""
}

func under(path, tree string) bool { return path == tree || strings.HasPrefix(path, tree+"/") }

func packages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []goPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// TestProgramsAreApart: hako has no fakes, demonstrations and test kits inside, and hako-dev runs hako as a process.
func TestProgramsAreApart(t *testing.T) {
	t.Parallel()
	inRoot(t)
	for program, without := range map[string]string{"./cmd/hako": module + "/dev", "./cmd/hako-dev": module + "/host"} {
		out, err := exec.Command("go", "list", "-deps", program).Output()
		if err != nil {
			t.Fatal(err)
		}
		for dependency := range strings.Lines(string(out)) {
			if dependency = strings.TrimSpace(dependency); under(dependency, without) {
				t.Errorf("%s links %s", program, dependency)
			}
		}
	}
}

// TestForbidden shows that the rules can fail.
func TestForbidden(t *testing.T) {
	t.Parallel()
	inRoot(t)
	for _, test := range []struct {
		name, imported string
		bad            bool
	}{
		{"plugins/weather", module + "/pdk", false},
		{"plugins/weather", module + "/host", true},
		{"host/upstream/mcpclient", module + "/host/sandbox", true},
		{"plugins/weather", "net/http", false},
		{"host/outbound", "google.golang.org/grpc", true},
		{"plugins/weather", "golang.org/x/text", true},
		{"examples/web-search", module + "/dev/fakes/search", true},
		{"host/pipeline", "github.com/tetratelabs/wazero/api", true},
		{"host/sandbox", "github.com/tetratelabs/wazero/api", false},
		{"host", module + "/plugins/weather", true},
		{"pdk/pdktest", module + "/host/store/database", true},
	} {
		if got := forbidden(test.name, test.imported); (got != "") != test.bad {
			t.Errorf("%s imports %s: %q", test.name, test.imported, got)
		}
	}
}
