package main

import (
	"encoding/json"
	"testing"
)

func TestSchema(t *testing.T) {
	t.Parallel()
	o := invoke(t, t.TempDir(), "schema")
	o.want(t, exitOK)
	var schema map[string]any
	if err := json.Unmarshal([]byte(o.stdout), &schema); err != nil || schema["$schema"] == nil {
		t.Errorf("that is no schema (%v): %.80s", err, o.stdout)
	}
}
