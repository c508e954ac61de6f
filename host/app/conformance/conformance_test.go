package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/app/gobuild"
	"github.com/hako-run/hako/host/app/pluginfile"
)

const guests = "../../../pdk/conformance"

func cacheDir(t *testing.T) string {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		base = t.TempDir()
	}
	return filepath.Join(base, "hako-test", "compiled")
}

func check(t *testing.T, wasm []byte) {
	t.Helper()
	results, err := Run(t.Context(), wasm, cacheDir(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
}

func TestGo(t *testing.T) {
	t.Parallel()
	wasm, err := gobuild.Plugin(t.Context(), filepath.Join(guests, "go"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, wasm)
}

// TestOtherLanguages builds the plugin from the scaffold of each language. TEST_TOOLCHAINS has the languages, named
// as in --lang, whose toolchains are installed: CI has those of C and AssemblyScript.
func TestOtherLanguages(t *testing.T) {
	languages := strings.Fields(os.Getenv("TEST_TOOLCHAINS"))
	for language, source := range map[string]string{"rust": "src/lib.rs", "c": "plugin.c", "assemblyscript": "plugin.ts",
		"zig": "src/plugin.zig"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			scaffold(t, dir, "conformance", language, map[string]string{
				filepath.Join(guests, "manifest.yaml"):                    "manifest.yaml",
				filepath.Join(guests, "conformance"+filepath.Ext(source)): source})
			if _, err := pluginfile.ReadSource(dir, ""); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(languages, language) {
				check(t, compile(t, dir, "conformance", language))
				if language == "rust" {
					testCrate(t)
				}
			}
		})
	}
}

// testCrate runs the tests of the Rust crate and of its macros.
func testCrate(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"../../../pdk/rust", "../../../pdk/rust/macros"} {
		test := exec.CommandContext(t.Context(), testprogram.Find(t, "cargo"), "test")
		test.Dir, test.Env = dir, append(os.Environ(), "CARGO_TARGET_DIR="+t.TempDir())
		if output, err := test.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", dir, err, output)
		}
	}
}

// scaffold makes the folder of a plugin, in which files are replaced.
func scaffold(t *testing.T, dir, name, language string, files map[string]string) {
	t.Helper()
	if err := pluginfile.NewFolder(dir, name, language, ""); err != nil {
		t.Fatal(err)
	}
	for from, to := range files {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// compile builds the plugin in a folder that scaffold made.
func compile(t *testing.T, dir, name, language string) []byte {
	t.Helper()
	if language == "assemblyscript" {
		install := exec.CommandContext(t.Context(), testprogram.Find(t, "npm"), "install", "--no-audit", "--no-fund")
		install.Dir = dir
		if output, err := install.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	wasm, err := pluginfile.Compile(t.Context(), dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}
