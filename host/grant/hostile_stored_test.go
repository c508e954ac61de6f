package grant_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/grant"
)

// TestHostileStore: invalid consents in the store, or consents of another version, are an error and take no effect.
func TestHostileStore(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"nothing":                       `UPDATE consents SET text = ''`,
		"what is no YAML":               `UPDATE consents SET text = '{'`,
		"what is binary":                `UPDATE consents SET text = E'\x01\x02'`,
		"a key twice":                   `UPDATE consents SET text = text || text`,
		"a key that there is not":       `UPDATE consents SET text = text || E'\nallowAll: true\n'`,
		"a digest that is none":         `UPDATE consents SET text = replace(text, 'sha256:', 'none:')`,
		"an alias that grows":           `UPDATE consents SET text = E'a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n' || text`,
		"lists that go deep":            `UPDATE consents SET text = repeat('[', 20000)`,
		"a second document":             `UPDATE consents SET text = text || E'\n---\n' || text`,
		"8 MiB of nothing":              `UPDATE consents SET text = repeat('x', 8388608)`,
		"a row beside, with another ID": `INSERT INTO consents SELECT 2, text FROM consents; UPDATE consents SET text = '{' WHERE id = 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := postgrestest.Start(t)
			s, path := storetest.Open(t, where), filepath.Join(t.TempDir(), "consents.yaml")
			file := stored(t, s, path)
			approve(t, file, weather())
			err := s.Update(t.Context(), func(tx *sql.Tx) error {
				_, err := tx.ExecContext(t.Context(), statement)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			read, err := grant.LoadStored(t.Context(), storetest.Open(t, where), path)
			if err == nil && len(read.Consents()) > 0 {
				t.Errorf("in force: %+v", read.Consents())
			}
			if err != nil && (len(err.Error()) > 4000 || !strings.Contains(err.Error(), "consents in the store")) {
				t.Errorf("got %.300v", err)
			}
			if _, ok := file.Lookup("weather", weather().Digest); !ok {
				t.Error("what was in force before is not any more")
			}
		})
	}
}
