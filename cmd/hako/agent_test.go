package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/hako-run/hako/dev/fakes/managedagents"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/frontend/agent"
)

func TestAgentTools(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	put(t, filepath.Join(dir, "hako.policy.yaml"),
		[]byte("version: 1\nrules:\n  - {name: no failing, action: deny, tools: [probe_fail], frontends: [agent]}\n"))
	o := invoke(t, dir, "agent", "tools")
	var list []agent.Definition
	if err := json.Unmarshal([]byte(o.stdout), &list); err != nil || o.code != exitOK {
		t.Fatalf("%v: %s", err, o)
	}
	names := map[string]bool{}
	for _, d := range list {
		names[d.Name] = true
		if d.Type != "custom" || d.Description == "" || !strings.Contains(string(d.InputSchema), `"object"`) {
			t.Errorf("%+v", d)
		}
	}
	if !names["probe_echo"] || names["probe_fail"] {
		t.Errorf("the tools are %v", names)
	}
}

// agentPlace is a directory with the probe, and a configuration for a fake.
func agentPlace(t *testing.T) (dir string, fake *managedagents.Server) {
	t.Helper()
	return agentPlaceWith(t, "", "")
}

// agentPlaceWith is agentPlace with more settings of agents, and of others.
func agentPlaceWith(t *testing.T, agent, more string) (dir string, fake *managedagents.Server) {
	t.Helper()
	fake = &managedagents.Server{Key: "secret"}
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	dir = workplace(t, fmt.Sprintf("agent: {key: {file: key}, baseUrl: %q, user: robot%s}\n%s", server.URL, agent,
		more),
		"\"Waits for its end.\"\n    annotations: {readOnlyHint: true}", "\"Waits for its end.\"") // which says nothing of effects
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitOK)
	put(t, filepath.Join(dir, "key"), []byte("secret"))
	return dir, fake
}

func probeCall(tool string, input map[string]any) managedagents.Call {
	return managedagents.Call{Tool: tool, Input: input}
}

// agentResult waits for the result of a call, and returns it as JSON.
func agentResult(t *testing.T, fake *managedagents.Server, session, call string) string {
	t.Helper()
	result := ""
	waitUntil(t, "result of "+call, func() bool {
		events, _ := fake.Events(session)
		for _, e := range events {
			if e["custom_tool_use_id"] == call {
				encoded, _ := json.Marshal(e) // it was read from JSON
				result = string(encoded)
			}
		}
		return result != ""
	})
	return result
}

func TestAgentRun(t *testing.T) {
	t.Parallel()
	dir, fake := agentPlace(t)
	session := fake.NewSession()
	ids := fake.Call(session, "", probeCall("probe_echo", map[string]any{"text": "hello"}),
		probeCall("probe_fail", map[string]any{"text": "x"}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done, stderr := make(chan int, 1), new(watched)
	go func() {
		done <- (&app{stdin: strings.NewReader(""), stdout: stderr, stderr: stderr}).run(ctx,
			[]string{"-C", dir, "agent", "run", "--agent", managedagents.DefaultAgent})
	}()
	if got := agentResult(t, fake, session, ids[0]); !strings.Contains(got, "hello") ||
		strings.Contains(got, `"is_error":true`) {
		t.Errorf("got %s", got)
	}
	if got := agentResult(t, fake, session, ids[1]); !strings.Contains(got, "no: x") ||
		!strings.Contains(got, `"is_error":true`) {
		t.Errorf("got %s", got)
	}
	cancel()
	if code := <-done; code != exitOK || strings.Contains(stderr.String(), "secret") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	invoke(t, dir, "agent", "status").want(t, exitOK, "No calls.")
	invoke(t, dir, "agent", "status", "--all").want(t, exitOK, session, ids[0], "probe_echo", "sent")
	invoke(t, dir, "audit", "tail", "--json").want(t, exitOK, `"frontend":"agent"`, `"user":"robot"`, ids[0], session)
	invoke(t, dir, "policy", "explain", "probe_echo", "--frontend", "agent").want(t, exitOK, "allow")
}

func TestAgentRunProblems(t *testing.T) {
	t.Parallel()
	dir, fake := agentPlace(t)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing to follow": {nil, "name an agent in agent.agents"},
		"no ID":             {[]string{"--session", "../x"}, "is not an ID"},
		"another way":       {[]string{"--agent", "agent_1", "--follow", "push"}, "must be stream or poll"},
		"arguments":         {[]string{"x"}, "takes no arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invoke(t, dir, append([]string{"agent", "run"}, test.args...)...).want(t, exitUsage, test.want)
		})
	}
	t.Run("all sessions have ended", func(t *testing.T) {
		t.Parallel()
		session := fake.NewSession()
		fake.Terminate(session)
		invoke(t, dir, "agent", "run", "--session", session).want(t, exitOK, "a session has ended")
	})
	t.Run("the key is refused", func(t *testing.T) {
		t.Parallel()
		dir, _ := agentPlace(t)
		put(t, filepath.Join(dir, "key"), []byte("wrong-key"))
		o := invoke(t, dir, "agent", "run", "--agent", "agent_1")
		o.want(t, exitUsage, "check agent.key")
		if strings.Contains(o.stderr, "wrong-key") {
			t.Errorf("the key is shown: %s", o)
		}
	})
}

// TestAgentKilled kills the process in the middle of a call: the next one says so, and does not make the call again.
func TestAgentKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGKILL")
	}
	dir, fake := agentPlace(t)
	session := fake.NewSession()
	run := func() *exec.Cmd {
		process := exec.CommandContext(t.Context(), os.Args[0], "-C", dir, "agent", "run", "--session", session)
		process.Env = append(os.Environ(), asProgram+"=1")
		process.Stderr = t.Output()
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		return process
	}
	first := run()
	ids := fake.Call(session, "", probeCall("probe_wait", map[string]any{}))
	waitUntil(t, "running call", func() bool {
		return strings.Contains(invoke(t, dir, "agent", "status").stdout,
			"running")
	})
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	invoke(t, dir, "agent", "status").want(t, exitOK, "running, left")
	second := run()
	if got := agentResult(t, fake, session, ids[0]); !strings.Contains(got, "in the middle of this call") ||
		!strings.Contains(got, `"is_error":true`) {
		t.Errorf("got %s", got)
	}
	if err := second.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- second.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the second process: %v", err)
		}
	case <-testwait.Context(t).Done():
		t.Error("the second process does not end")
	}
	invoke(t, dir, "audit", "query", "--action", "agent.call").want(t, exitOK, "probe_wait")
}

// TestAgentGrace ends while a tool runs, with the grace of the configuration.
func TestAgentGrace(t *testing.T) {
	t.Parallel()
	dir, fake := agentPlace(t)
	path := filepath.Join(dir, "hako.yaml")
	put(t, path, append(must(os.ReadFile(path)), "shutdown: {grace: 1ms}\n"...))
	session := fake.NewSession()
	fake.Call(session, "", probeCall("probe_wait", map[string]any{}))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stderr, done := new(watched), make(chan int, 1)
	go func() {
		a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: stderr, exit: func(int) {}}
		done <- a.run(ctx, []string{"-C", dir, "agent", "run", "--session", session})
	}()
	waitUntil(t, "running call", func() bool {
		return strings.Contains(invoke(t, dir, "agent", "status").stdout, "running")
	})
	stop()
	<-done
	if !strings.Contains(stderr.String(), "grace=1ms") {
		t.Errorf("running tools had another grace:\n%s", stderr)
	}
}

// TestAgentReload has "hako agent run" take up sessions, limits and plugins, and go on where the configuration is not
// usable.
func TestAgentReload(t *testing.T) {
	t.Parallel()
	dir, fake := agentPlace(t)
	path := filepath.Join(dir, "hako.yaml")
	before := string(must(os.ReadFile(path)))
	first, second := fake.NewSession(), fake.NewSession()
	orders, stderr, done := make(chan os.Signal), new(watched), make(chan int, 1)
	change := func(settings, more, want string) {
		t.Helper()
		reported := stderr.await(want)
		put(t, path, []byte(strings.Replace(before, "user: robot", "user: robot, sessions: ["+settings, 1)+more))
		orders <- syscall.SIGHUP
		select {
		case <-reported:
		case <-testwait.Context(t).Done():
			t.Fatalf("there is no %q in\n%s", want, stderr)
		}
	}
	put(t, path, []byte(strings.Replace(before, "user: robot", "user: robot, sessions: ["+first+"]", 1)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		done <- (&app{stdin: strings.NewReader(""), stdout: stderr, stderr: stderr, hangups: orders}).run(ctx,
			[]string{"-C", dir, "agent", "run"})
	}()
	says := func(session, text string) string {
		t.Helper()
		return agentResult(t, fake, session,
			fake.Call(session, "", probeCall("probe_echo", map[string]any{"text": text}))[0])
	}
	says(first, "one")
	change(first+", "+second+"], maxResult: 4B", "", "applied=\"[agent.maxResult agent.sessions]\"")
	if got := says(second, "a long text"); !strings.Contains(got, "cut off") {
		t.Errorf("the new limit does not hold: %s", got)
	}
	change(first+"], tenant: nobody", "", "agent.tenant: unknown tenant")
	change(first+"], poll: soon", "", "agent.poll")
	says(second, "still there")
	change(first+", "+second+"]", "plugin: {probe: {prefix: x_}}\nhttp: {address: 127.0.0.1:1}\nmemoryBudget: 1GiB\n",
		"applied=\"[agent.maxResult plugin.probe.prefix]\" restart=[memoryBudget] others=[http.address]")
	call := fake.Call(first, "", probeCall("x_probe_echo", map[string]any{"text": "a longer text"}))[0]
	if got := agentResult(t, fake, first, call); !strings.Contains(got, "a longer text") {
		t.Errorf("the plugin has not changed: %s", got)
	}
	cancel()
	if code := <-done; code != exitOK {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	invoke(t, dir, "audit", "query", "--action", "configuration.reload", "--json").want(t, exitOK,
		`"frontend":"signal"`, "agent.sessions")
}
