package server

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/frontend/mcpserver/authserver"
)

// TestFailedLoginsAreLogged: a refused token and a refused login are in the log, also where there is no audit log.
func TestFailedLoginsAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	g := &governance{Governance: &Governance{logger: slog.New(slog.NewTextHandler(&log, nil))}}
	g.loginFailed(mcpserver.FailedLogin{Address: "192.0.2.1", Err: errors.New("the token has expired")})
	g.recordLogin(authserver.Event{Action: authserver.Refused, Address: "192.0.2.2", Err: errors.New("the account lacks a claim")})
	for _, want := range []string{"192.0.2.1", "the token has expired", "192.0.2.2", "the account lacks a claim"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &log)
		}
	}
	log.Reset()
	g.recordLogin(authserver.Event{Action: authserver.Login, User: "aki"})
	if log.Len() > 0 {
		t.Errorf("a login is logged as a problem: %s", &log)
	}
}

// TestGovernanceClosesTwice: a second Close does no harm.
func TestGovernanceClosesTwice(t *testing.T) {
	t.Parallel()
	c := loadConfig(t, t.TempDir(), "plugins: []\n")
	g, err := OpenGovernance(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Close(), g.Close()); err != nil {
		t.Error(err)
	}
}

// TestPolicySettles: a file that is being written is left alone.
func TestPolicySettles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "hako.policy.yaml")
	g := &Governance{config: &config.Config{Policy: file}}
	steps := []struct {
		write string
		want  bool
	}{{"", true}, {"version: 1\n", false}, {"version: 1\ndefault:", false}, {"version: 1\ndefault: deny\n", false},
		{"", true}, {"", true}}
	for i, step := range steps {
		if step.write != "" {
			writeFile(t, file, []byte(step.write))
		}
		if got := g.settled(); got != step.want {
			t.Errorf("look %d: %t", i, got)
		}
	}
}
