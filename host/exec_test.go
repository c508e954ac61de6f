package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// TestShippedCommandsWait: a plugin that asks to run commands needs the operator's yes, also if it is part of the
// program.
func TestShippedCommandsWait(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(guesttest.Root(), "manifests", "shell.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := wasmfile.Embed(guesttest.Build(t, "plugins/shell"), map[string][]byte{abi.ManifestSection: text})
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(&host.Options{
		Shipped:       []host.Shipped{{File: "shell.wasm", Wasm: guesttest.Bytes(wasm)}},
		ShippedMounts: map[string]string{"workspace": t.TempDir()},
		Consents:      filepath.Join(t.TempDir(), "consents.yaml"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := h.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := h.Plugins()[0]
	if p.State != host.Pending || !strings.Contains(p.Reason, "hako plugin approve shell") || len(p.Tools) > 0 {
		t.Errorf("%+v", p)
	}
}
