package compile_test

import (
	"os"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/sandbox/compile"
)

// TestMappedCode checks that code is mapped from the cache, shared with other processes. It fails if a version of wazero
// reads files in another way.
func TestMappedCode(t *testing.T) {
	dir := t.TempDir()
	path, err := new(compile.Compiler).Compile(t.Context(), dir, large(), stub(t, large()), largeFunctions)
	if err != nil {
		t.Fatal(err)
	}
	mapped := func() bool {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(maps)) {
			if fields := strings.Fields(line); fields[len(fields)-1] == path {
				return fields[1] == "r-xp"
			}
		}
		return false
	}
	if _, err = compile.Load(t.Context(), runtimeAt(t, dir), stub(t, large())); err != nil {
		t.Fatal(err)
	}
	if !mapped() {
		t.Error("the code is not mapped")
	}
	checkAnswer(t, dir)
}
