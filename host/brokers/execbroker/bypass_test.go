package execbroker_test

import (
	"archive/tar"
	"bufio"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/judge"
)

// Outcomes of a command line that tries to bypass its grant.
const (
	refused = "refused" // no program started
	judged  = "judged"  // one of its programs was refused at its start
	held    = "held"    // it ran without the intended effect
	through = "through" // it had the intended effect
)

var table = flag.Bool("hako.table", false, "run the table of command lines also with the rules alone and with the "+
	"kernel alone, and print it")

// mode selects the layers that restrict the lines.
type mode struct {
	name string
	// rulesOnly: the kernel allows everything on the canary. kernelOnly: a rule allows everything.
	rulesOnly, kernelOnly bool
	outcomes              []string
}

// TestHostileCommandLines runs the lines of testdata/bypass.txt through guest, broker, rules and kernel. None may have
// the intended effect. With -hako.table it also runs them with the rules alone and with the kernel alone.
func TestHostileCommandLines(t *testing.T) {
	t.Parallel()
	needsKernel(t)
	lines := readLines(t, "testdata/bypass.txt")
	if len(lines) < 150 {
		t.Fatalf("%d lines", len(lines))
	}
	modes := []*mode{{name: "both"}}
	if *table {
		modes = append(modes, &mode{name: "kernel only", kernelOnly: true}, &mode{name: "rules only", rulesOnly: true})
	}
	for _, m := range modes {
		m.run(t, lines)
	}
	if *table {
		t.Logf("%d lines\n%s", len(lines), format(modes, lines))
	}
}

// run runs the lines concurrently and records their outcomes.
func (m *mode) run(t *testing.T, lines []string) {
	const workers = 4
	m.outcomes = make([]string, len(lines))
	trials := make(chan *trial, workers)
	for range workers {
		trials <- newTrial(t, m)
	}
	t.Run(m.name, func(t *testing.T) {
		for i, line := range lines {
			t.Run(line, func(t *testing.T) {
				t.Parallel()
				trial := <-trials
				defer func() { trials <- trial }()
				if m.outcomes[i] = trial.try(line); m.outcomes[i] == through && !m.rulesOnly {
					t.Error("gets through")
				}
			})
		}
	})
}

func format(modes []*mode, lines []string) string {
	text := new(strings.Builder)
	w := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	row := func(last string, cell func(*mode) string) {
		for _, m := range modes {
			fmt.Fprintf(w, "%s\t", cell(m))
		}
		fmt.Fprintln(w, last)
	}
	row("", func(m *mode) string { return m.name })
	for _, outcome := range []string{refused, judged, held, through} {
		row(outcome, func(m *mode) string { return strconv.Itoa(count(m.outcomes, outcome)) })
	}
	for i, line := range lines {
		row(line, func(m *mode) string { return m.outcomes[i] })
	}
	w.Flush()
	return text.String()
}

func count(list []string, outcome string) (n int) {
	for _, o := range list {
		if o == outcome {
			n++
		}
	}
	return n
}

// readLines reads a list of command lines, in which <NL> stands for a line break.
func readLines(t *testing.T, path string) (lines []string) {
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		if line := scanner.Text(); line != "" && !strings.HasPrefix(line, "# ") ||
			strings.HasPrefix(line, "# comment") {
			lines = append(lines, line)
		}
	}
	return lines
}

// trial runs lines beside a canary, a directory that was not granted.
type trial struct {
	*shell
	t                          *testing.T
	workspace, canary, pattern string
	expected                   string
}

func newTrial(t *testing.T, m *mode) *trial {
	dir := realTemp(t)
	b := &trial{t: t, workspace: filepath.Join(dir, "workspace"), canary: filepath.Join(dir, "canary"),
		pattern: filepath.Join(dir, "pattern")}
	b.makePattern()
	b.reset()
	b.expected = listing(t, b.canary)
	var options execbroker.Options
	if m.kernelOnly {
		options.Rules = func() []judge.Rule { return []judge.Rule{execbroker.AllowAll} }
	}
	b.shell = newShell(t, b.workspace, &grant.Exec{Programs: []string{"*"}}, options)
	if m.rulesOnly {
		b.broker.Open(b.canary)
	}
	return b
}

// makePattern creates the workspace that every line starts with: a file, a git repository if git is installed, and
// archives with hostile file names.
func (b *trial) makePattern() {
	must(b.t, os.MkdirAll(b.pattern, 0o755))
	must(b.t, os.WriteFile(filepath.Join(b.pattern, "a.txt"), []byte("a\nb\n"), 0o644))
	if git, err := exec.LookPath("git"); err == nil {
		command := exec.Command(git, "init", "-q", b.pattern)
		command.Env = []string{"HOME=" + b.t.TempDir()}
		must(b.t, command.Run())
	}
	file, err := os.Create(filepath.Join(b.pattern, "evil.tar"))
	must(b.t, err)
	w := tar.NewWriter(file)
	for _, name := range []string{"file", "../canary/file", b.canary + "/file"} {
		must(b.t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 4}))
		_, err := w.Write([]byte("gone"))
		must(b.t, err)
	}
	must(b.t, w.Close())
	must(b.t, file.Close())
}

// reset restores the workspace and the canary.
func (b *trial) reset() {
	must(b.t, os.RemoveAll(b.workspace))
	must(b.t, os.CopyFS(b.workspace, os.DirFS(b.pattern)))
	_ = os.Chmod(b.canary, 0o755)
	must(b.t, os.RemoveAll(b.canary))
	must(b.t, os.MkdirAll(filepath.Join(b.canary, "empty"), 0o755))
	must(b.t, os.WriteFile(filepath.Join(b.canary, "file"), []byte("alive"), 0o644))
	must(b.t, os.WriteFile(filepath.Join(b.canary, "secret"), []byte("s3cret"), 0o644))
}

// try returns the outcome of a line and calls reset.
func (b *trial) try(line string) string {
	line = strings.NewReplacer("@C", b.canary, "<NL>", "\n").Replace(line)
	r := b.shell.line(line)
	outcome := b.outcome(r)
	if outcome == through {
		b.t.Logf("gets through: %s\n%+v", line, r)
	}
	b.reset()
	return outcome
}

func (b *trial) outcome(r *result) string {
	switch {
	case listing(b.t, b.canary) != b.expected, strings.Contains(r.Stdout+r.Stderr, "s3cret"):
		return through
	case r.refusal != "":
		return refused
	case strings.Contains(r.Stderr, "hako: "):
		return judged
	}
	return held
}

// listing describes a directory tree: names, modes and contents.
func listing(t *testing.T, tree string) string {
	var list []string
	err := filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			list = append(list, err.Error())
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(data)
		}
		list = append(list, fmt.Sprintf("%s %s %q", path, info.Mode(), content))
		return nil
	})
	must(t, err)
	slices.Sort(list)
	return strings.Join(list, "\n")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
