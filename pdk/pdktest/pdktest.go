// Package pdktest calls a plugin's handlers by name from go test, without Wasm and without a host.
package pdktest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/internal/nativeexec"
	"github.com/hako-run/hako/pdk/internal/nativesql"
	"github.com/hako-run/hako/pdk/internal/updates"
)

// Options are the call's surroundings. The zero value is a call with no configuration and no language.
type Options struct {
	// Config is the plugin's configuration; nothing fills in the manifest's defaults here.
	Config any
	// Locale is the caller's language.
	Locale string
	// Updated receives the URIs that the call passes to pdk.ResourceUpdated. It may be nil.
	Updated func(uri string)
	// Exec plays the host for commands: it passes what a command writes to output, with abi.ExecStdout or abi.ExecStderr, and returns
	// how it ended. Nil refuses all commands.
	Exec func(request *abi.ExecRequest, output func(stream int, data []byte)) (*abi.ExecExit, error)
}

// surround puts into ctx what of the options is not in the request.
func (o Options) surround(ctx context.Context) context.Context {
	if o.Updated != nil {
		ctx = updates.With(ctx, o.Updated)
	}
	if o.Exec != nil {
		ctx = nativeexec.With(ctx, o.Exec)
	}
	return ctx
}

// Context returns a context for calling a handler directly.
func Context(t testing.TB, options Options) context.Context {
	t.Helper()
	ctx, end := nativesql.Start(t.Context(), t.Name())
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Errorf("pdktest: end of the call: %v", err)
		}
	})
	return pdk.NewContext(options.surround(ctx), request(t, options))
}

// CallTool calls the tool as the host would, except that no schema is checked.
func CallTool(t testing.TB, name string, arguments any, options Options) *abi.Response {
	t.Helper()
	r := request(t, options)
	r.Method, r.Name, r.Arguments = abi.CallTool, name, marshal(t, arguments)
	ctx, end := nativesql.Start(t.Context(), t.Name())
	response := pdk.Handle(options.surround(ctx), r)
	if err := end(); err != nil {
		t.Fatalf("pdktest: %s: end of the call: %v", name, err)
	}
	if err := response.FillStructured(); err != nil {
		t.Fatalf("pdktest: %s: %v", name, err)
	}
	return response
}

func request(t testing.TB, options Options) *abi.Request {
	t.Helper()
	r := &abi.Request{Locale: options.Locale}
	if options.Config != nil {
		r.Config = marshal(t, options.Config)
	}
	return r
}

func marshal(t testing.TB, value any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("pdktest: %v", err)
	}
	return data
}
