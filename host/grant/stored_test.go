package grant_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/store"
)

func stored(t *testing.T, s *store.Store, path string) *grant.File {
	t.Helper()
	f, err := grant.LoadStored(t.Context(), s, path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestStoredConsents: an approval at one replica is in force at all, and they are notified.
func TestStoredConsents(t *testing.T) {
	t.Parallel()
	where := postgrestest.Start(t)
	here, there := storetest.Open(t, where), storetest.Open(t, where)
	path := filepath.Join(t.TempDir(), "consents.yaml")
	before := stored(t, there, path)
	changes := there.Changes(t.Context(), grant.Topic)
	<-changes
	approve(t, stored(t, here, path), weather())
	select {
	case <-changes:
	case <-testwait.Context(t).Done():
		t.Fatal("the other replica is not told")
	}
	after := stored(t, there, path)
	if _, ok := after.Lookup("weather", weather().Digest); !ok || len(after.Content().Changed(before.Content())) != 1 ||
		len(after.Content().Changed(stored(t, here, path).Content())) != 0 {
		t.Errorf("the other replica has %+v", after.Consents())
	}
	if err := after.Revoke(t.Context(), "weather", "aki"); err != nil {
		t.Fatal(err)
	}
	if _, ok := stored(t, here, path).Lookup("weather", weather().Digest); ok {
		t.Error("revoked at one replica, in force at another")
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("there is a file: %v", err)
	}
	if name := after.String(); !strings.Contains(name, "postgres://") {
		t.Errorf("it is called %q", name)
	}
}

// TestStoredConsentsBeginWithTheFile: one replica copies the existing consent file, once.
func TestStoredConsentsBeginWithTheFile(t *testing.T) {
	t.Parallel()
	where := postgrestest.Start(t)
	path := filepath.Join(t.TempDir(), "consents.yaml")
	approve(t, open(t, path), weather())
	var done sync.WaitGroup
	for range 3 {
		s := storetest.Open(t, where)
		done.Go(func() {
			f, err := grant.LoadStored(t.Context(), s, path)
			if err != nil {
				t.Error(err)
			} else if _, ok := f.Lookup("weather", weather().Digest); !ok {
				t.Error("the consent is not taken over")
			}
		})
	}
	done.Wait()
	s := storetest.Open(t, where)
	if err := stored(t, s, path).Revoke(t.Context(), "weather", "aki"); err != nil {
		t.Fatal(err)
	}
	if _, ok := stored(t, s, path).Lookup("weather", weather().Digest); ok {
		t.Error("the file is read again")
	}
}

func TestStoredConsentsOfABadFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "consents.yaml")
	if err := os.WriteFile(path, []byte("nonsense: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := grant.LoadStored(t.Context(), storetest.Open(t, postgrestest.Start(t)), path); err == nil ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}
