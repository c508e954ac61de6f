package component_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/hako-run/hako/host/wasm/component"
)

// addSeeds adds the components of testdata and those of this package's tests.
func addSeeds(f *testing.F) {
	f.Helper()
	f.Add([]byte(small))
	for _, test := range hostile {
		if wasm := test.wasm(); len(wasm) < 1<<12 {
			f.Add(wasm)
		}
	}
	names, _ := filepath.Glob(filepath.Join(os.Getenv("HAKO_COMPONENT_TESTS"), "*.wasm"))
	for _, name := range names {
		if wasm, err := os.ReadFile(name); err == nil && len(wasm) < 1<<12 {
			f.Add(wasm)
		}
	}
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzDecode(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, wasm []byte) {
		c, err := component.Decode(wasm)
		if err == nil {
			if world := c.World(); len(world) > 2<<20 {
				t.Errorf("its world has %d bytes", len(world))
			}
			return
		}
		var refused *component.Error
		if !errors.As(err, &refused) || refused.Offset > len(wasm) {
			t.Errorf("error %v", err)
		}
	})
}

func FuzzRewriteModules(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, wasm []byte) {
		var modules [][]byte
		same, err := component.RewriteModules(wasm, func(id int, module []byte) ([]byte, error) {
			if id != len(modules) {
				t.Errorf("module %d has number %d", len(modules), id)
			}
			modules = append(modules, bytes.Clone(module))
			return append(module, 0, 3, 2, 'i', 'd'), nil
		})
		c, decodeErr := component.Decode(wasm)
		if decodeErr != nil {
			return
		}
		if err != nil {
			t.Fatalf("a valid component: %v", err)
		}
		again, err := component.Decode(same)
		if err != nil {
			t.Fatalf("the rewritten component: %v", err)
		}
		checkModules(t, c, again, modules)
	})
}

// checkModules checks that rewritten has the modules of c in the same places, each with an added section.
func checkModules(t *testing.T, c, rewritten *component.Component, modules [][]byte) {
	t.Helper()
	if len(c.Definitions) != len(rewritten.Definitions) {
		t.Fatalf("%d definitions became %d", len(c.Definitions), len(rewritten.Definitions))
	}
	for i, definition := range c.Definitions {
		switch definition := definition.(type) {
		case *component.Module:
			m, ok := rewritten.Definitions[i].(*component.Module)
			if !ok || m.ID != definition.ID || !bytes.Equal(modules[m.ID], definition.Code) ||
				!bytes.Equal(m.Code[:len(definition.Code)], definition.Code) || len(m.Code) != len(definition.Code)+5 {
				t.Errorf("module %d is another one", definition.ID)
			}
		case *component.Nested:
			checkModules(t, definition.Component, rewritten.Definitions[i].(*component.Nested).Component, modules)
		}
	}
}
