package repository_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestReleasesAreBuiltAlike: what makes the program small is in the Makefile and in the configuration of releases.
func TestReleasesAreBuiltAlike(t *testing.T) {
	t.Parallel()
	inRoot(t)
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
