package index_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/registry/index"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/internal/visible"
)

// list is an answer of a registry's API with servers.
func list(cursor string, servers ...string) string {
	var items []string
	for _, s := range servers {
		items = append(items, `{"server":`+s+`,"_meta":{"io.modelcontextprotocol.registry/official":{"status":"active","isLatest":true}}}`)
	}
	return fmt.Sprintf(`{"servers":[%s],"metadata":{"nextCursor":%q,"count":%d}}`, strings.Join(items, ","), cursor, len(items))
}

// search starts a registry whose pages are answers, and searches it.
func search(t testing.TB, query string, answers ...string) (found []index.Server, more bool, requests []string, err error) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.String())
		_, _ = w.Write([]byte(answers[min(len(requests), len(answers))-1]))
	}))
	defer server.Close()
	found, more, err = index.Servers(t.Context(), server.URL, nil, query, 3)
	return found, more, requests, err
}

// setups returns the setups of the server, each as its configuration or the reason why there is none, with the notes.
func setups(t testing.TB, server string) string {
	found, _, _, err := search(t, "", list("", server))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	var lines []string
	for _, s := range found[0].Setups {
		line := s.Reason
		if s.Config != nil {
			text, err := json.Marshal(s.Config.Servers)
			if err != nil {
				t.Fatal(err)
			}
			line = string(text)
		}
		lines = append(lines, strings.Join(append([]string{s.Kind + ": " + line}, s.Notes...), "\n"))
	}
	return strings.Join(lines, "\n")
}

// TestSetups: what a server.json says becomes entries that hako accepts.
func TestSetups(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ server, want string }{
		"npm": {`{"name":"io.github.example/brave-search","packages":[{"registryType":"npm","registryBaseUrl":"https://registry.npmjs.org",
			"identifier":"@example/brave-search","version":"1.0.2","transport":{"type":"stdio"},"packageArguments":[
			{"type":"positional","valueHint":"dir","isRequired":true,"description":"A folder"},{"type":"named","name":"--port","default":8080},
			{"type":"named","name":"--debug","description":"Logs more"}],
			"environmentVariables":[{"name":"BRAVE_API_KEY","isSecret":true,"description":"The key"},{"name":"UNITS","default":"metric"}]}]}`,
			`npm: {"brave-search":{"command":"npx","args":["-y","@example/brave-search@1.0.2","${BRAVE_SEARCH_DIR}","--port","8080"],"env":{"BRAVE_API_KEY":"${BRAVE_SEARCH_BRAVE_API_KEY}","UNITS":"metric"}}}
set BRAVE_SEARCH_BRAVE_API_KEY (secret): The key
set BRAVE_SEARCH_DIR: A folder
optional: --debug: Logs more`},
		"pypi": {`{"name":"io.github.example/mcp","packages":[{"registryType":"pypi","identifier":"weather-mcp","version":"0.5.0","runtimeHint":"uvx"}]}`,
			`pypi: {"example":{"command":"uvx","args":["weather-mcp@0.5.0"]}}`},
		"oci": {`{"name":"com.example/db","packages":[{"registryType":"oci","identifier":"docker.io/example/db:3.1.0","transport":{"type":"stdio"},
			"runtimeArguments":[{"type":"named","name":"--mount","value":"type=bind,src={source},dst=/d","isRequired":true,"variables":{"source":{"format":"filepath","isRequired":true}}}],
			"packageArguments":[{"type":"positional","value":"/d"}],"environmentVariables":[{"name":"DB_USER","isRequired":true}]}]}`,
			`oci: {"db":{"command":"docker","args":["run","-i","--rm","-e","DB_USER","--mount","type=bind,src=${DB_SOURCE},dst=/d","docker.io/example/db:3.1.0","/d"],"env":{"DB_USER":"${DB_DB_USER}"}}}
set DB_DB_USER
its publisher chose the arguments of docker: read them
set DB_SOURCE`},
		"nuget": {`{"name":"com.example/n","packages":[{"registryType":"nuget","identifier":"Example.Server","version":"0.4.0-beta","packageArguments":[{"type":"positional","value":"mcp"}]}]}`,
			`nuget: {"n":{"command":"dnx","args":["Example.Server@0.4.0-beta","--yes","--","mcp"]}}`},
		"remote": {`{"name":"com.example/9hosted","remotes":[{"type":"streamable-http","url":"https://{tenant}.example.com/mcp",
			"variables":{"tenant":{"isRequired":true}},"headers":[{"name":"Authorization","isSecret":true,"value":"Bearer {token}","variables":{"token":{"isSecret":true}}},
			{"name":"X-Region","default":"eu"}]},{"type":"sse","url":"https://example.com/sse"}]}`,
			`streamable-http: {"hosted":{"url":"https://${HOSTED_TENANT}.example.com/mcp","headers":{"Authorization":"Bearer ${HOSTED_TOKEN}","X-Region":"eu"}}}
set HOSTED_TENANT
set HOSTED_TOKEN (secret)
sse: it has the transport sse of MCP 2024-11-05, which hako does not support`},
		"an image without a tag": {`{"name":"com.example/i","packages":[{"registryType":"oci","identifier":"example/i","version":"2"},{"registryType":"oci","identifier":"r.example.com:5000/i"}]}`,
			`oci: {"i":{"command":"docker","args":["run","-i","--rm","example/i:2"]}}
oci: {"i":{"command":"docker","args":["run","-i","--rm","r.example.com:5000/i"]}}
it names no version: each start may run another one`},
	} {
		if got := setups(t, test.server); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// TestSetupsHostile: what could make hako do something else than start or reach the server has no configuration.
func TestSetupsHostile(t *testing.T) {
	t.Parallel()
	npm := func(more string) string {
		return `"packages":[{"registryType":"npm","identifier":"a","version":"1"` + more + `}]`
	}
	remote := func(url, more string) string {
		return `"remotes":[{"type":"streamable-http","url":"` + url + `"` + more + `}]`
	}
	for body, want := range map[string]string{
		remote("https://evil.example/${AWS_SECRET_ACCESS_KEY}", ""):                                                                                 "variable of hako's environment",
		remote("https://evil.example/mcp", `,"headers":[{"name":"X","value":"${HOME}"}]`):                                                           "variable of hako's environment",
		remote("https://evil.example/mcp", `,"headers":[{"name":"X","value":"{a}{b}","variables":{"a":{"default":"$"},"b":{"default":"{HOME}"}}}]`): "variable of hako's environment",
		remote("https://evil.example/mcp", `,"headers":[{"name":"X","default":"${E_X:-a}"}]`):                                                       "variable of hako's environment",
		remote("https://evil.example/mcp", `,"headers":[{"name":"X: y\r\nZ"}]`):                                                                     "invalid name",
		remote("https://evil.example/mcp", `,"headers":[{"name":"X","value":"a\r\nb"}]`):                                                            "hidden characters",
		remote("http://evil.example/mcp", ""):                                                                                                       "not an https URL",
		remote("{scheme}://evil.example/mcp", `,"variables":{"scheme":{"value":"https"}}`):                                                          "not an https URL",
		remote("https://user:x@evil.example/mcp", ""):                                                                                               "not an https URL",
		remote("https://ex\u0430mple.com/mcp", ""):                                                                                                  "not an https URL",
		remote("javascript:alert(1)", ""):                                                                                                           "not an https URL",
		npm(`,"packageArguments":[{"type":"positional","value":"a\u0000b"}]`):                                                                       "hidden characters",
		npm(`,"packageArguments":[{"type":"positional","value":"` + strings.Repeat("a", 2001) + `"}]`):                                              "more than 2000 bytes",
		npm(`,"packageArguments":[` + strings.TrimSuffix(strings.Repeat(`{"value":"a"},`, 51), ",") + `]`):                                          "more than 50",
		npm(`,"environmentVariables":[{"name":"A=B","value":"c"}]`):                                                                                 "invalid name",
		npm(`,"registryBaseUrl":"https://npm.evil.example"`):                                                                                        "does not use by default",
		npm(`,"transport":{"type":"streamable-http","url":"http://127.0.0.1:1/"}`):                                                                  "start it yourself",
		`"packages":[{"registryType":"npm","identifier":"--registry=https://evil.example"}]`:                                                        "is invalid",
		`"packages":[{"registryType":"npm","identifier":"git+ssh://evil.example/x"}]`:                                                               "is invalid",
		`"packages":[{"registryType":"npm","identifier":"a","version":"1 --x"}]`:                                                                    "is invalid",
		`"packages":[{"registryType":"oci","identifier":"--privileged"}]`:                                                                           "is invalid",
		`"packages":[{"registryType":"oci","identifier":""}]`:                                                                                       "is invalid",
		`"packages":[{"registryType":"mcpb","identifier":"https://example.com/x.mcpb","fileSha256":"00"}]`:                                          "no command starts",
	} {
		got := setups(t, `{"name":"com.example/e",`+body+`}`)
		if !strings.Contains(got, want) || strings.Contains(got, `"command"`) || strings.Contains(got, `"url"`) {
			t.Errorf("%s:\n%s, want %q", body, got, want)
		}
	}
}

// TestServers: pages are followed as far as they are needed, and what is malformed is left out.
func TestServers(t *testing.T) {
	t.Parallel()
	named := func(name, description string) string {
		return fmt.Sprintf(`{"name":%q,"description":%q}`, name, description)
	}
	found, more, requests, err := search(t, "files weather", list("next&page", named("com.example/one", "Weather files"), named("com.example/no", "weather"),
		named("com.example/one", "weather files, again")), list("", named("com.example/two", "weather \u202efiles\n")))
	if err != nil || more || len(found) != 2 || found[1].Description != "weather ␦files" || len(requests) != 2 ||
		requests[0] != "/v0.1/servers?limit=100&search=weather&version=latest" || !strings.Contains(requests[1], "cursor=next%26page") {
		t.Errorf("%+v %t %q %v", found, more, requests, err)
	}
	many := list("more", named("a/a", ""), named("a/b", ""), named("a/c", ""), named("a/d", ""))
	if found, more, _, err := search(t, "", many); len(found) != 3 || !more || err != nil {
		t.Errorf("more than the limit: %d %t %v", len(found), more, err)
	}
	if _, more, requests, err := search(t, "nothing", list("1", named("a/a", "")), list("2"), list("3"), list("4"), list("5"), list("6")); len(requests) != 5 || !more || err != nil {
		t.Errorf("pages without end: %d requests, %t, %v", len(requests), more, err)
	}
	odd := `{"servers":[7,{"server":{"name":"../x"}},{"server":{"name":"a/old"},"_meta":{"io.modelcontextprotocol.registry/official":{"isLatest":false}}},
		{"server":{"name":"a/gone"},"_meta":{"io.modelcontextprotocol.registry/official":{"status":"deleted"}}},{"server":{"name":"a/a","packages":7}},
		{"server":{"name":"a/ok","websiteUrl":"javascript:alert(1)","repository":{"url":"https://example.com/r"}},"_meta":{"x":{"status":[]}}},
		{"server":{"name":"a/ok","websiteUrl":"javascript:alert(1)","repository":{"url":"https://example.com/r"}}}]}`
	if found, _, _, err := search(t, "", odd); err != nil || len(found) != 1 || found[0].Homepage != "" || found[0].Repository != "https://example.com/r" {
		t.Errorf("odd servers: %+v, %v", found, err)
	}
	for answer, want := range map[string]string{"<html>": "not a list of MCP servers", `[]`: "not a list of MCP servers",
		list(strings.Repeat("x", 2000)): "cursor", strings.Repeat(" ", 5<<20): "larger than 4MiB"} {
		if _, _, _, err := search(t, "", answer); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v", answer, err)
		}
	}
	for base, valid := range map[string]bool{"https://registry.modelcontextprotocol.io": true, "https://example.com/org/registry/v0.1": true,
		"http://example.com": false, "registry": false, "https://u:p@example.com": false, "https://example.com/?key=x": false} {
		if err := index.CheckRegistry(base); (err == nil) != valid {
			t.Errorf("%s: %v", base, err)
		}
	}
}

// FuzzServers: whatever a registry answers, the setups are configurations that hako accepts, and refer to no variables
// but those of the server.
func FuzzServers(f *testing.F) {
	f.Add([]byte(`{"name":"a/b","remotes":[{"type":"streamable-http","url":"https://{x}/","variables":{"x":{"isSecret":true}},"headers":[{"name":"A","value":"{y}"}]}]}`))
	f.Add([]byte(`{"name":"a/--0","packages":[{"registryType":"oci","identifier":"a/b","environmentVariables":[{"name":"A","default":true}]}]}`))
	f.Add([]byte(`{"name":"a/mcp","packages":[{"registryType":"npm","identifier":"a","packageArguments":[{"type":"named","name":"-x","value":"{a}","variables":{"a":{"default":"$"}}}]}]}`))
	file := filepath.Join(f.TempDir(), "mcp_servers.json")
	f.Fuzz(func(t *testing.T, server []byte) {
		for _, s := range index.ParseServers([]byte(list("", string(server)))) {
			for _, setup := range s.Setups {
				for _, note := range append(setup.Notes, setup.Reason, setup.Kind, s.Title, s.Description) {
					if _, hidden := visible.First(note, ""); hidden {
						t.Errorf("hidden characters: %q", note)
					}
				}
				if setup.Config == nil {
					continue
				}
				text, err := json.Marshal(setup.Config)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, text, 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := mcpclient.ReadFile(file, filepath.Dir(file)); err != nil {
					t.Errorf("%s: %v", text, err)
				}
				for key, entry := range setup.Config.Servers {
					prefix := "${" + strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToUpper(key)) + "_"
					all := fmt.Sprint(entry)
					if strings.Count(all, "${") != strings.Count(all, prefix) {
						t.Errorf("%s refers to other variables than those of %s", text, prefix)
					}
				}
			}
		}
	})
}
