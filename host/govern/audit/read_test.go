package audit_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/govern/audit"
)

// TestLastBefore pages through a log from its end, over segments, until nothing is left.
func TestLastBefore(t *testing.T) {
	t.Parallel()
	places := map[string]func(*testing.T) (audit.Options, audit.Reader){
		"files": func(t *testing.T) (audit.Options, audit.Reader) {
			dir := t.TempDir()
			return audit.Options{Dir: dir, SegmentBytes: 4000}, audit.Dir(dir)
		},
		"PostgreSQL": func(t *testing.T) (audit.Options, audit.Reader) {
			s := storetest.Open(t, postgrestest.Start(t))
			const key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
			return audit.Options{Store: s, Key: key}, audit.NewTable(s, key)
		},
	}
	for name, make := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options, place := make(t)
			appendCalls(t, open(t, options), 60)
			var found []string
			query := &audit.Query{Type: audit.TypeCall}
			for range 20 {
				page, err := place.Last(t.Context(), query, 7)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range slices.Backward(page) {
					found = append(found, e.Target.Name)
				}
				if len(page) == 0 {
					break
				}
				query.Before = page[0].Seq
			}
			if len(found) != 60 || found[0] != "tool_59" || found[59] != "tool_0" {
				t.Errorf("%d records: %v", len(found), found)
			}

			canceled, cancel := context.WithCancel(t.Context())
			cancel()
			nothing := &audit.Query{Name: "no such tool"}
			if _, err := place.Last(canceled, nothing, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("a canceled search: %v", err)
			}
			for _, err := range place.Read(canceled, nothing) {
				if errors.Is(err, context.Canceled) {
					return
				}
			}
			t.Error("a canceled reader has read everything")
		})
	}
}
