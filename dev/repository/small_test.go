package repository_test

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// smallLines is the size below which a package with one importer needs a reason, in lines without tests.
const smallLines = 200

// smallList has a line for each such package: its folder, two blanks, and the reason why it is not a file of its
// importer.
const smallList = "dev/repository/testdata/small.txt"

// elsewhere are the folders whose packages need no reason: they are examples, tools or an API for plugins.
var elsewhere = []string{"dev", "plugins", "examples", "scripts", "pdk"}

// sourcePackage is a package as it is in its folder, with the files of all systems.
type sourcePackage struct {
	lines     int
	importers []string
}

// TestSmallPackages holds that a small package with one importer has a reason for its boundary: it hides a library, or
// is an idea that is tested alone. Otherwise it is a file of its importer.
func TestSmallPackages(t *testing.T) {
	t.Parallel()
	inRoot(t)
	for _, problem := range smallProblems(sourcePackages(t), string(read(t, smallList))) {
		t.Error(problem)
	}
}

// smallProblems compares the packages with the text of smallList.
func smallProblems(all map[string]*sourcePackage, list string) (problems []string) {
	reasons := map[string]string{}
	for line := range strings.Lines(list) {
		name, reason, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if reasons[name] = strings.TrimSpace(reason); reasons[name] == "" {
			problems = append(problems,
				fmt.Sprintf("%s: %q has no reason: write FOLDER, two blanks, REASON", smallList, line))
		}
		p := all[name]
		switch {
		case p == nil:
			problems = append(problems,
				fmt.Sprintf("%s lists %s, which is no package: delete the line", smallList, name))
		case !p.small(name):
			problems = append(problems,
				fmt.Sprintf("%s lists %s, which has %d lines and %d importers, so it needs no reason: delete the line",
					smallList, name, p.lines, len(p.importers)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, ok := reasons[name]; !ok && all[name].small(name) {
			problems = append(problems,
				fmt.Sprintf("%s has %d lines and one importer: make it a file of %s, or, if it hides a library or is "+
					"an idea that is tested alone, say so in %s",
					name, all[name].lines, all[name].importers[0], smallList))
		}
	}
	return problems
}

func (p *sourcePackage) small(name string) bool {
	return p.lines < smallLines && len(p.importers) == 1 &&
		!slices.ContainsFunc(elsewhere, func(tree string) bool { return under(name, tree) })
}

// sourcePackages returns the packages of the project by their folders. It reads the files of all systems, so that the
// result is the same on each.
func sourcePackages(t *testing.T) map[string]*sourcePackage {
	t.Helper()
	all := map[string]*sourcePackage{}
	get := func(name string) *sourcePackage {
		if all[name] == nil {
			all[name] = &sourcePackage{}
		}
		return all[name]
	}
	walk(t, func(file string) error {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder := path.Dir(filepath.ToSlash(file))
		get(folder).lines += bytes.Count(text, []byte{'\n'})
		for _, spec := range source.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			own, ok := strings.CutPrefix(imported+"/", module+"/")
			if !ok {
				continue
			}
			p := get(path.Clean(own))
			if !slices.Contains(p.importers, folder) {
				p.importers = append(p.importers, folder)
			}
		}
		return nil
	}, "testdata")
	return all
}

// TestSmallProblems shows that the rule can fail.
func TestSmallProblems(t *testing.T) {
	t.Parallel()
	inRoot(t)
	all := map[string]*sourcePackage{
		"host/small": {lines: smallLines - 1, importers: []string{"host"}},
		"host/large": {lines: smallLines, importers: []string{"host"}},
		"host/two":   {lines: 1, importers: []string{"host", "cmd/hako"}},
		"dev/small":  {lines: 1, importers: []string{"dev"}},
		"cmd/hako":   {lines: 1},
	}
	for name, test := range map[string]struct{ list, want string }{
		"in the list":       {"host/small  It hides a library.\n", ""},
		"not in the list":   {"", "host/small has 199 lines and one importer: make it a file of host"},
		"without a reason":  {"host/small\n", `"host/small\n" has no reason`},
		"larger by now":     {"host/small  R.\nhost/large  R.\n", "host/large, which has 200 lines and 1 importers"},
		"used by two":       {"host/small  R.\nhost/two  R.\n", "host/two, which has 1 lines and 2 importers"},
		"elsewhere":         {"host/small  R.\ndev/small  R.\n", "dev/small, which has 1 lines"},
		"gone":              {"host/small  R.\nhost/gone  R.\n", "host/gone, which is no package: delete the line"},
		"a program is none": {"host/small  R.\ncmd/hako  R.\n", "cmd/hako, which has 1 lines and 0 importers"},
	} {
		problems := strings.Join(smallProblems(all, test.list), "\n")
		if test.want == "" && problems != "" || !strings.Contains(problems, test.want) ||
			strings.Contains(problems, "\n") {
			t.Errorf("%s: %q, want %q", name, problems, test.want)
		}
	}
}
