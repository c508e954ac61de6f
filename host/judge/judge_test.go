package judge

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestHostileCommandRules checks the verdict on each line in testdata/lines.txt that is not simply allowed. Lines that
// try to bypass the rules are judged as strictly as the command that they hide, or are judged again with their final
// arguments.
func TestHostileCommandRules(t *testing.T) {
	t.Parallel()
	testLines(t, func(c lineCase) bool { return c.want != Allow.String() })
}

// TestHarmlessLines: everyday lines are allowed without a question.
func TestHarmlessLines(t *testing.T) {
	t.Parallel()
	testLines(t, func(c lineCase) bool { return c.want == Allow.String() })
}

func testLines(t *testing.T, want func(lineCase) bool) {
	j, err := New(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range readCases(t) {
		if !want(c) {
			continue
		}
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			if got := outcome(j, c.line); got != c.want {
				t.Errorf("is %s, want %s", got, c.want)
			}
		})
	}
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

// readCases reads lines of the form "OUTCOME LINE", in which \n and \t are escapes and "#" starts a comment.
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
		cases = append(cases, lineCase{want, strings.NewReplacer(`<NL>`, "\n", `<TAB>`, "\t",
			`<NUL>`, "\x00").Replace(line)})
	}
	return cases
}

func TestArgv(t *testing.T) {
	t.Parallel()
	own := []Rule{
		{Name: "git push", Action: Deny, Programs: []string{"git"}, Args: []string{"push"},
			Reason: "releases go through CI"},
		{Name: "my own tree", Action: Allow, Programs: []string{"rm"}, Args: []string{"build/*"}},
	}
	j, err := New(own, []string{"frobnicate"})
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
	j, err := New(nil, nil)
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
	want := []string{"ls", "xargs -n1 sudo rm -r 'a b'", "xargs > sudo rm -r 'a b' ...",
		"xargs > sudo > rm -r 'a b' ..."}
	if got := strings.Join(list, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("commands:\n%s", got)
	}
	if v.Rule != "rm -rf" || v.Command.Name() != "rm" || v.Reason == "" {
		t.Errorf("decided by %q on %v: an argument that xargs adds may be -f", v.Rule, v.Command)
	}
}

func TestRuleErrors(t *testing.T) {
	t.Parallel()
	if _, err := New([]Rule{{Name: "empty", Action: Deny}}, nil); err == nil ||
		!strings.Contains(err.Error(), `"empty"`) {
		t.Errorf("a rule without conditions: %v", err)
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	j, err := New(nil, nil)
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

// TestResolvedOptions: rules match options in all spellings.
func TestResolvedOptions(t *testing.T) {
	t.Parallel()
	rules := []Rule{
		{Name: "no force", Action: Deny, Programs: []string{"git push"}, Flags: []string{"f|force"}},
		{Name: "no lease", Action: Deny, Programs: []string{"git"}, Args: []string{"--force-with-lease*"}},
		{Name: "no output", Action: Deny, Programs: []string{"sort"}, Args: []string{"--output=*.go"}},
		{Name: "no recursion", Action: Deny, Programs: []string{"grep"}, Flags: []string{"r|recursive"}},
		{Name: "no secrets", Action: Deny, Programs: []string{"cp"}, Args: []string{"/secret/*"}},
		{Name: "pushes", Action: Allow, Programs: []string{"git push"}},
		{Name: "fetches", Action: Allow, Programs: []string{"git"}, Args: []string{"fetch"}},
		{Name: "zstd", Action: Allow, Programs: []string{"tar"}, Args: []string{"--use-compress-program=zstd"}},
		{Name: "lists", Action: Allow, Programs: []string{"tar"}, Flags: []string{"t|list"}},
	}
	j, err := New(rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ line, want string }{
		{"git push --force", "deny no force"},
		{"git push -f", "deny no force"},
		{"git push -qf origin", "deny no force"},
		{"git push --forc", "deny no force"},
		{"git push origin main --force", "deny no force"},
		{"git -C sub push -uf", "deny no force"},
		{"git push --force-w", "deny no lease"},
		{"git push --force-with-lease=main", "deny no lease"},
		{"git push -o force", "allow "},
		{"git push origin main", "allow "},
		{"git log push -f", "ask options of git"},
		{"git fetch", "allow "},
		{"git fetch --upload-pack=x", "ask options of git"},
		{"git -c core.sshCommand=x fetch", "ask options of git"},
		{"git fetch --unknown", "ask options of git"},
		{"sort -ox.go", "deny no output"},
		{"sort -ro x.go", "deny no output"},
		{"sort --ou x.go", "deny no output"},
		{"sort -o x.txt", "allow "},
		{"grep -inr x", "deny no recursion"},
		{"grep --recurs x", "deny no recursion"},
		{"grep -e -r x", "allow "},
		{"grep -er x", "allow "},
		{"grep -- -r x", "allow "},
		{"cp -t/secret/a b", "deny no secrets"},
		{"cp --target-d=/secret/../secret/a b", "deny no secrets"},
		{"tar -Izstd -xf a", "allow "},
		{"tar --use-comp zstd -xf a", "allow "},
		{"tar -Irm -xf a", "ask options of tar"},
		{"tar -Izstd --to-command=rm -xf a", "ask options of tar"},
		{"tar tf a", "allow "},
		{"tar tIf rm a", "ask options of tar"},
	} {
		t.Run(test.line, func(t *testing.T) {
			t.Parallel()
			v, err := j.Line(test.line)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%s %s", v.Action, v.Rule); got != test.want {
				t.Errorf("%s (%s), want %s", got, v.Reason, test.want)
			}
		})
	}
}

// TestReasons: a question names the option and the reason.
func TestReasons(t *testing.T) {
	t.Parallel()
	j, err := New(nil, []string{"granted"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ line, rule, reason string }{
		{"tar -xIrm -f a", "options of tar", "its option -I, --use-compress-program can start other programs or " +
			"load code"},
		{"sort --frob", "options of sort", "hako does not know its option --frob, which may start other programs"},
		{"sort --r x", "options of sort", "its option --r can mean -R, --random-sort or --random-source"},
		{"sort -k", "options of sort", "its option -k, --key has no value"},
		{"git st", "options of git", "hako does not know what its subcommand st starts, which may be an alias"},
		{"git status --shor", "options of git", "its option --shor is not spelled out"},
		{"sed e", "options of sed", `its script starts other programs with "e"`},
		{"xargs tar", "options of tar",
			`it gets arguments that are not known beforehand, and some of its options start other programs: "--" before them helps`},
		{"frobnicate", RuleUnknown, "hako does not know what frobnicate starts, and it was granted with all " +
			"programs, not by its name: only the sandbox restricts it"},
		{"env --frob ls", RuleOpaque, "env has options that hako cannot read, so which program it starts is not known"},
		{"env ./ls", RuleOpaque, "env starts ./ls, a file that may be another program by then: name a program " +
			"without its directory"},
	} {
		v, err := j.Line(test.line)
		if err != nil {
			t.Fatal(err)
		}
		if v.Action != Ask || v.Rule != test.rule || v.Reason != test.reason {
			t.Errorf("%s: %s, rule %q: %s", test.line, v.Action, v.Rule, v.Reason)
		}
	}
	v, err := j.Line("granted --frob | ls")
	if err != nil || v.Action != Allow || !slices.Equal(v.Unjudged, []string{"granted"}) {
		t.Errorf("a program that was granted by name: %+v, %v", v, err)
	}
}

// TestTable: the table can be parsed, and each name of an option occurs once.
func TestTable(t *testing.T) {
	t.Parallel()
	for name := range table {
		p := lookUp(name)
		seen := map[string]bool{}
		for _, o := range p.options {
			for _, n := range o.names {
				if n == "" || strings.HasPrefix(n, "-") || strings.ContainsAny(n, "=?!$%|") {
					t.Errorf("%s has the option %q", name, n)
				}
				if seen[n] && !strings.HasPrefix(name, "git ") { // git subcommands share lists of options
					t.Errorf("%s has the option %q twice", name, n)
				}
				seen[n] = true
			}
		}
	}
	for name, other := range aliases {
		if _, ok := table[other]; !ok {
			t.Errorf("%s stands for %s, which is not in the table", name, other)
		}
		if _, ok := table[name]; ok {
			t.Errorf("%s is an alias, and in the table", name)
		}
	}
}

// FuzzOptions: any arguments are parsed without a panic, and parsed options mean the same when they are spelled out.
func FuzzOptions(f *testing.F) {
	var names []string
	for name := range table {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, seed := range []string{"-xIa\x00b", "--uns\x00a\x00--sp=b", "xfI\x00a", "-f\x00-d\x00--\x00-x", "--\x00",
		"-5k2", "s/a/b/e", "-c\x00a=b\x00log\x00--no-x", "-S-i x\x00y"} {
		for k := range names {
			if (k+i)%8 == 0 {
				f.Add(k, seed)
			}
		}
	}
	f.Fuzz(func(t *testing.T, k int, text string) {
		name := names[uint(k)%uint(len(names))]
		arguments := strings.Split(text, "\x00")
		r := read(name, arguments)
		c := &Command{Argv: append([]string{name}, arguments...), args: r}
		if _, err := nestedCommands(c); err != nil {
			var refused *LineError
			if !errors.As(err, &refused) {
				t.Error(err)
			}
		}
		if r.unparsed || r.literal || r.wrapper != nil || r.program != lookUp(name) {
			return
		}
		again := read(name, slices.Concat(spellOut(r.given), []string{"--"}, r.operands))
		if !slices.Equal(spellOut(r.given), spellOut(again.given)) || !slices.Equal(r.operands,
			again.operands) || again.unparsed {
			t.Errorf("%s %q is read as %q and %q, and these as %q and %q", name, arguments, spellOut(r.given),
				r.operands, spellOut(again.given), again.operands)
		}
	})
}

// spellOut writes each option in full as separate words.
func spellOut(list []givenOption) (words []string) {
	for _, g := range list {
		switch name := dashed(g.names[len(g.names)-1]); {
		case !g.has:
			words = append(words, name)
		case strings.HasPrefix(name, "--"):
			words = append(words, name+"="+g.value)
		case g.option.value == someValue:
			words = append(words, name, g.value)
		default:
			words = append(words, name+g.value)
		}
	}
	return words
}

// FuzzLine: any line is judged or refused, and a line nested in another one is judged at least as strictly.
func FuzzLine(f *testing.F) {
	for _, line := range []string{`rm -rf /`, `a=$(b) c | d > e`, "cat <<E\n$(x)\nE", `{a,b}{1..3}`,
		`find . -exec sh -c 'x "$1"' _ {} \;`, `$'\x72m'`, `env -S"a b" c`, "()0"} {
		f.Add(line)
	}
	j, err := New(nil, nil)
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
