package server

import (
	"path/filepath"
	"testing"

	"github.com/hako-run/hako/internal/config"
)

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
