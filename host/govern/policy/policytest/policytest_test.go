package policytest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/policy/policytest"
)

// TestRun: a failed case has both decisions and the reason why its rule did not decide.
func TestRun(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse([]byte("version: 1\ndefault: deny\nrules:\n" +
		"  - {name: reading, action: allow, tools: [read], frontends: [slack]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cases.yaml")
	text := "version: 1\ncases:\n  - {tool: read, want: allow, rule: reading}\n  - {tool: read, want: deny}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cases, err := policytest.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	failures, err := cases.Run(p, func(c *policytest.Call) (*policy.Call, error) {
		return &policy.Call{Tool: c.Tool, Plugin: "files", Frontend: "mcp-http"}, nil
	})
	if err != nil || cases.Len() != 2 || len(failures) != 1 {
		t.Fatalf("%v, %d cases, %+v", err, cases.Len(), failures)
	}
	want := policytest.Failure{
		Name: "read", Line: 3, Want: `allow by "reading"`, Got: `deny by "default"`,
		Why: `"frontends" does not match: the call has mcp-http, the rule wants slack`,
	}
	if failures[0] != want {
		t.Errorf("got %+v, want %+v", failures[0], want)
	}
}
