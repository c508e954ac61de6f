package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConsoleConfiguration(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, want string }{
		"a token itself": {"console: {tokens: [{name: a, role: admin, hash: hunter2}]}",
			"make one with 'hako token new'"},
		"unknown role":   {"console: {oidc: {roles: {root: [a]}}}", `unknown role "root"`},
		"a secret":       {"console: {oidc: {clientSecret: hunter2}}", "must say where the secret is"},
		"unknown key":    {"console: {tokns: []}", `did you mean "tokens"?`},
		"unknown member": {"console: {tokens: [{name: a, token: b}]}", "token"},
	} {
		file := filepath.Join(t.TempDir(), "hako.yaml")
		if err := os.WriteFile(file, []byte(test.file), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Source{File: file}); err == nil || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "needs one of") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
