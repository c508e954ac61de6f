package credential

import (
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
)

// TestHostileStore: a modified row, or a row of another tenant, provides no token.
func TestHostileStore(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"another tenant's row":           `UPDATE credential SET sealed = (SELECT sealed FROM credential WHERE tenant = 'other') WHERE tenant = 'acme'`,
		"another tenant's row, renamed":  `DELETE FROM credential WHERE tenant = 'acme'; UPDATE credential SET tenant = 'acme' WHERE tenant = 'other'`,
		"the rows change places":         `UPDATE credential SET tenant = CASE tenant WHEN 'acme' THEN 'tmp' ELSE tenant END; UPDATE credential SET tenant = 'acme' WHERE tenant = 'other'; UPDATE credential SET tenant = 'other' WHERE tenant = 'tmp'`,
		"the row of no tenant":           `UPDATE credential SET sealed = (SELECT sealed FROM credential WHERE tenant = '') WHERE tenant = 'acme'`,
		"a letter that was changed":      `UPDATE credential SET sealed = translate(sealed, 'ABCabc', 'BCAbca')`,
		"the end cut off":                `UPDATE credential SET sealed = left(sealed, -8)`,
		"something added":                `UPDATE credential SET sealed = sealed || 'AAAA'`,
		"nothing":                        `UPDATE credential SET sealed = ''`,
		"what is no base64":              `UPDATE credential SET sealed = '?'`,
		"a token that is not encrypted":  `UPDATE credential SET sealed = '{"accessToken":"forged"}'`,
		"16 MiB":                         `UPDATE credential SET sealed = repeat('A', 16777216)`,
		"a key that there is not":        `UPDATE credential SET key_id = 'forged'`,
		"a key whose name is SQL":        `UPDATE credential SET key_id = '''; DROP TABLE credential; --'`,
		"no row":                         `DELETE FROM credential`,
		"a tenant with a letter hidden":  `DELETE FROM credential WHERE tenant = 'acme'; UPDATE credential SET tenant = E'acme\u200b' WHERE tenant = 'other'`,
		"another name of the connection": `UPDATE credential SET name = 'other'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, options(postgrestest.Start(t), freeeSpec("http://127.0.0.1:1")))
			for _, tenant := range []string{"", "acme", "other"} {
				storeConnection(t, b, tenant, 0, time.Hour)
			}
			change(t, b, statement)
			got := token(t, b, "acme")
			if strings.HasPrefix(got, "access-") || strings.Contains(got, "forged\"") ||
				strings.Contains(got, "refresh-") {
				t.Errorf("it gives %s", got)
			}
			if _, err := b.Status(t.Context()); err != nil {
				t.Error(err)
			}
			storeConnection(t, b, "new", 0, time.Hour) // others still work
			if got := token(t, b, "new"); got != "access-0000" {
				t.Errorf("a new connection gives %s", got)
			}
		})
	}
	t.Run("the key for new records is one that there is not", func(t *testing.T) {
		t.Parallel()
		b := newBroker(t, options(postgrestest.Start(t), freeeSpec("http://127.0.0.1:1")))
		storeConnection(t, b, "", 0, time.Hour)
		change(t, b, `UPDATE credential_key SET key_id = 'forged'`)
		if err := b.vault.put(t.Context(), id{"acme", "freee"}, &record{AccessToken: "x"}); err == nil {
			t.Error("a record is written with an unknown key")
		}
		if got := token(t, b, ""); got != "access-0000" {
			t.Errorf("what is there gives %s", got)
		}
	})
}
