package sandbox_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// named adds a name section to a module whose functions have these names.
func named(module []byte, names ...string) []byte {
	sized := func(data string) string { return string(binary.AppendUvarint(nil, uint64(len(data)))) + data }
	list := string(binary.AppendUvarint(nil, uint64(len(names))))
	for i, name := range names {
		list += string(binary.AppendUvarint(nil, uint64(i))) + sized(name)
	}
	return append(module, "\x00"+sized(sized("name")+"\x01"+sized(list))...)
}

// lined adds a DWARF line table to a module that says that the code at this address begins in line 1 of a.c.
func lined(module []byte, address byte) []byte {
	header := "\x01\x01\x01\xfb\x0e\x04\x00\x01\x01" + "\x00a.c\x00\x00\x00\x00\x00"
	unit := "\x04\x00" + string([]byte{byte(len(header))}) + "\x00\x00\x00" + header +
		"\x00\x05\x02" + string([]byte{address}) + "\x00\x00\x00" + "\x01"
	section := "\x0b.debug_line" + string([]byte{byte(len(unit))}) + "\x00\x00\x00" + unit
	return append(module, append([]byte{0, byte(len(section))}, section...)...)
}

// TestTrapNames: a trap and a spent limit name the functions of the guest, in the interpreter and compiled, for the log
// and not for callers.
func TestTrapNames(t *testing.T) {
	t.Parallel()
	const call1, unreachable, forever = "\x20\x00\x10\x01", "\x00", "\x03\x40\x0c\x00\x0b\x00"
	for _, interpret := range []bool{true, false} {
		for name, test := range map[string]struct {
			wasm  []byte
			limit bool
			want  string
		}{
			"names": {named(guesttest.Assemble(1, []byte(call1), []byte(unreachable)), "hako_call",
				"_ZN3app5parse17h0123456789abcdefE"), false, "  at app::parse\n  at hako_call"},
			"lines": {lined(named(guesttest.Assemble(1, []byte(call1), []byte(unreachable)), "hako_call", "parse"), 13), false,
				"  at parse (a.c:1)\n  at hako_call"},
			"no names": {guesttest.Assemble(1, []byte(call1), []byte(unreachable)), false, "  at 2 functions without names: " +
				"the build has left names out (docs/authors.md#when-a-plugin-stops)"},
			"control characters": {named(guesttest.Assemble(1, []byte(unreachable)), "a\x1b]0;b\nc"), false,
				`  at a\u001b]0;b\nc`},
			"a limit": {named(guesttest.Assemble(1, []byte(call1), []byte(forever)), "hako_call", "spin"), true,
				"  at spin\n  at hako_call"},
		} {
			t.Run(fmt.Sprintf("%s/%t", name, interpret), func(t *testing.T) {
				t.Parallel()
				var log bytes.Buffer
				engine, err := sandbox.New(&sandbox.Options{Interpret: interpret, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				plugin := engine.Load(sandbox.Spec{Name: "trap", Wasm: guesttest.Bytes(test.wasm),
					Limits: manifest.Limits{Time: patience, CPU: 10}})
				if err := plugin.Prepare(t.Context()); err != nil {
					t.Fatal(err)
				}
				_, err = plugin.Call(t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: "x"}})
				if got := catalog.Stack(err); got != test.want {
					t.Errorf("got %q of %v", got, err)
				}
				var exceeded *limit.Error
				var guest *catalog.GuestError
				if errors.As(err, &exceeded) != test.limit || errors.As(err, &guest) == test.limit {
					t.Errorf("got %#v", err)
				}
				if strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "  at ") {
					t.Errorf("callers get the stack: %v", err)
				}
				if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
					t.Error(err)
				}
				if !strings.Contains(log.String(), sandbox.StoppedMessage) {
					t.Errorf("the log has no stack: %s", log.String())
				}
			})
		}
	}
}
