package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is how often a waiting Lock looks.
const lockPoll = 20 * time.Millisecond

// Lock takes the lock of that name, which all processes share that use the store, and waits for it until ctx ends; the error then
// matches ErrLocked and ctx's. The lock lasts until release is called, once, or the process dies: the kernel holds it, so that
// nothing stale is left. It does not depend on transactions.
func (s *Store) Lock(ctx context.Context, name string) (release func(), err error) {
	dir := filepath.Join(s.dir, "locks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store %s: %w", s.dir, err)
	}
	sum := sha256.Sum256([]byte(name)) // any text is a name
	lock := flock.New(filepath.Join(dir, hex.EncodeToString(sum[:16])), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ErrLocked, err)
		}
		return nil, errors.Join(fmt.Errorf("store %s: lock %q: %w", s.dir, name, err), lock.Close())
	}
	return func() { _ = lock.Close() }, nil // the kernel takes the lock back, whatever else fails
}
