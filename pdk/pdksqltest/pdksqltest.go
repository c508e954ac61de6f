// Package pdksqltest gives plugins that use package pdksql a real database under go test, without Wasm and without a host.
//
// It is a package of its own so that tests of plugins without a database need not compile SQLite.
package pdksqltest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hako-run/hako/internal/database"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/pdk/internal/nativesql"
)

// Database gives the test and its subtests an empty database with the migrations of the manifest, under the host's rules for values,
// statements and limits. Each call with package pdktest then has a session of its own in it, also when calls run at once, and a context
// of pdktest.Context one for the whole test. The database goes when the test ends. It fails the test if the manifest asks for none or a
// migration fails.
func Database(t testing.TB, manifest string) {
	t.Helper()
	options, err := read(manifest)
	if err != nil {
		t.Fatalf("pdksqltest: %v", err)
	}
	options.Path = filepath.Join(t.TempDir(), "test.db")
	db, err := database.Open(t.Context(), *options)
	if err != nil {
		t.Fatalf("pdksqltest: %v", err)
	}
	nativesql.Register(t.Name(), func() nativesql.Session {
		return db.Session(func(err *database.Fault) { t.Errorf("pdksqltest: %v", err) })
	})
	t.Cleanup(func() {
		nativesql.Register(t.Name(), nil)
		if err := db.Close(); err != nil {
			t.Errorf("pdksqltest: %v", err)
		}
	})
}

// maxManifest is the largest manifest that is read, in bytes.
const maxManifest = 4 << 20

// read takes the permission sql out of a manifest.
func read(manifest string) (*database.Options, error) {
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
