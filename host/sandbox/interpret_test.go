package sandbox_test

import (
	"errors"
	"testing"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
)

// TestInterpret: with Options.Interpret nothing is compiled, neither by a call nor by Prepare, whatever state is kept.
func TestInterpret(t *testing.T) {
	t.Parallel()
	for _, state := range []manifest.State{manifest.StateCall, manifest.StateShared} {
		engine, err := sandbox.New(&sandbox.Options{CacheDir: t.TempDir(), Interpret: true})
		if err != nil {
			t.Fatal(err)
		}
		release := engine.HoldCompiler()
		plugin := engine.Load(sandbox.Spec{Name: "probe", Wasm: probe(t), Modules: []brokerModule{deniedHTTP}, State: state,
			Limits: manifest.Limits{Time: patience}})
		if err := plugin.Prepare(t.Context()); err != nil || !plugin.Prepared() || !plugin.Stats().Interpreted {
			t.Errorf("%s: Prepare: %v, prepared %t, interpreted %t", state, err, plugin.Prepared(),
				plugin.Stats().Interpreted)
		}
		got := text(t, plugin, "echo", object{"text": "interpreted"})
		if got != "interpreted" || !plugin.Stats().Interpreted {
			t.Errorf("%s: echo = %q, interpreted %t", state, got, plugin.Stats().Interpreted)
		}
		release()
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	}
}
