package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBundles packs two platforms: each bundle holds a manifest and the program that it names, and server.json has its
// digest.
func TestBundles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "program")
	if err := os.WriteFile(binary, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := run("1.2.3", dir, []string{"linux/amd64=" + binary, "windows/arm64=" + binary}); err != nil {
		t.Fatal(err)
	}
	var entry struct {
		Description string
		Packages    []struct{ Identifier, FileSha256 string }
	}
	text, err := os.ReadFile(filepath.Join(dir, "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &entry); err != nil || len(entry.Packages) != 2 || len(entry.Description) > 100 {
		t.Fatalf("%v: %s", err, text) // the registry takes 100 characters
	}
	for i, program := range []string{"server/hako", "server/hako.exe"} {
		path := filepath.Join(dir, filepath.Base(entry.Packages[i].Identifier))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != entry.Packages[i].FileSha256 {
			t.Errorf("%s has another digest than server.json says", path)
		}
		bundle, err := zip.OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		defer bundle.Close()
		if len(bundle.File) != 2 || bundle.File[0].Name != "manifest.json" || bundle.File[1].Name != program ||
			bundle.File[1].Mode().Perm() != 0o755 {
			t.Errorf("%s holds %v", path, bundle.File)
		}
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{nil, {"bin/hako"}, {"plan9/amd64=bin/hako"}, {"linux=bin/hako"}, {"linux/amd64="}, {"linux/amd64=missing"}} {
		if err := run("1.0.0", t.TempDir(), arguments); err == nil {
			t.Errorf("%s was packed", strings.Join(arguments, " "))
		}
	}
}
