package host_test

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

const countManifest = `
name: counting
version: 1.0.0
description: Counts.
state: session
tools: [{name: count, description: Counts., inputSchema: {type: object}}]
permissions: {http: [{name: any, url: "https://example.com/", reason: the guest imports it}]}
`

// TestState takes a caller's session from the frontend to the guest, under the state of the manifest and of the
// operator.
func TestState(t *testing.T) {
	t.Parallel()
	wasm, err := wasmfile.Embed(guesttest.Build(t, "dev/kit/guesttest/guests/probe"),
		map[string][]byte{abi.ManifestSection: []byte(countManifest)})
	if err != nil {
		t.Fatal(err)
	}
	aki := pipeline.Caller{Frontend: pipeline.FrontendHTTP, User: "aki", Session: "1"}
	for _, test := range []struct {
		state   manifest.State
		callers []pipeline.Caller
		want    string
	}{
		{"", []pipeline.Caller{aki, aki, {Frontend: pipeline.FrontendHTTP, User: "ben", Session: "1"},
			{Frontend: pipeline.FrontendHTTP, User: "aki", Session: "2"}, aki}, "1 2 1 1 3"},
		{"", []pipeline.Caller{{Frontend: pipeline.FrontendHTTP, User: "aki"},
			{Frontend: pipeline.FrontendHTTP, User: "aki"}}, "1 1"},
		{"", []pipeline.Caller{{Frontend: pipeline.FrontendStdio}, {Frontend: pipeline.FrontendStdio},
			{Frontend: pipeline.FrontendTerminal}}, "1 2 1"},
		{manifest.StateCall, []pipeline.Caller{aki, aki}, "1 1"},
		{manifest.StateShared, []pipeline.Caller{aki, {Frontend: pipeline.FrontendHTTP}}, "1 2"},
	} {
		w := newWorld(t, func(o *host.Options) {
			o.Shipped = []host.Shipped{{File: "counting.wasm", Wasm: guesttest.Bytes(wasm)}}
			o.Settings = map[string]host.Settings{"counting": {State: test.state}}
		})
		w.load()
		var got []string
		for _, caller := range test.callers {
			result, err := w.Call(t.Context(),
				&pipeline.Call{Caller: caller, Request: abi.Request{Method: abi.CallTool, Name: "count"}})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, result.Response.Content[0].Text)
		}
		if counts := strings.Join(got, " "); counts != test.want {
			t.Errorf("state %q, callers %v: %s, want %s", test.state, test.callers, counts, test.want)
		}
	}
}
