package repository_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestReleasesAreBuiltAlike checks that a release is built as "make build" builds the program: with the same flags of the linker, and
// without build tags and flags of the compiler, which would make it another program than the one that the tests have tested.
func TestReleasesAreBuiltAlike(t *testing.T) {
	t.Parallel()
	inRoot(t)
	makefile, release := string(read(t, "Makefile")), string(read(t, ".goreleaser.yaml"))
	flags := regexp.MustCompile(`(?m)^LDFLAGS +=(.*)\$\(VERSION\)$`).FindStringSubmatch(makefile)
	if flags == nil {
		t.Fatal("the Makefile has no LDFLAGS that end with $(VERSION)")
	}
	if want := `ldflags: ["` + strings.TrimSpace(flags[1]) + `{{ .Version }}"]`; !strings.Contains(release, want) {
		t.Errorf(".goreleaser.yaml does not have %s", want)
	}
	const build = "\t$(GO) build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/hako ./cmd/hako-dev\n"
	if !strings.Contains(makefile, build) {
		t.Errorf("the Makefile does not have %q", build)
	}
	for _, switches := range []string{"tags:", "gcflags:"} {
		if strings.Contains(release, " "+switches) {
			t.Errorf(".goreleaser.yaml has %s, which make build does not", switches)
		}
	}
	for _, either := range []string{"CGO_ENABLED", "-trimpath"} {
		if !strings.Contains(makefile, either) || !strings.Contains(release, either) {
			t.Errorf("%s is not in both", either)
		}
	}
}
