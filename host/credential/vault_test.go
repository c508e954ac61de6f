package credential

import (
	"database/sql"
	"testing"
)

// change modifies the store directly.
func change(t *testing.T, b *Broker, statement string) {
	t.Helper()
	s, err := b.vault.ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), statement)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
