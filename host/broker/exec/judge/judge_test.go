package judge

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestLines holds the outcome of each line in testdata/lines.txt. Those that try to get around the rules come out as strict as what
// they hide, or are left to the judgement of the final arguments.
func TestLines(t *testing.T) {
	t.Parallel()
	j, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, c := range readCases(t) {
		got := outcome(j, c.line)
		counts[got]++
		if got != c.want {
			t.Errorf("%s\n\tis %s, want %s", c.line, got, c.want)
		}
	}
	t.Log(counts)
}

func outcome(j *Judge, line string) string {
	v, err := j.Line(line)
	var refused *LineError
	switch {
	case errors.As(err, &refused):
		return "refused"
	case err != nil:
		return err.Error()
	case v.Action == Allow && v.Deferred:
		return "later"
	}
	return v.Action.String()
}

type lineCase struct{ want, line string }

// readCases reads "OUTCOME LINE", with \n and \t in lines written out; "#" starts a comment.
func readCases(t *testing.T) []lineCase {
	file, err := os.Open("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var cases []lineCase
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		want, line, ok := strings.Cut(scanner.Text(), "\t")
		if !ok || strings.HasPrefix(want, "#") {
			continue
		}
		cases = append(cases, lineCase{want, strings.NewReplacer(`<NL>`, "\n", `<TAB>`, "\t", `<NUL>`, "\x00").Replace(line)})
	}
	return cases
}

func TestArgv(t *testing.T) {
	t.Parallel()
	own := []Rule{
		{Name: "git push", Action: Deny, Programs: []string{"git"}, Args: []string{"push"}, Reason: "releases go through CI"},
		{Name: "my own tree", Action: Allow, Programs: []string{"rm"}, Args: []string{"build/*"}},
	}
	j, err := New(own)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		argv []string
		want string
	}{
		{"nothing matches", []string{"ls", "-la"}, "allow "},
		{"an own rule", []string{"/usr/bin/git", "push", "origin"}, "deny git push"},
		{"an own rule before the defaults", []string{"rm", "-rf", "build/x"}, "allow "},
		{"the defaults", []string{"rm", "-rf", "src"}, "deny rm -rf"},
		{"arguments are not taken apart again", []string{"echo", "$(rm -rf /)", "; rm -rf /"}, "allow "},
		{"a line for a shell is", []string{"bash", "-c", "ls; git push"}, "deny git push"},
		{"what nobody can tell", []string{"env", "X=1", "bash", "script.sh"}, "ask " + RuleOpaque},
		{"a script of the host's shell", []string{"bash", "script.sh"}, "allow "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v, err := j.Argv(test.argv)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%s %s", v.Action, v.Rule); got != test.want {
				t.Errorf("%q: %s, want %s", test.argv, got, test.want)
			}
		})
	}
	for _, argv := range [][]string{nil, {""}, {"sh", "-c", "("}} {
		if _, err := j.Argv(argv); err == nil {
			t.Errorf("%q is judged", argv)
		}
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	j, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := j.Line(`ls | xargs -n1 sudo rm -r 'a b'`)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for i := range v.Commands {
		c := &v.Commands[i]
		list = append(list, strings.Join(append(c.Via, c.String()), " > "))
	}
	want := []string{"ls", "xargs -n1 sudo rm -r 'a b'", "xargs > sudo rm -r 'a b' ...", "xargs > sudo > rm -r 'a b' ..."}
	if got := strings.Join(list, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("commands:\n%s", got)
	}
	if v.Rule != "rm -rf" || v.Command.Name() != "rm" || v.Reason == "" {
		t.Errorf("decided by %q on %v: an argument that xargs adds may be -f", v.Rule, v.Command)
	}
}

func TestRuleErrors(t *testing.T) {
	t.Parallel()
	if _, err := New([]Rule{{Name: "empty", Action: Deny}}); err == nil || !strings.Contains(err.Error(), `"empty"`) {
		t.Errorf("a rule without conditions: %v", err)
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	j, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		strings.Repeat("nohup ", 20) + "ls",
		strings.Repeat("ls;", 1001),
		"echo " + strings.Repeat("x", maxLine),
		strings.Repeat("eval ", 5000) + "ls",
	} {
		var refused *LineError
		if _, err := j.Line(line); !errors.As(err, &refused) {
			t.Errorf("%.40s...: %v", line, err)
		}
	}
}

// FuzzLine: whatever the line is, it is judged or refused, and a line that is hidden in another one is judged at least as strictly.
func FuzzLine(f *testing.F) {
	for _, line := range []string{`rm -rf /`, `a=$(b) c | d > e`, "cat <<E\n$(x)\nE", `{a,b}{1..3}`, `find . -exec sh -c 'x "$1"' _ {} \;`, `$'\x72m'`, `env -S"a b" c`, "()0"} {
		f.Add(line)
	}
	j, err := New(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		v, err := j.Line(line)
		if err != nil {
			return
		}
		nested, err := j.Argv([]string{"nohup", "bash", "-c", line})
		if err == nil && nested.Action < v.Action {
			t.Errorf("%q is %s, but %s inside of bash -c", line, v.Action, nested.Action)
		}
		for i := range v.Commands {
			if c := &v.Commands[i]; len(c.Argv) == 0 || c.String() == "" {
				t.Errorf("%q holds a command without a program", line)
			}
		}
	})
}
