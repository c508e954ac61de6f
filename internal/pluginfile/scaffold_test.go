package pluginfile

import (
	"os"
	"strings"
	"testing"
)

// TestGoVersion compares the version that new plugins need with that of this module.
func TestGoVersion(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\ngo "+goVersion+"\n") {
		t.Errorf("go.mod does not say go %s", goVersion)
	}
}

func TestPDKVersion(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"v1.2.3": "v1.2.3", "1.2.3-rc.1": "v1.2.3-rc.1", "devel": "v0.0.0", "ab12cd3": "v0.0.0", "v1.2": "v0.0.0",
	} {
		if got := pdkVersion(program); got != want {
			t.Errorf("%s: got %s, want %s", program, got, want)
		}
	}
}
