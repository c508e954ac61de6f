package hako_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxProgram is the most lines of cmd/hako without its tests. It has flags, input, printing and exit codes; what grows
// beyond that belongs into a package of internal or host.
const maxProgram = 5000

func TestProgramSize(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("cmd/hako/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	lines := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(data, []byte{'\n'})
	}
	if lines > maxProgram {
		t.Errorf("cmd/hako has %d lines without tests, at most %d: move what is no flag, input, printing or exit code to its "+
			"package", lines, maxProgram)
	}
}

// TestReleasesAreBuiltAlike: what makes the program small is in the Makefile and in the configuration of releases.
func TestReleasesAreBuiltAlike(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	release, err := os.ReadFile(".goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(makefile), "\nCOLD = ")
	list, _, end := strings.Cut(list, "\nGCFLAGS")
	if !found || !end {
		t.Fatal("the Makefile has no COLD before GCFLAGS")
	}
	modules := strings.Fields(strings.ReplaceAll(list, "\\\n", " "))
	for _, module := range modules {
		if !bytes.Contains(release, []byte("- "+module+"/...=-l\n")) {
			t.Errorf(".goreleaser.yaml inlines the functions of %s, which is COLD in the Makefile", module)
		}
	}
	if n := bytes.Count(release, []byte("/...=-l\n")); n != len(modules) {
		t.Errorf(".goreleaser.yaml has %d modules, COLD in the Makefile %d", n, len(modules))
	}
	for _, flag := range []string{"grpcnotrace", "-s -w -funcalign=16"} {
		if !bytes.Contains(makefile, []byte(flag)) || !bytes.Contains(release, []byte(flag)) {
			t.Errorf("%s is not in both", flag)
		}
	}
}
