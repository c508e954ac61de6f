package prometheus_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testprogram"
)

// promtool runs Prometheus' own checker.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), testprogram.Find(t, "promtool"), args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", "recording.yml", "alerts.yml")
	promtool(t, "test", "rules", "tests.yml")
}

// TestAlerts checks that each alert has a severity, texts, a runbook, and a case in which it fires and one in which it
// does not; and that no runbook is about something else.
func TestAlerts(t *testing.T) {
	t.Parallel()
	rules, tests, index := read(t, "alerts.yml"), read(t, "tests.yml"), read(t, "../../docs/runbooks/README.md")
	known := map[string]bool{"README": true}
	for rule := range strings.SplitSeq(rules, "      - alert: ") {
		name, body, _ := strings.Cut(rule, "\n")
		if strings.HasPrefix(name, "#") {
			continue // the head of the file
		}
		known[name] = true
		for what, there := range map[string]bool{
			"a severity":              regexp.MustCompile(`severity: (critical|warning|info)\}`).MatchString(body),
			"a summary":               strings.Contains(body, "summary: "),
			"a description":           strings.Contains(body, "description: "),
			"its runbook":             strings.Contains(body, "/docs/runbooks/"+name+".md"),
			"a case that fires":       strings.Contains(tests, "name: "+name+" fires\n"),
			"a case that is quiet":    strings.Contains(tests, "name: "+name+" is quiet\n"),
			"a line in the index":     strings.Contains(index, "["+name+"]("+name+".md)"),
			"a metric that is hako's": strings.Contains(body, "hako"),
		} {
			if !there {
				t.Errorf("%s has no %s", name, strings.TrimPrefix(what, "a "))
			}
		}
		book := read(t, "../../docs/runbooks/"+name+".md")
		for _, part := range []string{"# " + name + "\n", "\n## Where to look\n", "\n## What to do\n"} {
			if !strings.Contains(book, part) {
				t.Errorf("the runbook of %s has no %q", name, part)
			}
		}
	}
	books, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil || len(books) < 2 || len(known) < 2 {
		t.Fatalf("%d runbooks, %d alerts: %v", len(books), len(known), err)
	}
	for _, path := range books {
		if name := strings.TrimSuffix(filepath.Base(path), ".md"); !known[name] {
			t.Errorf("%s is about no alert", path)
		}
	}
}

// TestNames checks that rules ask only for metrics that docs/metrics.md has, which another test compares with the
// program.
func TestNames(t *testing.T) {
	t.Parallel()
	page := read(t, "../../docs/metrics.md")
	for _, file := range []string{"recording.yml", "alerts.yml", "tests.yml"} {
		for _, name := range regexp.MustCompile(`\bhako_[a-z_]+`).FindAllString(withoutRecorded(read(t, file)), -1) {
			if !documented(page, name) {
				t.Errorf("%s asks for %s, which docs/metrics.md does not have", file, name)
			}
		}
	}
}

// withoutRecorded leaves out the names of recording rules, which have colons.
func withoutRecorded(text string) string {
	return regexp.MustCompile(`[a-z_]+:[a-z_]+:[a-z0-9_]+`).ReplaceAllString(text, "")
}

func documented(page, name string) bool {
	for _, suffix := range []string{"", "_bucket", "_count", "_sum"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && strings.Contains(page, "| `"+base+"` |") {
			return true
		}
	}
	return false
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
