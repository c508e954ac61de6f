package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// probeEcho calls the probe's tool echo over HTTP and returns the answer.
func (s *served) probeEcho(t *testing.T) string {
	t.Helper()
	_, answer := s.rpc(t, "", "tools/call", "probe_echo", `"name":"probe_echo","arguments":{"text":"over HTTP"},`)
	return answer
}

// until waits until the answer of a call holds text.
func (s *served) until(t *testing.T, text string) {
	t.Helper()
	for answer := ""; !strings.Contains(answer, text); answer = s.probeEcho(t) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("the answer stays %s\n%s", answer, s.stderr)
		}
	}
}

// TestPolicyIsLive: a changed policy decides about the next calls; a broken one leaves the old one in force and says
// so.
func TestPolicyIsLive(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	file := filepath.Join(dir, "hako.policy.yaml")
	s := serve(t, dir)
	if answer := s.probeEcho(t); !strings.Contains(answer, `"text":"over HTTP"`) {
		t.Fatalf("without a policy: %s", answer)
	}
	put(
		t,
		file,
		[]byte("version: 1\nrules: [{name: no echoes, action: deny, tools: [probe_echo], reason: too loud}]\n"),
	)
	s.until(t, `no echoes\" denies it: too loud`)
	if _, answer := s.rpc(t, "", "tools/list", "", ""); strings.Contains(answer, "probe_echo") ||
		!strings.Contains(answer, "probe_now") {
		t.Errorf("what is denied is listed: %s", answer)
	}
	if status, body := get(t, s.base()+"/readyz", nil); status != http.StatusOK || body != "hako is ready\n" {
		t.Errorf("/readyz: status %d: %s", status, body)
	}
	put(t, file, []byte("version: 1\nruls: []\n"))
	<-s.stderr.await("the policy file is invalid")
	<-s.stderr.await(`did you mean`)
	if answer := s.probeEcho(t); !strings.Contains(answer, "no echoes") {
		t.Errorf("with a broken policy: %s", answer)
	}
	for path, want := range map[string]string{
		"/readyz": "hako is ready\nthe policy file is invalid", "/metrics": "\nhako_policy_file_broken 1\n",
	} {
		if status, body := get(t, s.base()+path, nil); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: status %d: %.1000s", path, status, body)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	<-s.stderr.await("no such file")
	if answer := s.probeEcho(t); !strings.Contains(answer, "no echoes") {
		t.Errorf("without the file: %s", answer)
	}
	put(t, file, []byte("version: 1\n"))
	s.until(t, `"text":"over HTTP"`)
	if _, body := get(t, s.base()+"/metrics", nil); !strings.Contains(body, "\nhako_policy_file_broken 0\n") ||
		!strings.Contains(body, `hako_policy_decisions_total{action="deny",rule="no echoes"}`) {
		t.Errorf("/metrics: %.3000s", body)
	}
	invoke(t, dir, "audit", "query", "--type", "operator", "--action", "policy.reload").want(t, exitOK, "ok", "failed")
}

func TestServeBrokenPolicy(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	put(t, filepath.Join(dir, "hako.policy.yaml"), []byte("version: 1\nrules: [{name: a, action: deny, tool: [x]}]\n"))
	for _, args := range [][]string{{"serve", "--http", "127.0.0.1:0"}, {"config", "check"}, {"call", "probe_echo", `{"text":"x"}`}} {
		invoke(t, dir, args...).want(t, exitUsage, "hako.policy.yaml",
			`2:33: rules[0]: unknown key "tool": did you mean "tools"?`)
	}
}

// TestServeQuotas: a call beyond a quota is told when to come back, and what was computed counts after a restart.
func TestServeQuotas(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	file := filepath.Join(dir, "hako.policy.yaml")
	put(t, file, []byte("version: 1\nquotas: [{name: calls of a user, rate: 1, burst: 2}]\n"))
	s := serve(t, dir)
	var answer string
	for range 3 {
		answer = s.probeEcho(t)
	}
	if !strings.Contains(answer, `"isError":true`) ||
		!strings.Contains(answer, "quota calls of a user: 1 calls a minute: try again in ") {
		t.Errorf("the third call at once: %s", answer)
	}
	if _, body := get(t, s.base()+"/metrics", nil); !strings.Contains(
		body,
		`hako_quota_refusals_total{quota="calls of a user"} 1`,
	) ||
		!strings.Contains(body, `outcome="busy"`) {
		t.Errorf("/metrics: %.3000s", body)
	}
	put(t, file, []byte("version: 1\nquotas: [{name: computing, per: all, cpu: 1us}]\n"))
	s.until(t, "quota computing: 1µs of computing a day: try again in ")
	s.stop()
	s = serve(t, dir)
	if answer := s.probeEcho(t); !strings.Contains(answer, "quota computing") {
		t.Errorf("the first call after a restart: %s", answer)
	}
}

// TestCallDenied: somebody at the terminal is told how to find out why.
func TestCallDenied(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	put(t, filepath.Join(dir, "hako.policy.yaml"),
		[]byte("version: 1\ndefault: deny\nrules: [{name: no echoes, action: deny, tools: [probe_echo]}]\n"))
	invoke(t, dir, "call", "probe_echo", `{"text":"x"}`).want(t, exitNotAllowed, `rule "no echoes" denies it`,
		"See: hako policy explain probe_echo --frontend terminal --as ")
	invoke(t, dir, "call", "probe_now").want(t, exitNotAllowed, "no rule of the policy allows it")
}
