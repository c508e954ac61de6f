package main

import (
	"encoding/json"
	"testing"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/inspect"
)

func TestPluginList(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "")
	invoke(t, dir, "plugin", "list").want(t, exitOK, "probe  1.0.0  pending", "hako plugin approve probe")
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitOK)
	invoke(t, dir, "plugin", "list").want(t, exitOK, "probe  1.0.0  active", "probe_echo")
	var list []inspect.Status
	if err := json.Unmarshal([]byte(invoke(t, dir, "plugin", "list", "--json").stdout), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].State != host.Active || list[0].Digest != list[0].Serving || len(list[0].Tools) != 8 {
		t.Errorf("got %+v", list)
	}
}

func TestPluginListEmpty(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir+"/hako.yaml", []byte("locale: en\n"))
	invoke(t, dir, "plugin", "list").want(t, exitOK, "There are no plugins", "hako plugin new")
	if o := invoke(t, dir, "plugin", "list", "--json"); o.stdout != "[]\n" {
		t.Errorf("got %s", o)
	}
}
