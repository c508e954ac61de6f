package database

import (
	"context"
	"testing"
)

// oldSnapshot is a snapshot that calls meanwhile when its version is requested.
type oldSnapshot struct {
	Snapshot
	version   int64
	meanwhile func()
}

func (s *oldSnapshot) Version() int64 {
	s.meanwhile()
	return s.version
}

func (s *oldSnapshot) Changed(context.Context, int64) ([]int64, error) { return []int64{1}, nil }

// TestCacheAdvancesBesideReaders: a page of an older version, read while the cache advances, is not cached under the
// newer version.
func TestCacheAdvancesBesideReaders(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]Page{"an empty cache": nil,
		"one with pages": {{Number: 2, Data: []byte("kept")}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &pageCache{version: 1}
			c.put(1, before)
			newer := &oldSnapshot{version: 2, meanwhile: func() { c.put(1, []Page{{Number: 1, Data: []byte("old")}}) }}
			if err := c.advance(t.Context(), newer); err != nil {
				t.Fatal(err)
			}
			if page, ok := c.get(2, 1); ok {
				t.Errorf("version 2 has the page %q of version 1", page)
			}
			if _, ok := c.get(2, 2); ok != (before != nil) {
				t.Errorf("a page that has not changed is there: %v", ok)
			}
		})
	}
}
