package wasm_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/hako-run/hako/host/wasm"
	"github.com/hako-run/hako/host/wasm/link"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("component/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// start returns an instance of a component of the tests.
func start(t *testing.T, name string, options *wasm.Options) *wasm.Instance {
	t.Helper()
	c, err := wasm.Load(t.Context(), read(t, name), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	i, err := c.Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

func TestState(t *testing.T) {
	t.Parallel()
	i := start(t, "counter.wasm", nil)
	for want := uint64(2); want <= 6; want += 2 {
		if got, err := i.Call(t.Context(), "add", uint64(2)); err != nil || got != want {
			t.Errorf("%v, %v, want %d", got, err, want)
		}
	}
}

// TestHostileCalls: a call ends at the limit on steps, on memory and with its context.
func TestHostileCalls(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx     context.Context
		options wasm.Options
		call    string
		args    []any
		want    error
	}{
		"steps":   {t.Context(), wasm.Options{Steps: 10_000_000}, "spin", nil, wasm.ErrSteps},
		"context": {canceled, wasm.Options{}, "spin", nil, context.Canceled},
		"memory":  {t.Context(), wasm.Options{MemoryPages: 32}, "grow", []any{uint64(64)}, nil},
		"a trap":  {t.Context(), wasm.Options{}, "crash", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := start(t, "counter.wasm", &test.options)
			_, err := i.Call(test.ctx, test.call, test.args...)
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if _, err := i.Call(t.Context(), "add", uint64(1)); err == nil {
				t.Error("the instance goes on after the error")
			}
		})
	}
	values := start(t, "shapes.wasm", &wasm.Options{MemoryPages: 32})
	lists := make([]any, 1000)
	for n := range lists {
		lists[n] = make([]any, 1000)
		for m := range 1000 {
			lists[n].([]any)[m] = uint64(1)
		}
	}
	if got, err := values.Call(t.Context(), "sum", lists); err == nil {
		t.Errorf("8 MB of values fit into 2 MiB: %v", got)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	none := errors.New("none here")
	refuse := &wasm.Options{Import: func(string, string) (link.HostFunc, error) { return nil, none }}
	if _, err := wasm.Load(t.Context(), read(t, "shapes.wasm"), refuse); !errors.Is(err, none) {
		t.Errorf("got %v", err)
	}
	for _, data := range []string{"", "\x00asm\x01\x00\x00\x00", "\x00asm\x0d\x00\x01\x00\x01\x03abc"} {
		if _, err := wasm.Load(t.Context(), []byte(data), nil); err == nil {
			t.Errorf("%q is loaded", data)
		}
	}
}
