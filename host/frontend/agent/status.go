package agent

import (
	"context"
	"database/sql"
	"time"

	"github.com/hako-run/hako/host/store"
)

// Status is a call in the journal.
type Status struct {
	Session string `json:"session"`
	// Call is the ID of the event, Tool the name at the frontends.
	Call  string `json:"call"`
	Tool  string `json:"tool"`
	State State  `json:"state"`
	// Taken is the time at which the call was first seen, Changed that of the last change of State.
	Taken   time.Time `json:"taken"`
	Changed time.Time `json:"changed"`
	// Alive reports whether the owner of the call is alive. Otherwise the next Run that follows the session takes the
	// call over.
	Alive bool `json:"alive"`
}

// Calls lists the calls that are under way, the oldest first, or with ended also those that have ended within 30 days.
// It lists at most limit, the newest. Errors are the store's.
func Calls(ctx context.Context, s *store.Store, ended bool, limit int) ([]Status, error) {
	j, err := openJournal(ctx, s)
	if err != nil {
		return nil, err
	}
	owned, err := store.List(ctx, s, scanOwned, `SELECT session, id, tool, state, taken, changed, owner FROM
		(SELECT * FROM agent_call WHERE $1 = 1 OR state NOT IN ($2, $3) ORDER BY taken DESC, id DESC LIMIT $4) AS newest ORDER BY taken, id`,
		btoi(ended), StateSent, StateDropped, limit)
	if err != nil {
		return nil, err
	}
	if err := j.living(ctx, owned); err != nil {
		return nil, err
	}
	list := []Status{}
	for _, o := range owned {
		list = append(list, o.Status)
	}
	return list, nil
}

// owned is a call with its owner.
type owned struct {
	Status
	owner string
}

func scanOwned(rows *sql.Rows) (o owned, err error) {
	var taken, changed int64
	err = rows.Scan(&o.Session, &o.Call, &o.Tool, &o.State, &taken, &changed, &o.owner)
	o.Taken, o.Changed = time.UnixMilli(taken), time.UnixMilli(changed)
	return o, err
}

func btoi(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// living marks the calls whose owner is alive.
func (j *journal) living(ctx context.Context, list []owned) error {
	alive := map[string]bool{}
	for i := range list {
		owner := list[i].owner
		if list[i].State == StateSent || list[i].State == StateDropped {
			continue
		}
		if _, known := alive[owner]; !known {
			release, err := j.store.LockDead(ctx, lockName(owner))
			if err != nil {
				return err
			}
			if alive[owner] = release == nil; release != nil {
				release()
			}
		}
		list[i].Alive = alive[owner]
	}
	return nil
}
