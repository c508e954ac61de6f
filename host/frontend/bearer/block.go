package bearer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/hako-run/hako/host/store"
)

// Block refuses all tokens that an issuer, an OAuth authorization server, has issued or will issue for a user, and the
// user's logins in the console.
type Block struct {
	Issuer string `json:"issuer"`
	// User is the user's name in hako, which http.auth.oauth.userClaim selects.
	User    string    `json:"user"`
	Blocked time.Time `json:"blocked"`
	// By blocked the user.
	By string `json:"by"`
}

// subject is a user of an issuer.
type subject struct{ issuer, user string }

// maxBlocks bounds the blocks.
const maxBlocks = 10_000

// ErrBlocks means that there are too many blocks for another one.
var ErrBlocks = fmt.Errorf("%d users are blocked: unblock those whose accounts their issuer has ended", maxBlocks)

// Blocked reports whether a user of an issuer is blocked. changed ends when somebody else may be. The error is
// ErrUnavailable.
func (i *Issued) Blocked(ctx context.Context, issuer, user string) (blocked bool, changed context.Context, err error) {
	if i == nil {
		return false, nil, nil
	}
	known, err := i.current(ctx, Delay)
	if err != nil {
		return false, nil, err
	}
	return known.blocks[subject{issuer, user}], known.blocking, nil
}

// IsBlocked reports whether a user of an issuer was blocked when the store was last read.
func (i *Issued) IsBlocked(issuer, user string) bool {
	return i != nil && i.known.Load().blocks[subject{issuer, user}]
}

// Blocks lists the blocks.
func (i *Issued) Blocks(ctx context.Context) ([]Block, error) {
	return store.List(ctx, i.store, func(rows *sql.Rows) (b Block, err error) {
		var at any // a damaged time must not undo the block
		err = rows.Scan(&b.Issuer, &b.User, &at, &b.By)
		if millis, ok := at.(int64); ok {
			b.Blocked = moment(millis)
		}
		return b, err
	}, `SELECT issuer, person, blocked, blocker FROM bearer_block ORDER BY issuer, person LIMIT $1`, maxBlocks)
}

// Block blocks a user of an issuer. Every replica follows like for revoked tokens. Nothing happens if the user is
// blocked already. The error is ErrBlocks or the store's.
func (i *Issued) Block(ctx context.Context, issuer, user, by string) error {
	return i.changeBlocks(ctx, func(tx *sql.Tx) error {
		count := 0
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM bearer_block`).Scan(&count); err != nil {
			return err
		}
		if count >= maxBlocks {
			return ErrBlocks
		}
		_, err := tx.ExecContext(ctx,
			`INSERT INTO bearer_block (issuer, person, blocked, blocker) VALUES ($1, $2, $3, $4)
			ON CONFLICT (issuer, person) DO NOTHING`, issuer, user, i.store.Time().UnixMilli(), by)
		return err
	})
}

// Unblock undoes Block and reports whether the user was blocked. The error is the store's.
func (i *Issued) Unblock(ctx context.Context, issuer, user string) (was bool, err error) {
	err = i.changeBlocks(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `DELETE FROM bearer_block WHERE issuer = $1 AND person = $2`, issuer, user)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		was = n > 0
		return err
	})
	return was, err
}

func (i *Issued) changeBlocks(ctx context.Context, change func(*sql.Tx) error) error {
	err := i.store.Update(ctx, func(tx *sql.Tx) error {
		return errors.Join(change(tx), i.store.Announce(ctx, tx, Topic))
	})
	if err != nil {
		return err
	}
	return i.Refresh(ctx)
}

// readBlocks adds the blocks to the snapshot next. end ends the context of the snapshot before if there is a new block.
func (i *Issued) readBlocks(ctx context.Context, next, before *snapshot) (end func(), err error) {
	list, err := i.Blocks(ctx)
	if err != nil {
		return nil, err
	}
	next.blocks = map[subject]bool{}
	more := before == nil
	for _, b := range list {
		s := subject{b.Issuer, b.User}
		next.blocks[s] = true
		more = more || !before.blocks[s]
	}
	if !more {
		next.blocking, next.endBlocking = before.blocking, before.endBlocking
		return func() {}, nil
	}
	next.blocking, next.endBlocking = context.WithCancel(context.Background())
	if before == nil {
		return func() {}, nil
	}
	return before.endBlocking, nil
}
