package sandbox_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/sandbox"
)

// TestOutsideOfMounts: a call that fails says which paths lie under no mount, and which mounts there are. Where runtimes
// look by themselves it says nothing.
func TestOutsideOfMounts(t *testing.T) {
	t.Parallel()
	mount, err := file.New(grant.Mount{Name: "workspace", Path: t.TempDir(), Write: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mount.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, test := range []struct {
		mounts     []*file.Mount
		tool, path string
		want       string
	}{
		{nil, "read", "/notes/a.txt", "/notes/a.txt is under no mount of the plugin: it has none; ask for a folder"},
		{nil, "write", "/notes/a.txt", "/notes/a.txt is under no mount"},
		{[]*file.Mount{mount}, "read", "/notes", "/notes is under no mount of the plugin: it has /workspace; use a path below"},
		{[]*file.Mount{mount}, "read", "/workspace/absent", ""},
		{nil, "read", "/etc/localtime", ""},
		{nil, "read", "/a\x1b[31m", `/a\\u001b[31m is under no mount`},
		{nil, "read", "/" + strings.Repeat("x", 1000), "/" + strings.Repeat("x", 199) + "… is under no mount"},
	} {
		var records syncBuffer
		plugin := newPlugin(t, sandbox.Options{Logger: slog.New(slog.NewTextHandler(&records, nil))},
			sandbox.Spec{Mounts: test.mounts})
		response, err := call(t, plugin, test.tool, object{"path": test.path})
		if err != nil || !response.IsError {
			t.Errorf("%s %.40q: %+v, %v", test.tool, test.path, response, err)
		}
		if got := records.String(); !strings.Contains(got, test.want) || strings.Contains(got, "no mount") == (test.want == "") {
			t.Errorf("%s %.40q: log %s\nwant %s", test.tool, test.path, got, test.want)
		}
	}
}
