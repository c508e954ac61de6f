// Command hostile prints what the hostile suite tried and what held.
//
// The suite consists of the tests whose names begin with TestHostile; the rest of the name is the class of the attack,
// and each subtest without subtests of its own is one case. hostile reads the events of "go test -json" from standard
// input, prints a table by class, and then each case that did not hold. It exits with 1 if there is one, or if no case
// ran.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
)

func main() { os.Exit(run(os.Stdin, os.Stdout, os.Stderr)) }

func run(stdin io.Reader, stdout, stderr io.Writer) int {
	cases, err := read(stdin)
	if err != nil {
		fmt.Fprintln(stderr, "hostile:", err)
		return 1
	}
	if failed := report(stdout, cases); failed > 0 || len(cases) == 0 {
		return 1
	}
	return 0
}

// test names one test of one package.
type test struct{ pkg, name string }

// Outcomes of a test, as "go test -json" names them.
const (
	pass = "pass"
	fail = "fail"
	skip = "skip"
)

// read returns the outcome of each case of the hostile suite among the events in r. A case that began and has no
// outcome, because its process died, has failed.
func read(r io.Reader) (map[test]string, error) {
	cases, parents := map[test]string{}, map[test]bool{}
	for decoder := json.NewDecoder(r); ; {
		var event struct{ Action, Package, Test string }
		if err := decoder.Decode(&event); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("standard input does not hold the events of go test -json: %w", err)
		}
		if !strings.HasPrefix(event.Test, prefix) {
			continue
		}
		at := test{event.Package, event.Test}
		switch event.Action {
		case "run":
			cases[at] = fail
			if slash := strings.LastIndexByte(at.name, '/'); slash > 0 {
				parents[test{at.pkg, at.name[:slash]}] = true
			}
		case pass, fail, skip:
			cases[at] = event.Action
		}
	}
	for parent := range parents {
		// The failure of a parent is its own if none of its cases failed, and is then kept as a case.
		if cases[parent] != fail || anyFailed(cases, parent) {
			delete(cases, parent)
		}
	}
	return cases, nil
}

const prefix = "TestHostile"

func anyFailed(cases map[test]string, parent test) bool {
	for at, outcome := range cases {
		if outcome == fail && at.pkg == parent.pkg && strings.HasPrefix(at.name, parent.name+"/") {
			return true
		}
	}
	return false
}

// class returns the class of a test in words: "command network" for TestHostileCommandNetwork/udp.
func class(name string) string {
	name, _, _ = strings.Cut(strings.TrimPrefix(name, prefix), "/")
	words := new(strings.Builder)
	runes := []rune(name)
	for i, r := range runes {
		begins := unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) &&
			unicode.IsLower(runes[i+1]))
		if begins {
			words.WriteByte(' ')
		}
		words.WriteRune(r)
	}
	if words.Len() == 0 {
		return "anything"
	}
	return strings.ToLower(words.String())
}

// report prints the table and the cases that failed, and returns how many these are.
func report(w io.Writer, cases map[test]string) (failed int) {
	type row struct{ class, pkg string }
	counts := map[row]map[string]int{}
	total := map[string]int{}
	for at, outcome := range cases {
		r := row{class(at.name), at.pkg[strings.LastIndex(at.pkg, "/hako/")+1:]}
		if counts[r] == nil {
			counts[r] = map[string]int{}
		}
		counts[r][outcome]++
		total[outcome]++
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "class\tpackage\tcases\theld\tnot held\tnot run")
	line := func(class, pkg string, n map[string]int) {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\n", class, pkg, n[pass]+n[fail]+n[skip], n[pass], n[fail], n[skip])
	}
	for _, r := range slices.SortedFunc(maps.Keys(counts), func(a, b row) int {
		return strings.Compare(a.class+"\x00"+a.pkg, b.class+"\x00"+b.pkg)
	}) {
		line(r.class, strings.TrimPrefix(r.pkg, "hako/"), counts[r])
	}
	line("all", "", total)
	table.Flush()
	var names []string
	for at, outcome := range cases {
		if outcome == fail {
			names = append(names, fmt.Sprintf("not held: %s %s", at.pkg, at.name))
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintln(w, name)
	}
	return len(names)
}
