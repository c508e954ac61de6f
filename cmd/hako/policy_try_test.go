package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/policy/policytry"
)

// TestPolicyTry: a policy is tried on the calls in the audit log.
func TestPolicyTry(t *testing.T) {
	t.Parallel()
	dir := policed(t, testPolicy)
	put(t, filepath.Join(dir, "stricter.yaml"), []byte(strings.Replace(testPolicy, "tools: [probe_log]\n    when: "+
		`'!("admins" in groups)'`, "tools: [probe_echo]", 1)))
	put(t, filepath.Join(dir, "wrong.yaml"), []byte("version: 1\nrules: [{name: a, action: forbid}]\n"))
	put(t, filepath.Join(dir, "bomb.yaml"), []byte("version: 1\na: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n"))
	invoke(t, dir, "call", "probe_echo", `{"text":"a"}`).want(t, exitOK)
	invoke(t, dir, "policy", "try", "hako.policy.yaml").want(t, exitOK, "0 would be decided otherwise, 1 the same")
	o := invoke(t, dir, "policy", "try", "stricter.yaml", "--json")
	o.want(t, exitFailed)
	var result policytry.Result
	if err := json.Unmarshal([]byte(o.stdout), &result); err != nil || result.Calls != 1 || result.Changed != 1 ||
		result.Changes[0].To.Rule != "logs are private" || result.Changes[0].Caller.Frontend != "terminal" {
		t.Errorf("%v: %s", err, o.stdout)
	}
	o = invoke(t, dir, "policy", "try", "stricter.yaml")
	o.want(t, exitFailed, "1 would be decided otherwise, 0 the same")
	if !strings.Contains(o.stdout, `deny by "logs are private" (stricter.yaml:5)`) {
		t.Errorf("%s", o.stdout)
	}
	for name, want := range map[string]string{
		"wrong.yaml": "must be allow, ask or deny", "bomb.yaml": "2:4", "nowhere.yaml": "nowhere.yaml",
	} {
		o := invoke(t, dir, "policy", "try", name)
		if o.code != exitUsage || !strings.Contains(o.stdout+o.stderr, want) {
			t.Errorf("%s: %d %s %s", name, o.code, o.stdout, o.stderr)
		}
	}
	invoke(t, dir, "policy", "try", "stricter.yaml", "--since", "soon").want(t, exitUsage, `"soon" is not a time`)
}
