package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host/govern/policy"
)

func TestPropose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := policy.ProposalsPath(filepath.Join(dir, "hako.policy.yaml"))
	if filepath.Base(path) != "hako.policy.proposed.yaml" {
		t.Fatal(path)
	}
	rule := func(name string) string { return "  - {name: " + name + ", action: allow, tools: [a]}\n" }
	for _, name := range []string{"one", "two"} {
		if err := policy.Propose(t.Context(), path, rule(name), "by aki\nrules: []"); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := policy.Parse(before); err != nil || len(p.Rules()) != 2 || strings.Count(string(before), "# by aki") != 2 {
		t.Errorf("%v: %s", err, before)
	}
	for name, rule := range map[string]string{"a name twice": rule("one"), "no rule": "nonsense"} {
		if err := policy.Propose(t.Context(), path, rule, ""); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("%v: %s", err, after)
	}
}

// TestProposeConcurrently: replicas that share the file lose no proposal of another one.
func TestProposeConcurrently(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "proposed.yaml")
	var writers errgroup.Group
	for replica := range 2 {
		writers.Go(func() error {
			for i := range 20 {
				rule := fmt.Sprintf("  - {name: %d/%d, action: allow, tools: [a]}\n", replica, i)
				if err := policy.Propose(t.Context(), path, rule, ""); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := writers.Wait(); err != nil {
		t.Fatal(err)
	}
	if p, err := policy.Open(path); err != nil || len(p.Rules()) != 40 {
		t.Errorf("%v: %d rules", err, len(p.Rules()))
	}
}
