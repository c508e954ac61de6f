package console_test

import (
	"testing"

	"github.com/hako-run/hako/host/frontend/console"
)

func FuzzSearch(f *testing.F) {
	for _, query := range []string{"", "tool=a&limit=5", "text=%22&from=2026-11-20T12:00:00Z", "cursor=MTI", "limit=-1", "a=%zz", "text=%ff%fe&to=9999-12-31T23:59:59Z", ";"} {
		f.Add(query)
	}
	f.Fuzz(func(_ *testing.T, query string) {
		_ = console.ParseSearch(query) // it must not panic
	})
}

func FuzzCursor(f *testing.F) {
	f.Add("")
	f.Add("aHIAaHIud2FzbQ")
	f.Add("====")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := console.ParseCursor(text)
		if err != nil {
			return
		}
		if again, err := console.ParseCursor(console.FormatCursor(key)); err != nil || again != key {
			t.Errorf("%q becomes %q: %v", key, again, err)
		}
	})
}

func FuzzFlow(f *testing.F) {
	f.Add("eyJzIjoiYSIsIm4iOiJiIiwidiI6ImMiLCJ0IjoxfQ")
	f.Add("e30")
	f.Fuzz(func(_ *testing.T, text string) {
		_ = console.ParseFlow(text) // it must not panic
	})
}
