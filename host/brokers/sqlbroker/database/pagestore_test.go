package database

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hako-run/hako/pdk/abi"
)

var inPlace = flag.Bool("hako.place", false, "run the tests of this package on databases in a PageStore")

// aboutFiles matches the tests that apply to files only.
const aboutFiles = "^(TestInPageStore|TestCopy.*|TestQuota|TestLogIsBounded|TestFullDisk|TestDamagedPage|TestOpenFaults|TestReadOnlyDirectory|TestFilesArePrivate|TestClose)$"

// TestInPageStore runs the other tests with databases in a PageStore.
func TestInPageStore(t *testing.T) {
	t.Parallel()
	if *inPlace {
		return
	}
	out, err := exec.Command(os.Args[0], "-test.skip="+aboutFiles, "-hako.place", "-test.v").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if n := strings.Count(string(out), "\n--- PASS"); n < 20 {
		t.Errorf("%d tests ran", n)
	}
}

// TestCommitFails: a failed commit changes nothing, and the connection stays usable.
func TestCommitFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"the place is gone": {errors.New("gone"), "is unreachable"},
		"the lock was lost": {ErrChanged, "nothing was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := newMemoryPageStore()
			db := openTest(t, Options{PageStore: place, Path: "x", Migrations: []string{table}, Quota: 1 << 20})
			s := db.Session(nil)
			s.must(t, "INSERT INTO item (name) VALUES ('kept')")
			attempts := 0
			place.commit = func() error {
				attempts++
				return test.err
			}
			if err := s.Begin(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			s.must(t, "INSERT INTO item (name, value) VALUES ('lost', zeroblob(20000))")
			s.must(t, "UPDATE item SET value = 1")
			wants(t, s.Commit(t.Context()), abi.CodeBusy, test.want)
			place.commit = nil
			if attempts != 1 {
				t.Errorf("%d attempts to commit: what SQLite undoes is not there", attempts)
			}
			if n := s.value(t, "SELECT count(*) FROM item"); n != int64(1) {
				t.Errorf("%v rows", n)
			}
			s.must(t, "INSERT INTO item (name) VALUES ('more')")
			if sum := s.value(t, "SELECT group_concat(name) || ' ' || (SELECT * FROM pragma_integrity_check) FROM item"); sum != "kept,more ok" {
				t.Error(sum)
			}
		})
	}
}

// TestCacheAdvances: writes of another process are visible, and only those pages are read again.
func TestCacheAdvances(t *testing.T) {
	t.Parallel()
	place := newMemoryPageStore()
	o := Options{PageStore: place, Path: "x", Migrations: []string{table}, Quota: 8 << 20}
	a, b := session(t, openTest(t, o)), session(t, openTest(t, o))
	a.must(t, "INSERT INTO item (value) WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 200) "+
		"SELECT zeroblob(4000) FROM c")
	sum := "SELECT sum(length(value)) FROM item"
	if n := b.value(t, sum); n != int64(800_000) {
		t.Fatal(n)
	}
	a.must(t, "UPDATE item SET value = 'x' WHERE id = 100")
	before := place.reads.Load()
	if n := b.value(t, sum); n != int64(796_001) {
		t.Errorf("%v bytes", n)
	}
	if n := place.reads.Load() - before; n == 0 || n > 3 {
		t.Errorf("%d reads after one page has changed", n)
	}
}

// memoryPageStore is an in-memory PageStore.
type memoryPageStore struct {
	mu        sync.Mutex
	locks     map[string]chan struct{}
	databases map[string]*memoryDatabase
	// reads counts the calls of Read.
	reads atomic.Int64
	// commit, if not nil, is called before each commit. Its error prevents the commit.
	commit func() error
}

type memoryDatabase struct {
	version, length int64
	pages           map[int64]memoryPage
}

type memoryPage struct {
	version int64
	data    []byte
}

func newMemoryPageStore() *memoryPageStore {
	return &memoryPageStore{locks: map[string]chan struct{}{}, databases: map[string]*memoryDatabase{}}
}

func (p *memoryPageStore) Lock(ctx context.Context, name string) (func(), error) {
	p.mu.Lock()
	lock := p.locks[name]
	if lock == nil {
		lock = make(chan struct{}, 1)
		p.locks[name] = lock
	}
	p.mu.Unlock()
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *memoryPageStore) Snapshot(_ context.Context, name string) (Snapshot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := memorySnapshot{p, memoryDatabase{pages: map[int64]memoryPage{}}}
	if d := p.databases[name]; d != nil {
		s.d.version, s.d.length = d.version, d.length
		for number, page := range d.pages {
			s.d.pages[number] = page
		}
	}
	return s, nil
}

func (p *memoryPageStore) Commit(_ context.Context, name string, version, length int64, pages []Page) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.commit != nil {
		if err := p.commit(); err != nil {
			return err
		}
	}
	d := p.databases[name]
	if d == nil {
		d = &memoryDatabase{pages: map[int64]memoryPage{}}
		p.databases[name] = d
	}
	if d.version != version {
		return ErrChanged
	}
	d.version, d.length = version+1, length
	for _, page := range pages {
		d.pages[page.Number] = memoryPage{d.version, slices.Clone(page.Data)}
	}
	return nil
}

type memorySnapshot struct {
	place *memoryPageStore
	d     memoryDatabase
}

func (s memorySnapshot) Version() int64 { return s.d.version }
func (s memorySnapshot) Length() int64  { return s.d.length }
func (s memorySnapshot) Close() error   { return nil }

func (s memorySnapshot) Changed(_ context.Context, version int64) (numbers []int64, _ error) {
	for number, page := range s.d.pages {
		if page.version > version {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}

func (s memorySnapshot) Read(_ context.Context, first, n int64) (pages []Page, _ error) {
	s.place.reads.Add(1)
	for number := first; number < first+n; number++ {
		if page, ok := s.d.pages[number]; ok {
			pages = append(pages, Page{number, page.data})
		}
	}
	return pages, nil
}
