package authserver

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/hako-run/hako/host/frontend/connection"
	"github.com/hako-run/hako/host/store"
)

// maxListed bounds the logins that are listed.
const maxListed = 2000

// Logins are the logins in a store, for operators. They work without a Server and with any number of them. Logins for
// another resource or provider than the configured ones are among them, because a Server accepts them again when the
// configuration is changed back. Logins is safe for concurrent use.
type Logins struct{ store *store.Store }

// OpenLogins returns the logins in a store. It fails with the store's error.
func OpenLogins(ctx context.Context, s *store.Store) (*Logins, error) {
	return &Logins{s}, migrate(ctx, s)
}

// List returns the newest 2,000 logins, newest first. It skips damaged rows, with which nobody can log in.
func (l *Logins) List(ctx context.Context) ([]*connection.Login, error) {
	return l.query(ctx, fmt.Sprintf(`TRUE ORDER BY created DESC, id LIMIT %d`, maxListed))
}

// loginID is the form of the IDs of grants.
var loginID = regexp.MustCompile(`^[A-Z2-7]{26,}$`)

// Find returns a login, or connection.ErrNoLogin.
func (l *Logins) Find(ctx context.Context, id string) (*connection.Login, error) {
	if !loginID.MatchString(id) {
		return nil, connection.ErrNoLogin
	}
	list, err := l.query(ctx, `id = $2`, id)
	if err == nil && len(list) == 0 {
		err = connection.ErrNoLogin
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// End ends a login. Every Server over the store refuses its tokens as soon as it is notified, and at the latest after
// 10 seconds. It fails with connection.ErrNoLogin.
func (l *Logins) End(ctx context.Context, id string) (*connection.Login, error) {
	login, err := l.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	return login, l.end(ctx, `id = $1`, id)
}

// EndOf ends all logins of a person like End, and returns those that were active: of one tenant, or of all if tenant is
// empty. Codes that were not exchanged yet and damaged logins end too.
func (l *Logins) EndOf(ctx context.Context, user, tenant string) ([]*connection.Login, error) {
	const where = `person = $%d AND ($%[2]d = '' OR tenant = $%[2]d)`
	list, err := l.query(ctx, fmt.Sprintf(where, 2, 3), user, tenant)
	if err != nil {
		return nil, err
	}
	return list, l.end(ctx, fmt.Sprintf(where, 1, 2), user, tenant)
}

// end ends the grants that where selects.
func (l *Logins) end(ctx context.Context, where string, args ...any) error {
	return l.store.Update(ctx, func(tx *sql.Tx) error {
		ids, err := store.Select(ctx, tx, store.Column[string], `SELECT id FROM oauth_grant WHERE `+where, args...)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := end(ctx, l.store, tx, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// query returns the active logins that where selects; $1 is the current time. A grant whose code was not exchanged has
// no refresh token.
func (l *Logins) query(ctx context.Context, where string, args ...any) ([]*connection.Login, error) {
	list, err := store.List(ctx, l.store, scanLogin, fmt.Sprintf(`SELECT id, person, tenant, detail, created, expires
		FROM oauth_grant g WHERE expires > $1 AND length(detail) <= %d AND
		EXISTS (SELECT 1 FROM oauth_token t WHERE t.grant_id = g.id AND t.kind = '%s') AND %s`, maxDetail,
		kindRefresh, where),
		append([]any{l.store.Time().UnixMilli()}, args...)...)
	list = slices.DeleteFunc(list, func(a *connection.Login) bool { return a == nil })
	return append([]*connection.Login{}, list...), err // not nil, so that JSON has a list
}

// scanLogin returns nil for a damaged row.
func scanLogin(rows *sql.Rows) (*connection.Login, error) {
	a := new(connection.Login)
	var text string
	var created, expires int64
	if rows.Scan(&a.ID, &a.User, &a.Tenant, &text, &created, &expires) != nil {
		return nil, nil // rows.Err has the errors of the store
	}
	d, ok := parseDetail(text, a.User, a.Tenant)
	if !ok {
		return nil, nil
	}
	a.Client, a.Scopes = displayName(d.Client), d.Scopes
	a.Created, a.Expires = time.UnixMilli(created).UTC(), time.UnixMilli(expires).UTC()
	return a, nil
}
