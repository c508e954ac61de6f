package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestReadAndPrompt reads a resource and gets a prompt of the plugin tasks.
func TestReadAndPrompt(t *testing.T) {
	t.Parallel()
	needsPlugins(t)
	dir := t.TempDir()
	invoke(t, dir, "read", "task://none").want(t, exitUsage, "there is no task")
	invoke(t, dir, "read").want(t, exitUsage, "hako read takes URI, got 0 arguments")
	invoke(t, dir, "prompt", "context_summary", `{"task_id":1}`).want(t, exitUsage, "cannot unmarshal number")
	project := invoke(t, dir, "call", "create_project", `{"name":"Home"}`)
	project.want(t, exitOK, "proj_")
	_, id, _ := strings.Cut(project.stdout, `"project_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	invoke(t, dir, "call", "create_task", `{"task_id":"task_1","title":"Water the plants","project_id":"`+id+`"}`).want(t, exitOK)
	invoke(t, dir, "read", "task://task_1").want(t, exitOK, `"title":"Water the plants"`)
	invoke(t, dir, "read", "task://task_1", "--json").want(t, exitOK, `"contents": [`, `"uri": "task://task_1"`)
	invoke(t, dir, "prompt", "context_summary", `{"task_id":"task_1"}`).want(t, exitOK, "user: ", "Water the plants")
	invoke(t, dir, "prompt", "context_summary", `{"task_id":"task_1"}`, "--json").want(t, exitOK, `"messages": [`,
		`"role": "user"`)
}

// TestOtherVersion: call and build say that another version is in service.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	const other = "another version of plugin probe answers than"
	if o := invoke(t, dir, "call", "probe_echo", `{"text":"a"}`); o.code != exitOK || strings.Contains(o.stderr, other) {
		t.Errorf("before the change: %s", o)
	}
	put(t, filepath.Join(dir, "plugins", "probe.wasm"), probePlugin(t, "version: 1.0.0", "version: 7.0.0"))
	invoke(t, dir, "call", "probe_echo", `{"text":"a"}`).want(t, exitOK, "a\n", other, "hako plugin approve probe")

	source := tiny(t, map[string]string{"manifest.yaml": strings.Replace(tinyManifest, "name: tiny", "name: probe", 1)})
	// The built file is no plugin: build says both.
	invoke(t, dir, "plugin", "build", source).want(t, exitFailed,
		"The approved version 1.0.0 of plugin probe stays in service until you approve this one: hako plugin approve probe")
	if o := invoke(t, t.TempDir(), "plugin", "build", source); strings.Contains(o.stdout, "stays in service") {
		t.Errorf("nothing is in service: %s", o)
	}
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\nupdates: same-permissions\n"))
	if o := invoke(t, dir, "plugin", "build", source); strings.Contains(o.stdout, "stays in service") {
		t.Errorf("it asks for no more: %s", o)
	}
	put(t, filepath.Join(source, "manifest.yaml"), []byte(strings.Replace(tinyManifest, "name: tiny", "name: probe", 1)+
		"\npermissions: {sql: {migrations: [CREATE TABLE t (n INTEGER)], reason: {en: Notes., ja: メモ。}}}\n"))
	invoke(t, dir, "plugin", "build", source).want(t, exitFailed, "The approved version 1.0.0 of plugin probe stays in service")
}
