package pluginfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGoVersion compares the version that new plugins need with that of this module.
func TestGoVersion(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../go.mod")
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

// TestNewFolder: new plugins in every language have a valid manifest, and nothing of the templates is left in their files.
func TestNewFolder(t *testing.T) {
	t.Parallel()
	for _, language := range Languages() {
		dir := filepath.Join(t.TempDir(), "hi-there")
		if err := NewFolder(dir, "hi-there", language, "v1.2.3"); err != nil {
			t.Fatal(err)
		}
		source, err := ReadSource(dir, "")
		if err != nil || source.Name != "hi-there" {
			t.Errorf("%s: %+v, %v", language, source, err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			text, _ := os.ReadFile(filepath.Join(dir, entry.Name()))
			if strings.Contains(string(text), "{{") || strings.HasSuffix(entry.Name(), ".tmpl") {
				t.Errorf("%s: a template is left in %s", language, entry.Name())
			}
		}
		world, _ := os.ReadFile(filepath.Join(dir, "wit", "world.wit"))
		if strings.Contains(string(world), "hi-there") {
			t.Errorf("%s: the world has the plugin's name, which may be no identifier of WIT: list, a-", language)
		}
		if len(FirstSteps(language)) == 0 || CheckLanguage(language) != nil {
			t.Errorf("%s has no first steps", language)
		}
	}
}
