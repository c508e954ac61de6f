package main

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/hako-run/hako/host/app/buildinfo"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"version", "--version", "-v"} {
		invoke(t, t.TempDir(), way).want(t, exitOK, "hako "+thisBuild().Version, "guest ABI 1", runtime.GOOS)
	}
	var b buildinfo.Info
	if err := json.Unmarshal([]byte(invoke(t, t.TempDir(), "version", "--json").stdout), &b); err != nil {
		t.Fatal(err)
	}
	if b != thisBuild() || b.Version == "" || b.ABI != 1 {
		t.Errorf("got %+v", b)
	}
}
