package main

import (
	"encoding/json"
	"testing"

	"github.com/hako-run/hako/dev/kit/pdksqltest"
	"github.com/hako-run/hako/pdk/pdktest"
)

func TestRecords(t *testing.T) {
	t.Parallel()
	pdksqltest.Database(t, "manifest.yaml")
	// What looks like SQL is a value like any other.
	for _, table := range []string{"customers", `x"; DROP TABLE record; --`} {
		arguments := map[string]any{"table": table, "data": map[string]any{"name": "青木 '); --"}}
		if response := pdktest.CallTool(t, "create_record", arguments, pdktest.Options{}); response.IsError {
			t.Fatal(response.Content[0].Text)
		}
		response := pdktest.CallTool(t, "read_records", map[string]any{"table": table}, pdktest.Options{})
		var got records
		if err := json.Unmarshal(response.StructuredContent, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Records) != 1 || got.Records[0].Table != table ||
			string(got.Records[0].Data) != `{"name":"青木 '); --"}` {
			t.Errorf("got %s", response.StructuredContent)
		}
	}
}
