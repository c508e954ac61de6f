package console

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"time"

	"github.com/hako-run/hako/host/store"
)

// linkTime is for how long a one-time link can be used.
const linkTime = 10 * time.Minute

// NewLink returns a secret that logs its first user in as an admin, user, within 10 minutes, where the console over the
// store takes links. LinkURL makes a link of it. Whoever can write to the store can make one, and is an operator.
// Errors are the store's.
func NewLink(ctx context.Context, s *store.Store, user string, now time.Time) (secret string, err error) {
	if err := s.Migrate(ctx, "console", migrations...); err != nil {
		return "", err
	}
	secret = rand.Text()
	return secret, s.Update(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM console_link WHERE expires <= $1`, now.UnixMilli()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO console_link (id, person, expires) VALUES ($1, $2, $3)`,
			hashed(secret), user, now.Add(linkTime).UnixMilli())
		return err
	})
}

// LinkURL is the link for a secret of NewLink; base is where the server is, "http://127.0.0.1:8420". The secret is in
// the fragment, which browsers send to nobody.
func LinkURL(base, secret string) string { return base + Path + "#link=" + secret }

// useLink uses a link up and returns whose it is. It fails with errLogin if there is none.
func (t *sessions) useLink(ctx context.Context, secret string, now time.Time) (user string, err error) {
	err = t.store.Update(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `DELETE FROM console_link WHERE id = $1 AND expires > $2 RETURNING person`,
			hashed(secret), now.UnixMilli()).Scan(&user)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = errLogin
	}
	return user, err
}
