package grant_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// greedy returns a manifest with the given limits and the given properties of one tool.
func greedy(t *testing.T, limits, tool string) *manifest.Manifest {
	t.Helper()
	text := "name: p\nversion: 1.0.0\ndescription: P.\n"
	if limits != "" {
		text += "limits: {" + limits + "}\n"
	}
	text += "tools:\n  - name: wipe\n    description: Wipes.\n    inputSchema: {type: object}\n"
	if tool != "" {
		text += "    " + tool + "\n"
	}
	m, err := manifest.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestHostileManifestLimits: a new version of an approved plugin that asks for larger limits, or claims hints that
// policies rely on, is pending.
func TestHostileManifestLimits(t *testing.T) {
	t.Parallel()
	const harmless = "annotations: {destructiveHint: false}"
	const everyLimit = "time: 1h, cpu: 20000, memory: 1GiB, input: 9MiB, output: 9MiB, log: 1MiB, concurrency: 99, " +
		"queue: 999, queueWait: 1m, rate: 9999, openFiles: 99, requests: 999"
	for name, test := range map[string]struct {
		limits, tool       string // of the approved version and of the new version
		newLimits, newTool string
		want               string // part of the reason; empty if it asks for no more
	}{
		"more time":      {newLimits: "time: 1h", want: "the duration of a call: 1h0m0s instead of 30s"},
		"more computing": {newLimits: "cpu: 20000", want: "20000 instead of 10000"},
		"more memory": {newLimits: "memory: 4GiB",
			want: "the memory of an instance: 4GiB instead of 64MiB"},
		"larger arguments": {newLimits: "input: 256MiB", want: "arguments"},
		"larger results": {newLimits: "output: 200MiB",
			want: "the result of a call: 200MiB instead of 4MiB"},
		"more log":           {newLimits: "log: 16MiB", want: "log"},
		"more calls at once": {newLimits: "concurrency: 1024", want: "calls at once: 1024 instead of 16"},
		"a longer queue":     {newLimits: "queue: 100000", want: "calls that wait"},
		"a longer wait":      {newLimits: "queueWait: 1h", want: "the queueing time of a call"},
		"a higher rate":      {newLimits: "rate: 1000000", want: "calls a minute"},
		"more files":         {newLimits: "openFiles: 1024", want: "open files"},
		"more requests":      {newLimits: "requests: 1000", want: "HTTP requests of a call: 1000 instead of 100"},
		"for one tool": {newTool: "limits: {output: 200MiB, time: 1h}",
			want: "1h0m0s instead of 30s, the result of a call: 200MiB"},
		"one step beyond the approved": {limits: "memory: 128MiB", newLimits: "memory: 129MiB",
			want: "129MiB instead of 128MiB"},
		"more time in seconds":       {newLimits: "time: 3600s", want: "the duration of a call: 1h0m0s instead of 30s"},
		"one millisecond more":       {limits: "time: 31s", newLimits: "time: 31001ms", want: "31.001s instead of 31s"},
		"more memory in KiB":         {newLimits: "memory: 65537KiB", want: "65537KiB instead of 64MiB"},
		"for a tool what it had":     {limits: "output: 8MiB", tool: "limits: {output: 5MiB}", newLimits: "output: 5MiB", newTool: "limits: {output: 8MiB}"},
		"from plugin to tool":        {limits: "time: 1m", newTool: "limits: {time: 1m}"},
		"the same":                   {limits: "memory: 128MiB", newLimits: "memory: 128MiB"},
		"the same in all":            {limits: everyLimit, newLimits: everyLimit},
		"less":                       {limits: "memory: 128MiB", newLimits: "memory: 100MiB"},
		"no larger than the default": {newLimits: "time: 30s, cpu: 10000, memory: 64MiB"},

		"now read-only": {newTool: "annotations: {readOnlyHint: true}",
			want: "tool wipe: now says of itself"},
		"not destructive any more": {tool: "annotations: {destructiveHint: true}", newTool: harmless,
			want: "it destroys nothing (destructiveHint)"},
		"idempotent":     {newTool: "annotations: {idempotentHint: true}", want: "(idempotentHint)"},
		"a closed world": {newTool: "annotations: {openWorldHint: false}", want: "(openWorldHint)"},
		"from harmless to read-only": {tool: harmless, newTool: "annotations: {readOnlyHint: true}",
			want: "it only reads"},
		"destructive now":        {tool: harmless, newTool: "annotations: {destructiveHint: true}"},
		"says no more of itself": {tool: "annotations: {readOnlyHint: true}"},
		"read-only, so harmless": {tool: "annotations: {readOnlyHint: true}", newTool: harmless},
		"what the defaults say anyway": {newTool: "annotations: {readOnlyHint: false, destructiveHint: true, " +
			"idempotentHint: false, openWorldHint: true}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "consents.yaml")
			file, err := grant.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			before, digest := greedy(t, test.limits, test.tool), grant.Digest(manifest.Permissions{})
			consent := grant.Consent{Name: "p", Version: "1.0.0", Digest: digest, Asked: before.Permissions,
				ApprovedBy: "aki", ApprovedAt: time.Unix(1, 0)}
			if err := file.Approve(t.Context(), consent); err != nil {
				t.Fatal(err)
			}
			if file, err = grant.Load(path); err != nil { // the recorded permissions are read back
				t.Fatal(err)
			}
			if d := file.Decide(before, digest, grant.Ask); d.State != grant.Approved {
				t.Errorf("the approved version: %s", d.Reason)
			}
			next := "sha256:" + strings.Repeat("1", 64)
			d := file.Decide(greedy(t, test.newLimits, test.newTool), next, grant.SamePermissions)
			if pending := d.State == grant.Pending; pending != (test.want != "") ||
				!strings.Contains(d.Reason.In("en"), test.want) {
				t.Errorf("%s: %s; want %q", d.State, d.Reason.In("en"), test.want)
			}
		})
	}
	t.Run("are shown at approval", func(t *testing.T) {
		t.Parallel()
		asked := greedy(t, "time: 2m, output: 8MiB", "").Permissions
		for language, want := range map[string]string{
			"en": "asks for larger limits than others have: the duration of a call: 2m0s instead of 30s, the result of " +
				"a call: 8MiB instead of 4MiB",
			"ja": "通常より大きな上限を求めています: 呼び出し 1 回の時間 30s → 2m0s、呼び出し 1 回の結果 4MiB → 8MiB",
		} {
			if lines := grant.Explain(asked, language); !slices.Contains(lines, want) {
				t.Errorf("%q, want %q", lines, want)
			}
		}
	})
}
