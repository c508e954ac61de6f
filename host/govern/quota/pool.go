package quota

import (
	"cmp"
	"context"
	"math"
	"time"
)

// Pool shares rates and concurrent calls between replicas. *Store implements it.
//
// A Limiter takes batches from it, a tenth of Rule.Burst and an eighth of Rule.Concurrent, so that most calls need no
// access to the store. Other replicas lack the unused part of a batch until the next Flush: together, replicas never
// let more calls pass than the quota allows, and may let up to one batch per replica less pass.
type Pool interface {
	// Tokens takes up to n calls from key's bucket, which refills with time. It returns how many it took and, if none,
	// when the next one is available. A negative n returns calls.
	Tokens(ctx context.Context, key string, rule *Rule, n int) (taken int, wait time.Duration, err error)
	// Slots requests n concurrent calls of the rule for this replica in all, and returns how many it has: fewer if
	// other replicas have the rest. They expire 30 seconds after the last call of Slots.
	Slots(ctx context.Context, key string, rule *Rule, n int) (have int, err error)
}

// share is this replica's part of a pool for one use. The Limiter's lock guards it.
type share struct {
	refilling chan struct{} // full while a goroutine accesses the pool

	tokens       int       // remaining calls of the rate
	emptyUntil   time.Time // when the pool has tokens again, as far as known
	slots        int       // concurrent calls
	offlineUntil time.Time // until when the pool is not accessed, because it failed
}

// offlineTime is the time for which a replica uses only its own share after the pool has failed, so that not every call
// waits for the pool.
const offlineTime = 5 * time.Second

// tokenBatch returns the number of tokens that are taken at once.
func (r *Rule) tokenBatch() int { return min(max(1, cmp.Or(r.Burst, r.Rate)/10), 100) }

// spareSlots returns the number of slots that a replica keeps beyond those in use.
func (r *Rule) spareSlots() int { return r.Concurrent / 8 }

// refillShare takes from the pool what the share lacks, one goroutine at a time. It fails if the quota is used up.
func (l *Limiter) refillShare(u *counted, now time.Time) error {
	u.share.refilling <- struct{}{}
	defer func() { <-u.share.refilling }()
	ctx, cancel := context.WithTimeout(context.Background(), ledgerTimeout)
	defer cancel()
	if err := l.refillTokens(ctx, u.use, now); err != nil || !u.concurrent {
		return err
	}
	return l.refillSlots(ctx, u.use, now)
}

// needsRefill reports whether the share has nothing left for a call, although the pool may have.
func (u *counted) needsRefill(now time.Time) bool {
	return u.needsTokens(now) || u.concurrent && u.needsSlots(now)
}

func (u *use) needsTokens(now time.Time) bool {
	return u.rule.Rate > 0 && u.share.tokens < 1 && !now.Before(u.share.offlineUntil)
}

func (u *use) needsSlots(now time.Time) bool {
	return u.rule.Concurrent > 0 && u.share.slots <= u.running && !now.Before(u.share.offlineUntil)
}

// checkEmpty returns an error while the pool is known to have no tokens.
func (u *use) checkEmpty(now time.Time) error {
	if wait := u.share.emptyUntil.Sub(now); u.needsTokens(now) && wait > 0 {
		return u.rateError(max(time.Second, time.Duration(math.Ceil(wait.Seconds()))*time.Second))
	}
	return nil
}

// refillTokens takes a batch of tokens, unless another goroutine just has.
func (l *Limiter) refillTokens(ctx context.Context, u *use, now time.Time) error {
	l.mu.Lock()
	need, err := u.needsTokens(now), u.checkEmpty(now)
	l.mu.Unlock()
	if !need || err != nil {
		return err
	}
	taken, wait, err := l.options.Pool.Tokens(ctx, u.key, &u.rule, u.rule.tokenBatch())
	if err != nil {
		l.useOwnShare(u, err)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if u.share.tokens += taken; taken == 0 {
		u.share.emptyUntil = now.Add(max(wait, time.Millisecond))
	}
	return u.checkEmpty(now)
}

// refillSlots requests a slot for one more call, and spare ones.
func (l *Limiter) refillSlots(ctx context.Context, u *use, now time.Time) error {
	l.mu.Lock()
	need, running := u.needsSlots(now), u.running
	l.mu.Unlock()
	if !need {
		return nil
	}
	have, err := l.options.Pool.Slots(ctx, u.key, &u.rule, min(u.rule.Concurrent, running+1+u.rule.spareSlots()))
	if err != nil {
		l.useOwnShare(u, err)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if u.share.slots = have; have <= running {
		return u.concurrencyError()
	}
	return nil
}

// useOwnShare makes this replica use only its own share for offlineTime.
func (l *Limiter) useOwnShare(u *use, err error) {
	l.options.Logger.Warn("share a quota with other replicas", "quota", u.rule.Name, "err", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	u.share.offlineUntil = l.options.Now().Add(offlineTime)
}

// returnShare returns the unneeded part of the share, and renews the rest.
func (l *Limiter) returnShare(u *use) {
	u.share.refilling <- struct{}{}
	defer func() { <-u.share.refilling }()
	ctx, cancel := context.WithTimeout(context.Background(), ledgerTimeout)
	defer cancel()
	l.mu.Lock()
	tokens, slots := u.share.tokens, u.share.slots
	keep := min(u.rule.Concurrent, u.running+u.rule.spareSlots())
	if l.options.Now().Sub(u.last) > idleShare {
		keep = u.running
	} else {
		tokens = 0 // the next call comes soon
	}
	u.share.tokens -= tokens
	u.share.slots = min(slots, keep)
	l.mu.Unlock()
	if tokens > 0 {
		if _, _, err := l.options.Pool.Tokens(ctx, u.key, &u.rule, -tokens); err != nil {
			l.useOwnShare(u, err)
			return
		}
	}
	if slots > 0 {
		have, err := l.options.Pool.Slots(ctx, u.key, &u.rule, keep)
		if err != nil {
			l.useOwnShare(u, err)
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		u.share.slots = min(u.share.slots, have) // others may have got it after slotTime
	}
}

// idleShare is the time without a call after which the whole share is returned.
const idleShare = time.Second

// sharedUses returns the uses that have a part of the pool.
func (l *Limiter) sharedUses() (list []*use) {
	if l.options.Pool == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.options.Now()
	for _, u := range l.used {
		if (u.share.tokens > 0 || u.share.slots > 0) && !now.Before(u.share.offlineUntil) {
			list = append(list, u)
		}
	}
	return list
}
