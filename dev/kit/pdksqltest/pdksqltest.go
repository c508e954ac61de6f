// Package pdksqltest provides a real database for tests of plugins that use package pdksql, without Wasm and without a
// host.
//
// It is a separate package so that tests of plugins without a database need not compile SQLite.
package pdksqltest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hako-run/hako/host/brokers/sqlbroker/database"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/pdk/pdktest"
)

// Database creates an empty database for the test and its subtests, runs the manifest's migrations, and applies the
// host's rules for values, statements and limits. Each call with package pdktest has its own session, also concurrent
// calls; a context of pdktest.Context has one session for the whole test. The database is removed when the test ends.
// Database fails the test if the manifest requests no database or a migration fails.
func Database(t testing.TB, manifest string) {
	t.Helper()
	options, err := readManifest(manifest)
	if err != nil {
		t.Fatalf("pdksqltest: %v", err)
	}
	options.Path = filepath.Join(t.TempDir(), "test.db")
	db, err := database.Open(t.Context(), *options)
	if err != nil {
		t.Fatalf("pdksqltest: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("pdksqltest: %v", err)
		}
	})
	pdktest.UseDatabase(t, func() pdktest.SQLSession {
		return db.Session(func(err *database.Fault) { t.Errorf("pdksqltest: %v", err) })
	})
}

// maxManifest bounds the manifest, in bytes.
const maxManifest = 4 << 20

// readManifest reads the permission sql of a manifest.
func readManifest(manifest string) (*database.Options, error) {
	data, err := os.ReadFile(manifest)
	if err != nil {
		return nil, err
	}
	var options *database.Options
	err = strictyaml.Read(data, maxManifest, func(root strictyaml.Value) {
		root.Map(func(key string, value strictyaml.Value) {
			if key == "permissions" {
				value.Map(func(key string, value strictyaml.Value) {
					if key == "sql" {
						options = readPermission(value)
					}
				})
			}
		})
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifest, err)
	}
	if options == nil {
		return nil, fmt.Errorf("%s asks for no database: add permissions.sql", manifest)
	}
	return options, nil
}

func readPermission(value strictyaml.Value) *database.Options {
	options := &database.Options{Quota: 64 << 20}
	value.Object(strictyaml.Fields{
		"migrations": strictyaml.Strings(&options.Migrations),
		"quota":      strictyaml.Size(&options.Quota),
		"reason":     strictyaml.Ignore,
	})
	return options
}
