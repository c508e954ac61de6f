package console

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"time"

	"github.com/hako-run/hako/host/store"
)

// linkTime is the validity of a one-time link.
const linkTime = 10 * time.Minute

// NewLink returns a secret that logs its first user in as the admin user within 10 minutes, if the console over the
// store allows links. LinkURL returns the link. Whoever can write to the store can create one and counts as an
// operator. Errors are the store's.
func NewLink(ctx context.Context, s *store.Store, user string, now time.Time) (secret string, err error) {
	if err := migrate(ctx, s); err != nil {
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

// LinkURL returns the link for a secret of NewLink. base is the server's URL, such as "http://127.0.0.1:8420". The
// secret is in the fragment, which browsers do not send.
func LinkURL(base, secret string) string { return base + Path + "#link=" + secret }

// useLink consumes a link and returns its user. It fails with faultBadCredentials if there is no such link.
func (t *sessions) useLink(ctx context.Context, secret string, now time.Time) (user string, err error) {
	err = t.store.Update(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `DELETE FROM console_link WHERE id = $1 AND expires > $2 RETURNING person`,
			hashed(secret), now.UnixMilli()).Scan(&user)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = faultBadCredentials
	}
	return user, err
}
