package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/broker/exec/confine"
	"github.com/hako-run/hako/internal/config"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "")
	invoke(t, dir, "doctor").want(t, exitOK, "commands: ", "ok       configuration: "+filepath.Join(dir, "hako.yaml"),
		"ok       policy: there is no policy file",
		"ok       store: "+filepath.Join(dir, "hako.store"), "ok       memory: plugins may use 2GiB together",
		"warning  plugin probe: pending", "-> plugin probe is new: hako plugin approve probe", "0 in service")
	if _, err := os.Stat(filepath.Join(dir, "hako.store")); err == nil {
		t.Error("looking makes the store")
	}
	var findings []finding
	o := invoke(t, approved(t, ""), "doctor", "--json")
	if err := json.Unmarshal([]byte(o.stdout), &findings); err != nil || o.code != exitOK ||
		!strings.Contains(o.stdout, `"message": "1 in service"`) {
		t.Errorf("%v: %s", err, o)
	}
}

// TestLooksChangeNothing: commands that look leave each file and folder as it is, with its times.
func TestLooksChangeNothing(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]func() string{
		"nothing is there": func() string { return workplace(t, "") },
		"used": func() string {
			dir := approved(t, "")
			invoke(t, dir, "call", "probe_echo", `{"text":"a"}`).want(t, exitOK)
			return dir
		},
		"an update waits": func() string {
			dir := approved(t, "")
			put(t, filepath.Join(dir, "plugins", "probe.wasm"), probePlugin(t, asking("{log: true}")...))
			return dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := dir()
			before := snapshot(t, dir)
			for _, command := range [][]string{{"doctor"}, {"config", "check"}, {"config", "show"}} {
				outcome := invoke(t, dir, command...)
				if after := snapshot(t, dir); after != before {
					t.Errorf("%v changed\n%sto\n%s%s", command, before, after, outcome)
				}
			}
		})
	}
}

// snapshot lists what is below dir, with size and time of its last change.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var list strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			fmt.Fprintln(&list, path, info.Size(), info.ModTime().Format(time.RFC3339Nano))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.String()
}

func TestDoctorFinds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(dir string)
		want  string
	}{
		"configuration": {func(dir string) { put(t, filepath.Join(dir, "hako.yaml"), []byte("plugin: [1")) },
			"error    configuration: "},
		"policy": {func(dir string) { put(t, filepath.Join(dir, "hako.policy.yaml"), []byte("rulez: []")) },
			"error    policy: "},
		"plugin": {func(dir string) { put(t, filepath.Join(dir, "plugins", "bad.wasm"), []byte("no wasm")) },
			"error    plugin "},
		"store": {func(dir string) { put(t, filepath.Join(dir, "hako.store"), []byte("a file")) },
			"error    store: "},
		"logins": {func(dir string) {
			put(t, filepath.Join(dir, "hako.yaml"), []byte("console: {enabled: true, address: '0.0.0.0:1'}"))
		}, "error    configuration: console: address 0.0.0.0:1 can be reached from other machines"},
		"certificate": {func(dir string) {
			put(t, filepath.Join(dir, "hako.yaml"), []byte("http: {tls: {cert: missing, key: missing}}"))
		}, "error    configuration: http.tls: "},
		"upstreams": {func(dir string) {
			put(t, filepath.Join(dir, "hako.yaml"), []byte("upstreams: servers.json"))
			put(t, filepath.Join(dir, "servers.json"), []byte("{"))
		}, "error    upstreams: "},
		"secret": {func(dir string) {
			put(t, filepath.Join(dir, "hako.yaml"), []byte("credentials: {kot: {token: {file: missing}}}"))
		}, "error    secret credentials.kot.token: the file " + os.TempDir()},
		"token of Slack": {func(dir string) {
			put(t, filepath.Join(dir, "token"), []byte("xapp-1"))
			put(t, filepath.Join(dir, "hako.yaml"),
				[]byte("slack: {workspaces: [{name: w, botToken: {file: token}, signingSecret: {file: token}}]}"))
		}, "error    secret slack.workspaces[0].botToken: botToken begins with xoxb-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := workplace(t, "")
			test.spoil(dir)
			invoke(t, dir, "doctor").want(t, exitFailed, test.want, "->")
		})
	}
}

func TestDoctorProxy(t *testing.T) {
	t.Parallel()
	environ := func(name string) (string, bool) {
		return map[string]string{"http_proxy": "http://aki:secret@proxy"}[name], true
	}
	found := proxyFindings(&config.Config{}, environ)
	if len(found) != 1 || !strings.Contains(found[0].Message, "http_proxy") ||
		strings.Contains(found[0].Message, "secret") {
		t.Errorf("found %v", found)
	}
	if found := proxyFindings(&config.Config{Proxy: "http://proxy"}, environ); len(found) != 0 {
		t.Errorf("with outbound.proxy: %v", found)
	}
}

// TestMachine holds what is said of machines that this one is not.
func TestMachine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		support confine.Support
		uid     int
		limit   string
		want    string
	}{
		{"everything", confine.Support{Landlock: 7, Namespaces: true, Filter: true}, 1000, "", "ok commands, ok user"},
		{"no namespaces", confine.Support{Landlock: 7, Filter: true}, 1000, "", "warning commands, ok user"},
		{"an old kernel", confine.Support{Namespaces: true, Filter: true}, 1000, "", "warning commands, ok user"},
		{"root", confine.Support{Landlock: 7, Namespaces: true, Filter: true}, 0, "", "ok commands, warning user"},
		{"root of a bounded service", confine.Support{Landlock: 7, Namespaces: true, Filter: true}, 0, "500",
			"ok commands, ok user"},
		{"no users", confine.Support{}, -1, "", "warning commands"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range machine(test.support, test.uid, test.limit) {
				got = append(got, f.Level+" "+f.Check)
				if (f.Level == levelOK) != (f.Remedy == "") {
					t.Errorf("%+v", f)
				}
			}
			if text := strings.Join(got, ", "); text != test.want {
				t.Errorf("%s, want %s", text, test.want)
			}
		})
	}
}
