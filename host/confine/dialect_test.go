package confine

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/judge"
)

// lines are run here and by bash, which must print the same and end with the same status.
var lines = []string{
	`printf '%.2f\n' 3.14159`, `printf '%05d|%-5s|%+d|% d\n' 7 a 3 4`, `printf -v x '%s' hi; echo $x`,
	`printf '%q ' 'a b' "it's" $'x\ny' '' '$HOME' a~b '~' 'é'; echo`, `printf '%s-%s\n' a b c`, `printf 'x%%\n'`,
	`printf '%x %X %o %#x %#o\n' 255 255 8 255 8`, `printf '%*d|%-*d|\n' 5 1 5 2`, `printf '%.3s|%10.2s|\n' abcdef xyz`,
	`printf '%b' 'a\tb\0101\n'`, `printf '%b' 'a\cb'; echo .`, `printf '%c%c\n' abc def`, `printf "%d %d\n" "'A" 0x1f`,
	`printf '%e %g %G\n' 12345.678 0.0001 1e10`, `printf '%5.1f|%-8.3f|%08.2f\n' 2.25 1.5 -3.14159`, `printf '\x41\101\u3042\n'`,
	`printf '%d\n' abc 2>/dev/null; echo $?`, `printf '%d %d\n' 12abc 3 2>/dev/null; echo $?`, `printf '%s\n'`, `printf '%i %u\n' -5 5`,
	`printf -v a '%03d' 7; printf '%s\n' "$a"`, `f() { printf -v r '%s!' "$1"; }; f x; echo $r`, `printf -- '-%s\n' a`, `printf '%d\n' -0x10 010`,
	`printf '%.0f %.10g\n' 2.5 3.14159265358979`, `printf '%s %d\n' a 1 b 2`,
	`true | false | true; echo ${PIPESTATUS[@]}`, `false | true; echo $? ${PIPESTATUS[0]}`, `false; echo ${PIPESTATUS[0]}`,
	`exit 3 | exit 4 | true; echo "${PIPESTATUS[*]}"`, `! true | false; echo $? ${PIPESTATUS[@]}`, `if false | true; then echo ${PIPESTATUS[@]}; fi`,
	`set -o pipefail; false | true; echo $? ${PIPESTATUS[@]}`, `echo a | { cat; exit 5; } | cat; echo ${PIPESTATUS[@]}`,
	`IFS=, read -r a b <<< 'x,y'; echo $b`, `while IFS= read -r l; do echo "[$l]"; done < <(printf ' a \n b\n')`, `IFS=: read -ra p <<< a:b:c; echo ${#p[@]} ${p[2]}`,
	`exec 3>f; echo hi >&3; echo ho >&3; exec 3>&-; cat f`, `printf 'a\nb\n' >f; exec 4<f; read -r x <&4; read -r y <&4; exec 4<&-; echo $x$y`,
	`exec 3>&1; echo to >&3 | cat; exec 3>&-`, `exec 3>>f; echo a >&3; (echo b >&3); cat f`, `exec 5<<<text; cat <&5`,
	`sleep 9 & kill $!; wait $!; echo $?`, `sleep 9 & kill -9 $!; wait $! 2>/dev/null; echo ended`, `{ sleep 1; echo no; } >/dev/null 2>&1 & kill $!; wait; echo ok`, `sleep 0 & wait $!; echo $?`,
	`sleep 9 & a=$!; sleep 8 & kill -s TERM $!; wait $!; echo $?; kill $a`, `false & wait $!; echo $?`,
	`f() { kill() { echo mine; }; kill x; }; f`, `a=(1 2); echo "${a[@]/1/3}" ${#a[@]}`, `x=abc; echo ${x^^} ${x:1:1} ${x%c}`, `for ((i=0;i<3;i++)); do echo -n $i; done; echo`,
	`case abc in a*) echo y;; esac`, `[[ a1 =~ ([a-z])([0-9]) ]] && echo ${BASH_REMATCH[2]}`, `declare -A m; m[k]=v; echo ${m[k]}`, `echo {1..3}{a,b}`,
	`set -e; false || true; echo on; false; echo off`, `trap 'echo bye' EXIT; echo hi`, `echo $(( 7 / 2 )) $((2**10))`, `diff <(echo a) <(echo b) >/dev/null; echo $?`,
	`mapfile -t l < <(printf 'a\nb\n'); echo ${l[1]}`, `local_() { local x=1; echo $x; }; local_`, `echo a 2>&1 >/dev/null; echo b >&2 2>/dev/null`,
}

// refusedLines hold what is not supported: nothing of them is run.
var refusedLines = map[string]string{
	`touch ran; echo a > >(cat)`: ">(...)", `touch ran; exec 3<>f`: "<>", `touch ran; ls 3>&1 1>&2 2>&3`: "descriptor 3",
	`touch ran; history`: "history", `touch ran; f() { ulimit -n 5; }`: "ulimit", `touch ran; read -t 1 x`: "-t", `touch ran; read -u3 x`: "-u3",
	`touch ran; exec {fd}>f`: "descriptor", `touch ran; jobs`: "jobs",
}

// TestDialect does not run beside other tests: they start copies of this program, which a fork of this one keeps busy,
// and ignore signals.
func TestDialect(t *testing.T) {
	bash, err := exec.LookPath("/bin/bash")
	if err != nil {
		testprogram.Missing(t, "bash is not installed")
	}
	if err := resetIgnoredSignals(); err != nil { // as the supervisor does
		t.Fatal(err)
	}
	s := &supervisor{spec: &Spec{}}
	for _, dir := range []string{"/usr/bin", "/bin"} {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			s.spec.Programs = append(s.spec.Programs, Program{Name: "*", Path: real})
		}
	}
	if s.judge, err = judge.New(nil, nil); err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, line string) (output string, status int) {
		t.Helper()
		dir := t.TempDir()
		out, err := os.Create(filepath.Join(dir, "\nout"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		at := procEnv{dir: dir, env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}, stdin: null, stdout: out, stderr: out}
		err = s.interpret(context.Background(), at, line, "", []string{"--"})
		var failed *statusError
		if errors.As(err, &failed) {
			status = failed.exit.Code
		} else if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		text, err := os.ReadFile(out.Name())
		if _, ran := os.Stat(filepath.Join(dir, "ran")); err != nil || ran == nil {
			t.Errorf("%s: a part was run, %v", line, err)
		}
		return string(text), status
	}
	for _, line := range lines {
		command := exec.Command(bash, "--norc", "-c", line)
		command.Dir, command.Env = t.TempDir(), []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}
		theirs, _ := command.CombinedOutput()
		ours, status := run(t, line)
		if ours != string(theirs) || status != command.ProcessState.ExitCode() {
			t.Errorf("%s\nprints %q and ends with %d; bash prints %q and ends with %d", line, ours, status, theirs, command.ProcessState.ExitCode())
		}
	}
	for line, word := range refusedLines {
		if text, status := run(t, line); status != 2 || !strings.Contains(text, word) || !strings.Contains(text, "Nothing of the command line was run") {
			t.Errorf("%s: %q, status %d", line, text, status)
		}
	}
}

// FuzzPrintf: no format makes more text than a printf may.
func FuzzPrintf(f *testing.F) {
	for _, seed := range []string{"%*.*f", "%q%b%c", `\x\u\0`, "%-+ #010.3e", "%", "%5$d", `%b\c`} {
		f.Add(seed, "12", "'x")
	}
	f.Fuzz(func(t *testing.T, format, a, b string) {
		if text, _ := printfText(format, []string{a, b}); len(text) > 4*maxPrintf {
			t.Errorf("%q: %d bytes", format, len(text))
		}
	})
}
