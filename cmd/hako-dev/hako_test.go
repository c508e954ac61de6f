package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestFindHako: hako is looked for beside hako-dev and in PATH, and the error says so.
func TestFindHako(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	invoke(t, "hello", "chat").want(t, exitUsage, filepath.Join(filepath.Dir(own), "hako"), "PATH", "make build", "--hako")
	name := "hako"
	if runtime.GOOS == "windows" {
		name = "hako.exe"
	}
	path := filepath.Join(os.Getenv("PATH"), name)
	if err := os.WriteFile(path, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := new(app).findHako(); got != path || err != nil {
		t.Errorf("in PATH: %q, %v", got, err)
	}
	beside := filepath.Join(filepath.Dir(own), name)
	if err := os.WriteFile(beside, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(beside)
	if got, err := new(app).findHako(); err != nil || filepath.Base(got) != name || filepath.Dir(got) == os.Getenv("PATH") {
		t.Errorf("beside hako-dev: %q, %v", got, err)
	}
}

// TestEnvironment: the user's store and recordings do not get into a demonstration.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	got := environment([]string{"MOCK_MODE=true", "HAKO_MOCK=1", "HAKO_STORE=postgres://", "HAKO_LOG_LEVEL=debug", "A=b"})
	if want := []string{"HAKO_LOG_LEVEL=debug", "A=b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestOnFakes: the fakes answer although the user has recordings replayed, and the user's store stays empty.
func TestOnFakes(t *testing.T) {
	hako, store := needsHako(t), filepath.Join(t.TempDir(), "store")
	t.Setenv("MOCK_MODE", "true")
	t.Setenv("HAKO_STORE", store)
	o := invoke(t, "weather in Osaka?", "chat", "--hako", hako)
	o.want(t, exitOK, "Weather forecast for Osaka")
	if strings.Contains(o.stdout, "replayed from recordings") {
		t.Error(o)
	}
	if _, err := os.Stat(store); !os.IsNotExist(err) {
		t.Errorf("the store is used: %v", err)
	}
}
