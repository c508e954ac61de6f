package config

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/secret"
)

func TestMain(m *testing.M) {
	// What the developer has set must not decide the tests.
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, prefix) || name == "MOCK_MODE" {
			os.Unsetenv(name)
		}
	}
	os.Exit(m.Run())
}

// write writes hako.yaml into a new directory.
func write(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func load(t *testing.T, source Source) *Config {
	t.Helper()
	c, err := Load(source)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaults(t *testing.T) {
	dir := write(t, "log: {}\n")
	c := load(t, Source{Dir: dir})
	if c.HTTP.Address != "127.0.0.1:8420" || c.HTTP.URL() != "http://127.0.0.1:8420/mcp" {
		t.Errorf("HTTP is %+v at %s", c.HTTP, c.HTTP.URL())
	}
	if c.ShippedOn || c.Mock || c.Updates != "ask" || c.Locale != "en" || c.LogLevel != "info" {
		t.Errorf("got %+v", c)
	}
	if want := filepath.Join(dir, "hako.consents.yaml"); c.Consents != want {
		t.Errorf("consents are in %s, want %s", c.Consents, want)
	}
	if !filepath.IsAbs(c.Cache) || filepath.Base(c.Cache) != "hako" {
		t.Errorf("the cache is %s", c.Cache)
	}
	if c.Origin("http.address") != OriginDefault {
		t.Errorf("the address comes from %s", c.Origin("http.address"))
	}
}

// TestElsewhere: what belongs to a file in another directory lies beside it.
func TestElsewhere(t *testing.T) {
	dir, work := write(t, "plugins: [tools]\n"), t.TempDir()
	c := load(t, Source{Dir: work, File: filepath.Join(dir, FileName)})
	if c.Consents != filepath.Join(dir, "hako.consents.yaml") || c.Plugins[0] != filepath.Join(dir, "tools") {
		t.Errorf("got %s and %s", c.Consents, c.Plugins)
	}
}

// TestPrecedence sets one key on every layer, and takes one layer away after the other.
func TestPrecedence(t *testing.T) {
	dir := write(t, "\nhttp:\n  address: file:1\n")
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.String("http", "", "")
	Flag(flags, "http", "http.address")
	if err := flags.Set("http", "flag:1"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HAKO_HTTP_ADDRESS", "env:1")
	check := func(flags *pflag.FlagSet, dir, value, origin string) {
		t.Helper()
		c := load(t, Source{Dir: dir, Flags: flags, Default: []byte("http: {address: built-in:1}")})
		if c.HTTP.Address != value || c.Origin("http.address") != origin {
			t.Errorf("got %s from %s, want %s from %s", c.HTTP.Address, c.Origin("http.address"), value, origin)
		}
	}
	check(flags, dir, "flag:1", "flag --http")
	check(nil, dir, "env:1", "env HAKO_HTTP_ADDRESS")
	t.Setenv("HAKO_HTTP_ADDRESS", "")
	check(nil, dir, "file:1", "hako.yaml:3")
	check(nil, t.TempDir(), "built-in:1", "built-in default:1")
}

// TestKindsOfFlags checks that each kind of flag arrives as it was given, and that a flag with a default sets nothing
// unless the user did.
func TestKindsOfFlags(t *testing.T) {
	dir := write(t, "\nlog: {level: warn}\nmountQuota: 1GiB\n")
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.StringArray("plugins", nil, "")
	flags.StringSlice("agent", nil, "")
	flags.Bool("mock", false, "")
	flags.Int("queue", 3, "")
	flags.Duration("grace", 0, "")
	flags.String("log-level", "info", "")
	for flag, key := range map[string]string{"plugins": "plugins", "agent": "agent.agents", "mock": "mock",
		"queue": "limits.queue", "grace": "shutdown.grace", "log-level": "log.level"} {
		Flag(flags, flag, key)
	}
	arguments := []string{"--plugins", "a, \"b\"", "--plugins", "c", "--agent", "x,y", "--mock", "--queue", "7",
		"--grace", "90s"}
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	c := load(t, Source{Dir: dir, Flags: flags})
	for name, differs := range map[string]bool{
		"plugins":   !slices.Equal(c.Plugins, []string{filepath.Join(dir, "a, \"b\""), filepath.Join(dir, "c")}),
		"agent":     !slices.Equal(c.Agent.Agents, []string{"x", "y"}),
		"mock":      !c.Mock,
		"queue":     c.Limits.Queue != 7,
		"grace":     c.ShutdownGrace != 90*time.Second,
		"log-level": c.LogLevel != "warn",
		"file":      c.MountQuota != 1<<30,
	} {
		if differs {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestFile(t *testing.T) {
	dir := write(t, `
plugins: [tools, /srv/plugins]
shipped:
  enabled: true
  mounts:
    workspace: ./workspace
consents: review/consents.yaml
updates: same-permissions
mock: true
maxPluginSize: 16MiB
http:
  tls: {cert: tls.crt, key: /etc/tls.key}
  origins: [https://app.example.com]
limits: {time: 5s, memory: 32MiB, rate: 60}
mcp:
  limits: {sessionIdle: 1m}
plugin:
  weather:
    prefix: jp_
    state: session
    config: {base_url: "https://me:secret@mirror.example.com/", days: 7, apiToken: hunter2, flags: [a, b]}
    limits: {concurrency: 2, time: 90s}
`)
	c := load(t, Source{Dir: dir})
	if want := []string{filepath.Join(dir, "tools"), "/srv/plugins"}; !slices.Equal(c.Plugins, want) {
		t.Errorf("plugins are %q, want %q", c.Plugins, want)
	}
	if c.ShippedMounts["workspace"] != filepath.Join(dir, "workspace") ||
		c.Consents != filepath.Join(dir, "review/consents.yaml") {
		t.Errorf("paths are not the file's: %q, %q", c.ShippedMounts, c.Consents)
	}
	if c.HTTP.TLSCert != filepath.Join(dir, "tls.crt") || c.HTTP.TLSKey != "/etc/tls.key" ||
		!strings.HasPrefix(c.HTTP.URL(), "https:") {
		t.Errorf("TLS is %+v", c.HTTP)
	}
	if c.Limits.Time != 5*time.Second || c.Limits.Memory != 32<<20 || c.Limits.Rate != 60 ||
		c.MCP.Limits.SessionIdle != time.Minute {
		t.Errorf("limits are %+v and %+v", c.Limits, c.MCP.Limits)
	}
	weather := c.Plugin["weather"]
	if weather.Prefix != "jp_" || weather.State != "session" || weather.Limits.Concurrency != 2 ||
		weather.Limits.Time != 90*time.Second {
		t.Errorf("weather's settings are %+v", weather)
	}
	if want := []any{"a", "b"}; weather.Config["days"] != json.Number("7") ||
		!reflect.DeepEqual(weather.Config["flags"], want) {
		t.Errorf("weather's configuration is %#v", weather.Config)
	}
}

func TestAuthentication(t *testing.T) {
	empty := load(t, Source{Dir: t.TempDir(), Default: []byte("locale: en")})
	if options := empty.HTTP.Authentication(nil); options != nil {
		t.Errorf("nothing configured: got %+v", options)
	}
	hash := "sha256:" + strings.Repeat("ab", 32)
	c := load(t, Source{Dir: write(t, `
http:
  auth:
    tokens:
      - {name: ci, hash: "`+hash+`", user: robot, tenant: acme, scopes: [tools], expires: 2027-01-31}
      - {name: other, hash: "`+hash+`", expires: "2027-01-31T12:00:00Z"}
    scopes: [tools]
    oauth:
      resource: https://hako.example.com/mcp
      issuers: [{url: "https://login.example.com/", keys: "https://login.example.com/keys"}]
`)})
	if _, err := auth.New(*c.HTTP.Authentication(nil)); err != nil {
		t.Error(err)
	}
	first, second := c.HTTP.Auth.Tokens[0], c.HTTP.Auth.Tokens[1]
	if first.User != "robot" || first.Tenant != "acme" || !slices.Equal(first.Scopes, []string{"tools"}) {
		t.Errorf("got %+v", first)
	}
	if want := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC); !first.Expires.Equal(want) {
		t.Errorf("a date means the end of that day: got %v, want %v", first.Expires, want)
	}
	if want := time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC); !second.Expires.Equal(want) {
		t.Errorf("got %v, want %v", second.Expires, want)
	}
	if i := c.HTTP.OAuth.Issuers[0]; i.URL != "https://login.example.com/" ||
		i.Keys != "https://login.example.com/keys" {
		t.Errorf("got %+v", i)
	}
	for name, text := range map[string]string{
		"scopes alone": "http: {auth: {scopes: [tools]}}",
		"no issuer":    "http: {auth: {oauth: {resource: 'https://a.example/mcp'}}}",
	} {
		if _, err := auth.New(*load(t, Source{Dir: write(t, text)}).HTTP.Authentication(nil)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestShow: what is shown names the origin of each value and holds no secrets.
func TestShow(t *testing.T) {
	dir := write(t, `plugin:
  weather:
    prefix: jp_
    config: {base_url: "https://me:secret@mirror.example.com/", apiToken: hunter2}
`)
	shown := map[string]Entry{}
	for _, e := range load(t, Source{Dir: dir}).Entries() {
		shown[e.Key] = e
	}
	for key, want := range map[string]Entry{
		"plugin.weather.prefix":          {Value: "jp_", Origin: "hako.yaml:3"},
		"plugin.weather.config.base_url": {Value: "https://me:xxxxx@mirror.example.com/", Origin: "hako.yaml:4"},
		"plugin.weather.config.apiToken": {Value: "(redacted)", Origin: "hako.yaml:4"},
		"mcp.limits.message":             {Value: "4MiB", Origin: "default"},
	} {
		if got := shown[key]; got.Value != want.Value || got.Origin != want.Origin {
			t.Errorf("%s: got %q from %s, want %q from %s", key, got.Value, got.Origin, want.Value, want.Origin)
		}
	}
}

// TestEnvironment reads every kind of setting from the environment; paths in it start at the working directory.
func TestEnvironment(t *testing.T) {
	dir := write(t, "plugins: [elsewhere]\n")
	for name, value := range map[string]string{
		"HAKO_PLUGINS":                 "a" + string(os.PathListSeparator) + "/b",
		"HAKO_HTTP_ORIGINS":            "https://a.example, https://b.example",
		"HAKO_MCP_LIMITS_SESSION_IDLE": "90s",
		"HAKO_MCP_LIST_TTL":            "1m",
		"HAKO_LIMITS_MEMORY":           "1GiB",
		"HAKO_LIMITS_CONCURRENCY":      "3",
		"MOCK_MODE":                    "true",
	} {
		t.Setenv(name, value)
	}
	c := load(t, Source{Dir: dir})
	if want := []string{filepath.Join(dir, "a"), "/b"}; !slices.Equal(c.Plugins, want) {
		t.Errorf("plugins are %q, want %q", c.Plugins, want)
	}
	if want := []string{"https://a.example", "https://b.example"}; !slices.Equal(c.HTTP.Origins, want) {
		t.Errorf("origins are %q, want %q", c.HTTP.Origins, want)
	}
	if c.MCP.Limits.SessionIdle != 90*time.Second || c.MCP.ListTTL != time.Minute || c.Limits.Memory != 1<<30 ||
		c.Limits.Concurrency != 3 || !c.Mock {
		t.Errorf("got %+v, %+v, mock %v", c.MCP, c.Limits, c.Mock)
	}
	if c.Origin("mock") != "env MOCK_MODE" {
		t.Errorf("mock comes from %s", c.Origin("mock"))
	}
}

// TestSwitches: what programs write for true and false, in the environment alone.
func TestSwitches(t *testing.T) {
	dir := write(t, "log: {}\n")
	for text, want := range map[string]bool{"true": true, "1": true, "Yes": true, "on": true, "TRUE": true,
		"false": false, "0": false, "no": false, "OFF": false} {
		t.Setenv("MCP_ENABLED", text)
		if c := load(t, Source{Dir: dir}); c.Upstreams.Enabled != want || c.Chat.Tools != want {
			t.Errorf("MCP_ENABLED=%s: %v, %v", text, c.Upstreams.Enabled, c.Chat.Tools)
		}
	}
}

func TestFileFromTheEnvironment(t *testing.T) {
	dir := write(t, "locale: ja\n")
	t.Setenv("HAKO_CONFIG", filepath.Join(dir, FileName))
	if c := load(t, Source{Dir: t.TempDir()}); c.Locale != "ja" {
		t.Errorf("the locale is %s, want that of the file", c.Locale)
	}
}

func TestProblems(t *testing.T) {
	tests := map[string]struct {
		file      string
		variables map[string]string
		want      []string
	}{
		"unknown key": {file: "http:\n  adress: x\n",
			want: []string{`hako.yaml:2:3: http: unknown key "adress": did you mean "address"?`}},
		"unknown nested key": {file: "plugin:\n  a:\n    limits: {tiem: 1s}\n",
			want: []string{"hako.yaml:3:14: plugin.a.limits", `did you mean "time"`}},
		"wrong type": {file: "mock: 3\n", want: []string{"hako.yaml:1:7: mock: must be true or false"}},
		"no switch": {file: "log: {}\n", variables: map[string]string{"MCP_ENABLED": "2"},
			want: []string{"env MCP_ENABLED: must be true or false; 1 and 0"}},
		"a switch of the environment": {file: "mock: 1\n", want: []string{"mock: must be true or false"}},
		"not one of": {file: "updates: aks\n",
			want: []string{`hako.yaml:1:10: updates: "aks" is not allowed: did you mean "ask"?`}},
		"all at once": {file: "a: 1\nb: 2\n", want: []string{`hako.yaml:1:1: unknown key "a"`,
			`hako.yaml:2:1: unknown key "b"`}},
		"no unit": {file: "limits: {memory: 64}\n", want: []string{"limits.memory: must be a size",
			"64MiB"}},
		"empty mount": {file: "shipped: {mounts: {workspace: ''}}\n", want: []string{"must name a directory"}},
		"expiry": {file: "http: {auth: {tokens: [{expires: soon}]}}\n",
			want: []string{"http.auth.tokens[0].expires", "2027-01-31"}},
		"syntax": {file: "http: [\n", want: []string{"hako.yaml: line", "YAML syntax"}},
		"another database": {file: "store: mysql://user:secret@host/db\n",
			want: []string{"hako.yaml:1:8: store: must be a directory or the URL of a PostgreSQL database"}},
		"partner's ID": {file: slackFile("{acme: guests}"),
			want: []string{`partners: "acme" is not the ID of a workspace`}},
		"partner's tenant": {file: slackFile("{T0PARTNER: acme-inc}"),
			want: []string{"T0PARTNER needs a tenant of its own"}},
		"partner of nobody": {file: slackFile("{T0PARTNER: ''}"),
			want: []string{"T0PARTNER needs a tenant of its own"}},
		"partner's list": {file: slackFile("[T0PARTNER]"),
			want: []string{"slack.workspaces[0].partners: must be"}},
		"text for a list": {file: "plugins: ./plugins\n",
			want: []string{"plugins: must be a list, not text: put it in brackets"}},
		"tabs": {file: "shipped:\n\tenabled: true\n", want: []string{"hako.yaml: line 2: YAML syntax",
			"indent with spaces"}},
		"proxy": {file: "outbound: {proxy: 'ftp://user:secret@proxy'}\n",
			want: []string{"hako.yaml:1:19: outbound.proxy: must be the URL of a proxy"}},
		"proxy's path": {file: "outbound: {proxy: 'http://proxy/x'}\n",
			want: []string{"must be the URL of a proxy"}},
		"proxy's variable": {file: "log: {}\n", variables: map[string]string{"HAKO_OUTBOUND_PROXY": "proxy:3128"},
			want: []string{"env HAKO_OUTBOUND_PROXY: must be the URL of a proxy"}},
		"retries": {file: "plugin: {a: {http: {b: {retries: 11}}}}\n",
			want: []string{"plugin.a.http.b.retries: must be a whole number from 0 to 10"}},
		"half a retry": {file: "plugin: {a: {http: {b: {retries: 0.5}}}}\n",
			want: []string{"plugin.a.http.b.retries: must be a whole number"}},
		"rate": {file: "plugin: {a: {http: {b: {rate: fast}}}}\n",
			want: []string{"plugin.a.http.b.rate: must be a number from 0.001 to 100000"}},
		"burst without rate": {file: "plugin: {a: {http: {b: {burst: 3}}}}\n",
			want: []string{"plugin.a.http.b: burst is how many", "state the rate too"}},
		"signer of nothing": {file: "signers: {acme: {key: acme.pub}}\n",
			want: []string{"hako.yaml:1:17: signers.acme: for must list the repositories"}},
		"signer without issuer": {file: "signers: {acme: {for: ['*'], subject: a@example.com}}\n",
			want: []string{"signers.acme: an identity is an issuer with a subject"}},
		"signer without root": {
			file: "signers: {acme: {for: ['*'], issuer: https://a.example, subject: a@example.com}}\n",
			want: []string{"signers.acme is an identity, and signatures.trustedRoot names no trusted_root.json",
				"cosign trusted-root create"}},
		"tenant": {file: "tenants: {acme: {plugins: {}}}\n",
			want: []string{`tenants.acme: unknown key "plugins": did you mean "plugin"?`}},
		"tenant's plugin": {file: "tenants: {acme: {plugin: {a: {limits: {}}}}}\n",
			want: []string{`tenants.acme.plugin.a: unknown key "limits"`}},
		"tenant without name": {file: "tenants: {'': {}}\n", want: []string{"the name of a tenant must be"}},
		"variable": {file: "log: {}\n", variables: map[string]string{"HAKO_LIMITS_TIME": "soon"},
			want: []string{"env HAKO_LIMITS_TIME: must be a duration"}},
		"variable, not one of": {
			file: "log: {}\n", variables: map[string]string{"HAKO_LOG_LEVEL": "infos"},
			want: []string{`env HAKO_LOG_LEVEL: "infos" is not allowed: did you mean "info"?`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for name, value := range test.variables {
				t.Setenv(name, value)
			}
			_, err := Load(Source{Dir: write(t, test.file)})
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got:\n%v\nwant in it:\n%s", err, want)
				}
			}
		})
	}
}

// TestOutbound reads what holds for the requests of plugins. A proxy's password is not shown.
func TestOutbound(t *testing.T) {
	c := load(t, Source{Dir: write(t, `
outbound: {proxy: "http://aki:secret@proxy.example:3128"}
plugin: {hr: {http: {kot: {rate: 0.5, burst: 5, retries: 0}, freee: {retries: 3, trace: true}}}}
`)})
	want := map[string]httpbroker.RuleOptions{"kot": {Rate: 0.5, Burst: 5, Retries: -1},
		"freee": {Retries: 3, Trace: true}}
	if got := c.Plugin["hr"].HTTP; !maps.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := c.ProxyURL(); got.String() != "http://aki:secret@proxy.example:3128" {
		t.Errorf("the proxy is %s", got)
	}
	shown := map[string]Entry{}
	for _, e := range c.Entries() {
		shown[e.Key] = e
	}
	if e := shown["outbound.proxy"]; e.Value != "http://aki:xxxxx@proxy.example:3128" || e.Origin != "hako.yaml:2" {
		t.Errorf("the proxy is shown as %+v", e)
	}
	if e := shown["plugin.hr.http.kot.rate"]; e.Value != "0.5" || e.Origin != "hako.yaml:3" {
		t.Errorf("the rate is shown as %+v", e)
	}
	if c := load(t, Source{Dir: write(t, "log: {}\n")}); c.ProxyURL() != nil {
		t.Errorf("without a proxy: %s", c.ProxyURL())
	}
}

// slackFile has a workspace of Slack with these partners.
func slackFile(partners string) string {
	return "slack: {workspaces: [{name: acme, tenant: acme-inc, botToken: {env: A}, appToken: {env: B}, partners: " +
		partners + "}]}\n"
}

func TestSlackPartners(t *testing.T) {
	c := load(t, Source{Dir: write(t, slackFile("{T0PARTNER: guests, E0ALLIES: allies}"))})
	if len(c.Slack) != 1 || !maps.Equal(c.Slack[0].Partners, map[string]string{"T0PARTNER": "guests", "E0ALLIES": "allies"}) {
		t.Errorf("%+v", c.Slack)
	}
}

func TestMissingFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(Source{Dir: dir, File: "prod.yaml"}); err == nil ||
		!strings.Contains(err.Error(), filepath.Join(dir, "prod.yaml")+" does not exist") {
		t.Errorf("got %v", err)
	}
	if c := load(t, Source{Dir: dir, Default: []byte("locale: ja")}); c.File != "" || c.Locale != "ja" {
		t.Errorf("got %q and %q, want the built-in default", c.File, c.Locale)
	}
}

func TestUnknownVariables(t *testing.T) {
	settings := new(Config).table()
	environ := []string{
		"HAKO_HTTP_ADDRES=x", "HAKO_QUITE_ANOTHER=x", "HAKO_HTTP_ADDRESS=x", "HAKO_CONFIG=x", "PATH=x",
		"HAKO_SERVICE_HOST=10.0.0.1", "HAKO_PORT=tcp://10.0.0.1:8420", "HAKO_PORT_8420_TCP_ADDR=10.0.0.1",
		"HAKO_SERVICE_PORT_HTTP=8420",
		"HAKO_SECRETS_KEY=x", // the file names it
		"HAKO_AUDIT_KEY=x",   // and not this one
	}
	want := []string{
		"the environment variable HAKO_HTTP_ADDRES has no effect: did you mean HAKO_HTTP_ADDRESS?",
		"the environment variable HAKO_QUITE_ANOTHER has no effect",
		"the environment variable HAKO_AUDIT_KEY has no effect unless the configuration file names it: " +
			"audit.key: {env: HAKO_AUDIT_KEY}",
	}
	secrets := []Secret{{Source: secret.Source{Env: "HAKO_SECRETS_KEY"}}}
	if got := unknownVariables(environ, settings, secrets); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestDocumented holds docs/configuration.md against the code: every key with its default and its variable, and no
// other.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) > 4 && strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			documented[strings.Trim(cells[1], " `")] = []string{strings.Trim(cells[2], " `"),
				strings.Trim(cells[3], " `")}
		}
	}
	for _, s := range new(Config).table() {
		row, ok := documented[s.key]
		if !ok {
			t.Errorf("%s is not documented", s.key)
			continue
		}
		delete(documented, s.key)
		if s.fallback != "" && row[0] != s.fallback {
			t.Errorf("the default of %s is documented as %q, and is %q", s.key, row[0], s.fallback)
		}
		if want := append(s.environment(), "")[0]; row[1] != want {
			t.Errorf("the variable of %s is documented as %q, and is %q", s.key, row[1], want)
		}
	}
	for key, row := range documented {
		if row[1] != "" {
			t.Errorf("%s is documented and no setting", key)
		}
	}
}

// TestModelsOfTheFile reads what is not a plain number or text of a model.
func TestModelsOfTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hako.yaml")
	text := "llm: {models: [{name: a, provider: openai, model: m, key: {env: K}}, {name: b, provider: openai, model: m, key: {env: K}, retries: 0, images: true, deferTools: false}, {name: c, provider: openai, model: m, key: {env: K}, retries: 7}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Source{File: file})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, -1, 7} {
		if got := c.LLM.Models[i]; got.Retries != want || got.Images != (i == 1) ||
			(got.DeferTools != nil) != (i == 1) {
			t.Errorf("model %s has retries %d, images %v, deferTools %v", got.Name, got.Retries, got.Images,
				got.DeferTools)
		}
	}
}

// TestSigners reads whose signatures count. The files that say so are hako's own: no plugin may write them.
func TestSigners(t *testing.T) {
	dir := write(t, `
signatures: {required: true, trustedRoot: root.json}
signers:
  acme: {for: [registry.example.com/tools/*], key: keys/acme.pub}
  ci: {for: ["*"], issuer: "https://accounts.example.com", subjectRegexp: ".*@example[.]com"}
`)
	c := load(t, Source{Dir: dir})
	if !c.Signatures.Required || len(c.Signatures.Trusted) != 2 || c.Signatures.Trusted["ci"].Subject != "" {
		t.Errorf("%+v", c.Signatures)
	}
	for _, file := range []string{"root.json", filepath.Join("keys", "acme.pub")} {
		if !slices.Contains(c.OwnFiles(), filepath.Join(dir, file)) {
			t.Errorf("%s is not among %q", file, c.OwnFiles())
		}
	}
}

// TestRegistries reads the settings for registries, and refuses wrong ones by line.
func TestRegistries(t *testing.T) {
	dir := write(t, "registries:\n  registry.example.com: {mirrors: [mirror.example.com/cache], ca: ca.pem}\n  localhost:5000: {}\n")
	c := load(t, Source{Dir: dir})
	h := c.Registries["registry.example.com"]
	if len(c.Registries) != 2 || h.CA != filepath.Join(dir, "ca.pem") || !slices.Equal(h.Mirrors, []string{"mirror.example.com/cache"}) {
		t.Errorf("got %+v", c.Registries)
	}
	c = load(t, Source{Dir: write(t, "registries: {Registry-1.Docker.io: {ca: ca.pem}}\n"+
		"index: {plugins: ['OCI://index.docker.io/tools/index:1']}\n")})
	if of := c.Registry(true).Registries; len(of) != 1 || of["docker.io"].CA == "" {
		t.Errorf("other names of Docker Hub: %+v", of)
	}
	for text, want := range map[string]string{
		"registries: {example: {}}":                               `"example" is not a registry host`,
		"registries: {https://x.example: {}}":                     "is not a registry host",
		"registries: {x.example: {mirrors: [https://x.example]}}": "is neither HOST nor HOST/PATH",
		"registries: {x.example: {mirror: [x.example]}}":          `did you mean "mirrors"`,
		"registries: {x.example/tools: {}}":                       "is not a registry host",
		"registries: {docker.io: {}, index.docker.io: {}}":        "docker.io has settings under another name too",
		"registries: {x.example: {}, 'X.example.:443': {}}":       "x.example has settings under another name too",
	} {
		if _, err := Load(Source{Dir: write(t, text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestAuthFiles: credentials are looked for where Podman and Docker keep them.
func TestAuthFiles(t *testing.T) {
	t.Setenv("REGISTRY_AUTH_FILE", "")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1")
	t.Setenv("XDG_CONFIG_HOME", "/home/aki/.config")
	t.Setenv("DOCKER_CONFIG", "/home/aki/docker")
	want := []string{filepath.Join("/run/user/1", "containers", "auth.json"),
		filepath.Join("/home/aki/.config", "containers", "auth.json"), filepath.Join("/home/aki/docker", "config.json")}
	if got := authFiles(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	t.Setenv("REGISTRY_AUTH_FILE", "/auth.json")
	if got := authFiles(); !slices.Equal(got, []string{"/auth.json"}) {
		t.Errorf("got %q", got)
	}
}

// TestToolsets reads toolsets with all their fields, and refuses wrong ones by line.
func TestToolsets(t *testing.T) {
	c := load(t, Source{Dir: write(t, `
toolsets:
  search: {tools: 100, tokens: 20000}
  rules:
    - {groups: [support], frontends: [slack], channels: [C1], toolset: support}
    - {users: [ken], tenants: [acme], tokens: [ci], toolset: all}
  sets:
    support:
      description: For the help desk
      tools:
        - ticket_*
        - {tool: file_read, rename: manual, fix: {path: {a: [1, true]}}, hide: [limit], description: {en: Reads., ja: 読む。}, short: true, pin: true}
      except: [ticket_delete]
      resources: ["docs://*"]
      prompts: [triage]
      for: {groups: [support]}
`)})
	if c.Toolsets.Search != (toolset.Search{Tools: 100, Tokens: 20000}) {
		t.Errorf("search: %+v", c.Toolsets.Search)
	}
	set := c.Toolsets.Set("support")
	if len(set.Tools) != 2 || set.Tools[0].Pattern != "ticket_*" || set.Tools[1].Rename != "manual" ||
		string(set.Tools[1].Fix["path"]) != `{"a":[1,true]}` || set.Tools[1].Description["ja"] != "読む。" || !set.Tools[1].Short ||
		set.Tools[1].Hide[0] != "limit" || set.Except[0] != "ticket_delete" || set.For.Groups[0] != "support" ||
		set.Resources[0] != "docs://*" || set.Prompts[0] != "triage" {
		t.Errorf("%+v", set)
	}
	by := toolset.Caller{Frontend: "slack", Channel: "C1", Groups: []string{"support"}}
	if got := c.Toolsets.For(&by); got != "support" {
		t.Errorf("the rules give %s", got)
	}
	if c := load(t, Source{Dir: write(t, "toolset: a\ntoolsets: {sets: {a: {}}}\n")}); c.Toolsets.Local != "a" {
		t.Errorf("the set of the terminal is %q", c.Toolsets.Local)
	}
	if _, err := Load(Source{Dir: write(t, "toolset: b\ntoolsets: {sets: {bb: {}}}\n")}); err == nil ||
		!strings.Contains(err.Error(), `unknown toolset "b": did you mean "bb"`) {
		t.Errorf("an unknown set: %v", err)
	}
	for text, want := range map[string]string{
		"{sets: {All: {}}}": `"All" cannot be a name`,
		"{sets: {all: {}}}": `"all" means all tools`,
		"{sets: {a: {tools: [{tool: 'x*', rename: y}]}}}":           "rename is for one",
		"{sets: {a: {tools: [{rename: y}]}}}":                       "must name a tool",
		"{sets: {a: {for: {}}}}":                                    "must name users, groups, tenants or tokens",
		"{sets: {support: {}}, rules: [{toolset: suport}]}":         `did you mean "support"`,
		"{search: {tools: 0}}":                                      "a whole number",
		"{rules: [{users: [a]}]}":                                   "must name a toolset",
		"{sets: {a: {}}, rules: [{frontends: [slak], toolset: a}]}": `did you mean "slack"`,
		"{sets: {a: {tools: [{tool: x, fix: {b: 1}, hide: [b]}]}}}": "is in fix, which hides it",
		"{sets: {a: {tool: [x]}}}":                                  `did you mean "tools"`,
	} {
		_, err := Load(Source{Dir: write(t, "toolsets: "+text+"\n")})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "hako.yaml:1") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestToolsetYAML: a set as YAML, as the console shows it, is read as the same set.
func TestToolsetYAML(t *testing.T) {
	t.Parallel()
	set := &toolset.Set{
		Name: "support", Description: "yes: # no", Except: []string{"*_delete", "null"}, Resources: []string{"docs://*"}, Prompts: []string{"*"},
		Tools: []toolset.Tool{
			{Pattern: "ticket_*"}, {Pattern: "true"}, {Pattern: "plain", Description: manifest.Text{"en": ""}},
			{Pattern: "file_read", Rename: "on", Hide: []string{"12", "a: b"}, Description: manifest.Text{"en": "Reads.\nAll.", "ja": "読む。"},
				Short: true, Pin: true, Fix: map[string]json.RawMessage{
					"a": json.RawMessage(`{"b":[1,-2.50,1e5,true,null,"null","\ud83d\ude00"],"c d":{}}`), "n": json.RawMessage(`12345678901234567890`),
					"t": json.RawMessage(`"12"`), "e": json.RawMessage(`""`),
				}},
		},
		For: &toolset.People{Users: []string{"aki@example.com"}, Groups: []string{"a", "b"}, Tenants: []string{"t"}, Tokens: []string{"no"}},
	}
	text, err := set.YAML()
	if err != nil {
		t.Fatal(err)
	}
	got := load(t, Source{Dir: write(t, string(text))}).Toolsets.Set("support")
	set.Tools[2].Description = nil // it has no text, so there is none
	set.Tools[3].Fix["a"] = json.RawMessage(`{"b":[1,-2.50,1e5,true,null,"null","😀"],"c d":{}}`)
	want, _ := json.MarshalIndent(set, "", " ")
	if have, _ := json.MarshalIndent(got, "", " "); string(have) != string(want) {
		t.Errorf("%s\nis read as %s\nwant %s", text, have, want)
	}
}

// TestToolsetRulesYAML: rules as YAML, as the console shows them, are read as the same rules.
func TestToolsetRulesYAML(t *testing.T) {
	t.Parallel()
	rules := []toolset.Rule{
		{People: toolset.People{Users: []string{"no", "a: b"}, Tokens: []string{"12"}}, Frontends: []string{"slack"}, Channels: []string{"C1", "null"}, Set: "all"},
		{People: toolset.People{Groups: []string{"# g"}, Tenants: []string{"日本"}}, Set: "all"}, {Set: "all"},
	}
	text, err := toolset.RulesYAML(rules)
	if err != nil {
		t.Fatal(err)
	}
	got := load(t, Source{Dir: write(t, string(text))}).Toolsets.Rules
	want, _ := json.Marshal(rules)
	if have, _ := json.Marshal(got); string(have) != string(want) {
		t.Errorf("%s\nis read as %s\nwant %s", text, have, want)
	}
}
