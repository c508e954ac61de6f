package main

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/hako-run/hako/pdk/abi"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"version", "--version", "-v"} {
		invoke(t, t.TempDir(), way).want(t, exitOK, "hako "+thisBuild().Version, "guest ABI 1", runtime.GOOS)
	}
	var b build
	if err := json.Unmarshal([]byte(invoke(t, t.TempDir(), "version", "--json").stdout), &b); err != nil {
		t.Fatal(err)
	}
	if b != thisBuild() || b.Version == "" || b.ABI != 1 {
		t.Errorf("got %+v", b)
	}
}

func TestNewBuild(t *testing.T) {
	t.Parallel()
	info := newBuild("1.2.3")
	if info.Version != "1.2.3" || info.Go != runtime.Version() || info.ABI != abi.Version {
		t.Errorf("%+v", info)
	}
	if info := newBuild(""); info.Version != "devel" { // tests have no version
		t.Errorf("without a version: %+v", info)
	}
}

func TestBuildTexts(t *testing.T) {
	t.Parallel()
	info := build{Version: "1.2.3", Go: "go1.26.0", System: "linux/arm64", ABI: 1}
	if got, want := info.String(), "hako 1.2.3 (guest ABI 1, go1.26.0, linux/arm64)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	got, err := json.Marshal(info)
	const want = `{"version":"1.2.3","go":"go1.26.0","system":"linux/arm64","abi":1}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}
