// Package pdktest calls a plugin's handlers from go test, without Wasm and without a host. CallTool calls a tool by
// name, Context returns a context for calling a handler directly.
package pdktest

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/internal/nativeexec"
	"github.com/hako-run/hako/pdk/internal/nativehttp"
	"github.com/hako-run/hako/pdk/internal/nativesql"
	"github.com/hako-run/hako/pdk/internal/nativetools"
	"github.com/hako-run/hako/pdk/internal/updates"
)

// Options configures a call. The zero value has no configuration and no language.
type Options struct {
	// Config is the plugin's configuration. The defaults of the manifest are not filled in.
	Config any
	// Roots is the result of pdk.Roots.
	Roots map[string]string
	// Locale is the caller's language.
	Locale string
	// Updated receives the URIs of pdk.ResourceUpdated. It may be nil.
	Updated func(uri string)
	// Progress receives the reports of pdk.Progress. It may be nil.
	Progress func(abi.Progress)
	// HTTP sends requests in place of the host; the caller closes the body. Nil sends them itself, without grants.
	HTTP func(ctx context.Context, head *abi.HTTPRequest, body []byte) (*abi.HTTPResponse, io.ReadCloser, error)
	// Exec runs commands in place of the host: it passes the output of a command to output, with abi.ExecStdout or
	// abi.ExecStderr, and returns how it ended. Nil refuses all commands.
	Exec func(request *abi.ExecRequest, output func(stream int, data []byte)) (*abi.ExecExit, error)
	// Tools stand in for the other tools of the host, by name. Each gets the arguments of a call and returns its
	// structured content, or an error, which may be an *abi.Error with its code. Nil means that there are none.
	Tools map[string]func(arguments json.RawMessage) (any, error)
}

// withOptions adds the options that are not part of the request to ctx.
func (o Options) withOptions(ctx context.Context) context.Context {
	if o.Updated != nil {
		ctx = updates.With(ctx, o.Updated)
	}
	if o.Progress != nil {
		ctx = updates.WithProgress(ctx, func(progress, total float64, message string) {
			o.Progress(abi.Progress{Progress: progress, Total: total, Message: message})
		})
	}
	if o.HTTP != nil {
		ctx = nativehttp.With(ctx, o.HTTP)
	}
	if o.Exec != nil {
		ctx = nativeexec.With(ctx, o.Exec)
	}
	if o.Tools != nil {
		ctx = nativetools.With(ctx, otherTools(o.Tools))
	}
	return ctx
}

// SQLSession is the database session of one call, like hako:sql/1 for a guest.
type SQLSession = nativesql.Session

// UseDatabase sets the function that opens the database session of each call of the test and its subtests, until the
// test ends. Package pdksqltest of hako calls it with a real database.
func UseDatabase(t testing.TB, open func() SQLSession) {
	nativesql.Register(t.Name(), open)
	t.Cleanup(func() { nativesql.Register(t.Name(), nil) })
}

// Start returns a context for one call of pdk.Handle, for test kits that make the request themselves. end closes the
// call's database session. Config, Roots and Locale belong to the request and are ignored.
func Start(ctx context.Context, t testing.TB, options Options) (_ context.Context, end func() error) {
	ctx, end = nativesql.Start(ctx, t.Name())
	return options.withOptions(ctx), end
}

// Context returns a context for calling a handler directly.
func Context(t testing.TB, options Options) context.Context {
	t.Helper()
	ctx, end := Start(t.Context(), t, options)
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Errorf("pdktest: end of the call: %v", err)
		}
	})
	return pdk.NewContext(ctx, request(t, options))
}

// CallTool calls the tool like the host, but without validating against schemas.
func CallTool(t testing.TB, name string, arguments any, options Options) *abi.Response {
	t.Helper()
	r := request(t, options)
	r.Method, r.Name, r.Arguments = abi.CallTool, name, marshal(t, arguments)
	ctx, end := Start(t.Context(), t, options)
	response := pdk.Handle(ctx, r)
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
	if options.Roots != nil {
		r.Roots = marshal(t, options.Roots)
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
