package repository_test

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the lists of dependencies anew")

// TestLayers compares the table in CONTRIBUTING.md with the code: imports run from a folder to folders below it, and no folders import each other
// in a circle. Imports of tests are free.
func TestLayers(t *testing.T) {
	t.Parallel()
	inRoot(t)
	l := readLayers(t)
	between := map[string]map[string]bool{} // folders to the folders that they import
	upwards := 0
	all := packages(t)
	for _, p := range all {
		from := l.folder(local(p.ImportPath))
		if from == "" {
			t.Errorf("%s is in no layer: add its folder to the table in CONTRIBUTING.md", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			if imported != module && !strings.HasPrefix(imported, module+"/") {
				continue
			}
			to := l.folder(local(imported))
			if to == from || to == "" {
				continue
			}
			if between[from] == nil {
				between[from] = map[string]bool{}
			}
			between[from][to] = true
			if l.rank[to] > l.rank[from] {
				upwards++
				t.Errorf("%s imports %s, which is in a higher layer (CONTRIBUTING.md): move what it needs down, or take "+
					"an interface of its own", p.ImportPath, imported)
			}
		}
	}
	arrows, circular := 0, foldersInCircles(between)
	for _, to := range between {
		arrows += len(to)
	}
	if len(circular) > 0 {
		t.Errorf("folders that import each other in a circle: %s", strings.Join(circular, ", "))
	}
	t.Logf("%d packages in %d folders: %d imports between folders, %d of packages upwards, %d folders in circles",
		len(all), len(l.rank), arrows, upwards, len(circular))
	for _, folder := range slices.SortedFunc(maps.Keys(between), l.compare) {
		t.Logf("%s -> %s", folder, strings.Join(slices.SortedFunc(maps.Keys(between[folder]), l.compare), " "))
	}
}

// TestCircles shows that circles are found.
func TestCircles(t *testing.T) {
	t.Parallel()
	inRoot(t)
	between := map[string]map[string]bool{"a": {"b": true}, "b": {"c": true}, "c": {"b": true}, "d": {"a": true}}
	if got := foldersInCircles(between); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("got %v", got)
	}
}

// layers has the row of each folder in the table of CONTRIBUTING.md, counted from the ground.
type layers struct{ rank map[string]int }

// layerRow matches a row of that table.
var layerRow = regexp.MustCompile("(?m)^\\| ((?:`[a-z./-]+` )+)\\|")

func readLayers(t *testing.T) layers {
	t.Helper()
	_, table, found := strings.Cut(string(read(t, "CONTRIBUTING.md")), "\n| folders | what is there |\n")
	table, _, end := strings.Cut(table, "\n\n")
	rows := layerRow.FindAllStringSubmatch(table, -1)
	if !found || !end || len(rows) < 10 {
		t.Fatalf("CONTRIBUTING.md has no table of folders, or one with %d rows", len(rows))
	}
	l := layers{map[string]int{}}
	for i, row := range rows {
		for folder := range strings.FieldsSeq(row[1]) {
			folder = strings.Trim(folder, "`")
			if _, err := os.Stat(folder); err != nil {
				t.Errorf("the table in CONTRIBUTING.md has the folder %s, which is not there", folder)
			}
			l.rank[folder] = len(rows) - i
		}
	}
	return l
}

// folder returns the folder of the table that has a package, or "".
func (l layers) folder(name string) string {
	for dir := name; ; dir = path.Dir(dir) {
		if _, ok := l.rank[dir]; ok && (dir == name || dir != "." && dir != "host") {
			return dir
		}
		if dir == "." {
			return ""
		}
	}
}

// compare orders folders from the top.
func (l layers) compare(a, b string) int {
	if l.rank[a] != l.rank[b] {
		return l.rank[b] - l.rank[a]
	}
	return strings.Compare(a, b)
}

// local returns the path of a package of the project within it, "." for the package at its root.
func local(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

// foldersInCircles returns the folders from which imports lead back to them.
func foldersInCircles(between map[string]map[string]bool) (found []string) {
	for _, start := range slices.Sorted(maps.Keys(between)) {
		seen, queue := map[string]bool{}, slices.Collect(maps.Keys(between[start]))
		for len(queue) > 0 && !seen[start] {
			next := queue[0]
			queue = queue[1:]
			if !seen[next] {
				seen[next] = true
				queue = slices.AppendSeq(queue, maps.Keys(between[next]))
			}
		}
		if seen[start] {
			found = append(found, start)
		}
	}
	return found
}

// TestDependencies compares what the API and the programs link with the lists in testdata/deps: packages of the project,
// and modules of others. The lists change on purpose only: "go test ./dev/repository -run TestDependencies -update"
// writes them.
func TestDependencies(t *testing.T) {
	t.Parallel()
	inRoot(t)
	for name, patterns := range map[string][]string{
		"pdk": {"./pdk/..."}, "wasm": {"./host/wasm/..."}, "host": {"./host"}, "hako": {"./cmd/hako"},
		"hako-dev": {"./cmd/hako-dev"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, got := "dev/repository/testdata/deps/"+name+".txt", dependencies(t, patterns)
			if *update {
				if err := os.WriteFile(file, got, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want := read(t, file)
			added, gone := difference(got, want), difference(want, got)
			if len(added)+len(gone) > 0 {
				t.Errorf("%s: new: %q, gone: %q: if that is on purpose, go test ./dev/repository -run TestDependencies -update",
					strings.Join(patterns, " "), added, gone)
			}
		})
	}
}

// dependencies lists what packages link on Linux, a line each.
func dependencies(t *testing.T, patterns []string) []byte {
	t.Helper()
	const format = `{{if not .Standard}}{{if .Module.Main}}{{.ImportPath}}{{else}}{{.Module.Path}}{{end}}{{end}}`
	cmd := exec.Command("go", append([]string{"list", "-deps", "-f", format}, patterns...)...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	slices.Sort(lines)
	return []byte(strings.Join(slices.Compact(lines), "\n") + "\n")
}

// difference returns the lines of a that b does not have.
func difference(a, b []byte) (lines []string) {
	for line := range strings.FieldsSeq(string(a)) {
		if !slices.Contains(strings.Fields(string(b)), line) {
			lines = append(lines, line)
		}
	}
	return lines
}
