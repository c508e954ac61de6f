package database

import (
	"context"
	"testing"
)

// oldSnapshot is one of a version, which meanwhile does while it is asked for that.
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

// A page that another connection reads at an older version while the cache goes to a newer one is not taken for one of the newer.
func TestCacheAdvancesBesideReaders(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]Page{"an empty cache": nil, "one with pages": {{Number: 2, Data: []byte("kept")}}} {
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
