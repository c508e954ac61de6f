package main

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/policy/policytest"
)

const testPolicy = `version: 1
groups: {interns: [ken], admins: [aki]}
employees: {U045GHIJKL: "102", Aki@Example.com: "103"}
rules:
  - name: logs are private
    action: deny
    tools: [probe_log]
    when: '!("admins" in groups)'
  - name: no long texts
    action: deny
    tools: ["probe/*"]
    when: size(arguments.text) > 5
    reason: {en: texts are short here, ja: 短い文だけにしてください}
  - {name: writers, action: deny, tools: [probe_show], missingScopes: [write]}
  - {name: own numbers, action: allow, frontends: [slack], tools: [probe_echo], when: has(caller.employee) && arguments.text == caller.employee}
  - name: ask interns
    action: ask
    groups: [interns]
    approvers: {groups: [admins]}
    remember: 10m
tool_permissions: {probe_read: requires_confirmation, probe_now: deny}
commands:
  - {name: no pushes, action: deny, programs: [git], args: [push]}
`

// policed is a workplace with an approved plugin and a policy.
func policed(t *testing.T, text string) string { return policedIn(t, "en", text) }

// policedIn is policed with a language.
func policedIn(t *testing.T, language, text string) string {
	t.Helper()
	dir := approved(t, "locale: "+language+"\nhttp: {auth: {tokens: [{name: ci, hash: 'sha256:"+strings.Repeat("0", 64)+
		"', user: ken, tenant: acme}]}}\n")
	put(t, filepath.Join(dir, "hako.policy.yaml"), []byte(text))
	return dir
}

// TestPolicyCommands compares what the commands print.
func TestPolicyCommands(t *testing.T) {
	t.Parallel()
	dir, japanese := policed(t, testPolicy), policedIn(t, "ja", testPolicy)
	put(t, filepath.Join(dir, "cases.yaml"), []byte(`version: 1
cases:
  - {name: admins see logs, tool: probe_log, as: {user: aki}, arguments: {text: a}, want: allow}
  - {name: interns are asked, tool: probe_log, as: {token: ci}, arguments: {text: a}, want: ask, rule: ask interns}
  - {tool: probe_echo, as: {frontend: slack, email: aki@example.com}, arguments: {text: "103"}, want: allow, rule: own numbers}
  - {tool: probe_echo, arguments: {text: abcdef}, want: deny, rule: no long texts}
  - {name: a tool that is elsewhere, tool: drop, plugin: db, as: {frontend: slack}, hints: {openWorld: false}, want: allow}
commands:
  - {line: git push --force, want: deny, rule: no pushes}
  - {name: reading is free, line: git status, want: ask}
  - {line: "rm -rf 'x", want: deny, rule: rm -rf}
`))
	put(
		t,
		filepath.Join(dir, "wrong.yaml"),
		[]byte(
			"version: 1\nquotsa: []\nrules:\n  - {name: a, action: forbid}\n  - {name: b, action: deny, when: usr == 'x'}\n",
		),
	)
	put(
		t,
		filepath.Join(dir, "doubtful.yaml"),
		[]byte(
			"version: 1\nrules:\n  - {name: a, action: deny, tools: [\"probe_*\"]}\n  - {name: b, action: allow, tools: [probe_echo]}\n  - {name: c, action: deny, tools: [probe_ecko], frontends: [http]}\n",
		),
	)
	for name, test := range map[string]struct {
		code int
		args []string
	}{
		"check":           {exitOK, []string{"check"}},
		"check-wrong":     {exitFailed, []string{"check", "wrong.yaml"}},
		"check-doubtful":  {exitOK, []string{"check", "doubtful.yaml"}},
		"check-strict":    {exitFailed, []string{"check", "--strict", "doubtful.yaml"}},
		"explain":         {exitOK, []string{"explain", "probe_log", "--as", "ken", "--arguments", `{"text":"a"}`}},
		"explain-passed":  {exitOK, []string{"explain", "probe_echo", "--as", "ken", "--arguments", `{"text":"a"}`}},
		"explain-depends": {exitOK, []string{"explain", "probe_echo", "--token", "ci"}},
		"explain-default": {exitOK, []string{"explain", "probe_show", "--frontend", "terminal", "--arguments", "{}"}},
		"explain-email": {exitOK, []string{"explain", "probe_echo", "--frontend", "slack", "--as", "U0AKI",
			"--email", "aki@example.COM", "--arguments", `{"text":"103"}`}},
		"explain-user": {exitOK, []string{"explain", "probe_echo", "--frontend", "slack", "--as", "U045GHIJKL",
			"--email", "aki@example.com", "--arguments", `{"text":"103"}`}},
		"explain-scope": {exitOK, []string{"explain", "probe_show", "--scope", "read", "--arguments", `{"text":"a"}`}},
		"explain-json": {exitOK, []string{"explain", "probe_echo", "--as", "ken", "--tenant", "acme", "--arguments",
			`{"text":"a"}`, "--json"}},
		"table":       {exitOK, []string{"table"}},
		"table-email": {exitOK, []string{"table", "--frontend", "slack", "--email", "aki@example.com"}},
		"table-ken":   {exitOK, []string{"table", "--as", "ken"}},
		"table-json":  {exitOK, []string{"table", "--group", "admins", "--json"}},
		"test":        {exitFailed, []string{"test", "cases.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := invoke(t, dir, append([]string{"policy"}, test.args...)...)
			o.want(t, test.code)
			golden(t, filepath.Join("policy", name+".txt"), strings.ReplaceAll(o.stdout, dir, "DIR"))
			if test.args[0] == "explain" && name != "explain-json" {
				o = invoke(t, japanese, append([]string{"policy"}, test.args...)...)
				golden(t, filepath.Join("policy", name+".ja.txt"), o.stdout)
			}
		})
	}
}

// TestPolicyJapanese: what is wrong with a policy or with cases is in the configured language, also where a command only
// reads the policy.
func TestPolicyJapanese(t *testing.T) {
	t.Parallel()
	dir := approved(t, "locale: ja\n")
	put(t, filepath.Join(dir, "hako.policy.yaml"), []byte("version: 1\nrules: [{name: b, action: deny, when: usr == 'x'}]\n"))
	const usr = `1 文字目: 変数 "usr" はありません。"user" の誤りではありませんか`
	invoke(t, dir, "policy", "check").want(t, exitFailed, "hako.policy.yaml:2:39: error: rules[0].when: "+usr)
	invoke(t, dir, "policy", "explain", "probe_echo").want(t, exitUsage, "ポリシー ", usr)
	invoke(t, dir, "policy", "table").want(t, exitUsage, usr)
	put(t, filepath.Join(dir, "hako.policy.yaml"), []byte("version: 1\n"))
	put(t, filepath.Join(dir, "next.yaml"), []byte("version: 1\nrules: [{name: b, action: deny, when: usr == 'x'}]\n"))
	invoke(t, dir, "policy", "try", "next.yaml").want(t, exitUsage, usr)
	put(t, filepath.Join(dir, "cases.yaml"), []byte("version: 1\n"))
	invoke(t, dir, "policy", "test", "cases.yaml").want(t, exitUsage, "ケースがありません")
}

// TestPolicyToken: --token - takes a token from standard input, and says why the server refuses it, without repeating it.
func TestPolicyToken(t *testing.T) {
	t.Parallel()
	keys := new(oidctest.Server)
	issuer := httptest.NewServer(keys)
	t.Cleanup(issuer.Close)
	keys.SetIssuer(issuer.URL)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys.PublicKeys = []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "k", Algorithm: oidc.RS256}}
	own, hash := bearer.New()
	dir := approved(t, fmt.Sprintf(`http:
  auth:
    tokens: [{name: ci, hash: %q, user: ken}]
    oauth: {resource: "https://hako.example.com/mcp", groupsClaim: groups, issuers: [{url: %q}]}
`, hash, issuer.URL))
	put(t, filepath.Join(dir, "hako.policy.yaml"), []byte(testPolicy))
	signed := func(audience string, expires time.Duration) string {
		return oidctest.SignIDToken(key, "k", oidc.RS256, fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":"mori","iat":%d,"exp":%d,
			"groups":["admins"],"scope":"read write"}`, issuer.URL, audience, time.Now().Unix(), time.Now().Add(expires).Unix()))
	}
	const resource = "https://hako.example.com/mcp"
	valid := signed(resource, time.Hour)
	for name, test := range map[string]struct {
		token string
		args  []string
		code  int
		want  string
	}{
		"groups":           {valid, []string{"explain", "probe_log", "--arguments", "{}"}, exitOK, "called by mori of admins at mcp-http"},
		"scopes":           {valid, []string{"explain", "probe_show", "--arguments", `{"text":"a"}`, "--json"}, exitOK, `"write"`},
		"in a table":       {valid + "\n", []string{"table"}, exitOK, "probe_log"},
		"of hako":          {own, []string{"explain", "probe_log"}, exitOK, "called by ken"},
		"for another":      {signed("x", time.Hour), []string{"explain", "probe_log"}, exitUsage, `its audience is not "` + resource},
		"expired":          {signed(resource, -time.Hour), []string{"explain", "probe_log"}, exitUsage, "it expired at "},
		"changed":          {valid[:len(valid)-8] + "AAAAAAAA", []string{"table"}, exitUsage, "the server refuses this token: the token is not valid here\n"},
		"nothing":          {"", []string{"table"}, exitUsage, "standard input has no token"},
		"two users":        {valid, []string{"table", "--as", "aki"}, exitUsage, "leave out the user"},
		"and arguments":    {valid, []string{"explain", "probe_log", "--arguments", "-"}, exitUsage, "standard input cannot be read for both --token - and --arguments -"},
		"the command line": {"", []string{"table", "--token", valid}, exitUsage, "give it on standard input with --token -"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"policy"}, test.args...)
			if name != "the command line" {
				args = append(args, "--token", "-")
			}
			o := invokeWith(t, dir, test.token, args...)
			o.want(t, test.code, test.want)
			if test.token != "" && strings.Contains(o.stdout+o.stderr, strings.TrimSpace(test.token)) {
				t.Error("the token is repeated")
			}
		})
	}
}

func TestPolicyUsage(t *testing.T) {
	t.Parallel()
	dir := policed(t, testPolicy)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no such tool": {[]string{"explain", "probe_ehco"},
			`unknown tool "probe_ehco": did you mean probe_echo or probe_show?`},
		"no such frontend": {[]string{"table", "--frontend", "slak"}, `unknown frontend "slak": did you mean "slack"?`},
		"no such token":    {[]string{"table", "--token", "cj"}, `unknown token "cj": did you mean "ci"?`},
		"no such tenant":   {[]string{"table", "--tenant", "acm"}, `unknown tenant "acm": did you mean "acme"?`},
		"no address": {[]string{"table", "--email", "a@b.test"},
			"callers at mcp-http have no e-mail address besides their name: Slack alone tells it"},
		"one input for two": {[]string{"explain", "probe_echo", "--token", "-", "--arguments", "-"},
			"standard input cannot be read for both --token - and --arguments -: give the value of --token or of"},
		"no arguments": {[]string{"explain", "probe_echo", "--arguments", "[1]"}, "are not a JSON object"},
		"ambiguous": {[]string{"explain", "probe_echo", "--arguments", `{"n":1,"n":2}`},
			`has the duplicate key "n"`},
		"no such file":      {[]string{"check", "nowhere.yaml"}, "hako policy new writes one"},
		"no such cases":     {[]string{"test", "nowhere.yaml"}, "nowhere.yaml"},
		"another policy":    {[]string{"table", "--policy", "hako.yaml"}, `unknown key "plugins"`},
		"a file that is":    {[]string{"new"}, "already exists"},
		"no such command":   {[]string{"chek"}, `did you mean "check"?`},
		"an unknown option": {[]string{"explain", "probe_echo", "--user", "x"}, "unknown flag: --user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invoke(t, dir, append([]string{"policy"}, test.args...)...).want(t, exitUsage, test.want)
		})
	}
}

func TestPolicyCases(t *testing.T) {
	t.Parallel()
	dir := policed(t, testPolicy)
	for name, test := range map[string]struct {
		text string
		code int
		want string
	}{
		"nothing":         {"version: 1", exitUsage, "there are no cases"},
		"another version": {"version: 2\ncases: [{tool: probe_echo, want: deny}]", exitUsage, "must be 1"},
		"no expectation":  {"version: 1\ncases: [{tool: probe_echo}]", exitUsage, "needs a tool and want"},
		"no line":         {"version: 1\ncommands: [{want: deny}]", exitUsage, "needs a line and want"},
		"another word": {"version: 1\ncases: [{tool: probe_echo, want: forbid}]", exitUsage,
			"must be allow, ask or deny"},
		"an unknown key":  {"version: 1\ncases: [{tol: probe_echo}]", exitUsage, `did you mean "tool"?`},
		"an unknown tool": {"version: 1\ncases: [{tool: other, want: deny}]", exitUsage, "says its plugin"},
		"hints of the tool": {"version: 1\ncases: [{tool: probe_echo, hints: {readOnly: true}, want: deny}]", exitUsage,
			"name the plugin too"},
		"all hold": {"version: 1\ncases: [{tool: probe_now, want: deny}]", exitOK, "1 case passed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "cases.yaml")
			put(t, file, []byte(test.text))
			invoke(t, dir, "policy", "test", file).want(t, test.code, test.want)
		})
	}
}

// TestStarterPolicy: what "hako policy new" writes is valid, raises no warning, and asks before what destroys.
func TestStarterPolicy(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	invoke(t, dir, "policy", "new").want(t, exitOK, "wrote "+filepath.Join(dir, "hako.policy.yaml"))
	o := invoke(t, dir, "policy", "check", "--strict")
	o.want(t, exitOK, "is valid")
	p, err := policy.Open(filepath.Join(dir, "hako.policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	for _, test := range []struct {
		call policy.Call
		want policy.Action
	}{
		{policy.Call{Tool: "says_nothing"}, policy.Ask},
		{policy.Call{Tool: "run_code", Plugin: "code", Frontend: policy.FrontendSlack}, policy.Allow},
		{policy.Call{Tool: "says_nothing", Frontend: policy.FrontendSlack}, policy.Deny},
		{hinted(&yes, nil, &yes), policy.Allow},
		{hinted(nil, &no, &no), policy.Allow},
		{hinted(nil, &no, &yes), policy.Ask},
	} {
		if d := p.Decide(&test.call); d.Action != test.want {
			t.Errorf("%+v: %+v", test.call, d)
		}
	}
	// What is commented out is valid too.
	text, err := os.ReadFile(filepath.Join(dir, "hako.policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	uncommented := strings.NewReplacer("groups: {}\n#  ", "groups:\n  ", "tool_permissions: {}\n#  ",
		"tool_permissions:\n  ", "commands: []\n#  ", "commands:\n  ",
		"\n#  ", "\n  ", "\n  # - name:", "\n  - name:", "\n  #   action", "\n    action",
		"\n  #   frontends", "\n    frontends", "\n  #   missingScopes", "\n    missingScopes",
		"\n  #   tools", "\n    tools", "\n  #   when", "\n    when",
		"    # approvers", "    approvers", "    # remember", "    remember").Replace(strings.SplitAfterN(string(text),
		"version: 1\n", 2)[1])
	if p, err = policy.Parse([]byte("version: 1\n" + uncommented)); err != nil {
		t.Fatalf("%v\n%s", err, uncommented)
	}
	if len(p.Rules()) != 9 || len(p.Commands) != 2 || len(p.Quotas) != 2 || len(p.Groups()) != 1 {
		t.Errorf("%d rules, %d for commands, %d quotas, groups %v", len(p.Rules()), len(p.Commands), len(p.Quotas),
			p.Groups())
	}
}

func hinted(readOnly, destructive, openWorld *bool) policy.Call {
	c := policy.Call{Tool: "x", Plugin: "y", Frontend: "mcp-http", Arguments: json.RawMessage("{}")}
	c.Annotations.ReadOnlyHint, c.Annotations.DestructiveHint, c.Annotations.OpenWorldHint = readOnly, destructive,
		openWorld
	return c
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// TestPolicyDocuments: the examples are valid.
func TestPolicyDocuments(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	examples := 0
	for _, page := range []string{"policy.md", "approvals.md"} {
		data, err := os.ReadFile(filepath.Join("../../docs", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(data), -1) {
			text := block[1]
			if !strings.HasPrefix(text, "version: 1\n") {
				text = "version: 1\n" + text
			}
			file := filepath.Join(dir, "example.yaml")
			put(t, file, []byte(text))
			if strings.Contains(text, "\ncases:\n") {
				_, err = policytest.Read(file)
			} else {
				_, err = policy.Open(file)
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", page, err, text)
			}
			examples++
		}
	}
	if examples < 4 {
		t.Errorf("%d examples", examples)
	}
}
