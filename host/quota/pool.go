package quota

import (
	"cmp"
	"context"
	"math"
	"time"
)

// Pool shares calls a minute and calls at once between replicas. *Book is one.
//
// A Limiter takes from it in batches, a tenth of Rule.Burst and an eighth of Rule.Concurrent at a time, so that most calls wait for nobody. What
// it has taken and not used is missing to others until the next Flush: so replicas together never let more calls pass than the quota
// allows, and may let a batch less pass for each replica.
type Pool interface {
	// Tokens takes up to n calls of the rate out of key's bucket, which fills up with time, and returns how many, and if there are none in
	// what time there is one. A negative n puts calls back.
	Tokens(ctx context.Context, key string, rule *Rule, n int) (taken int, wait time.Duration, err error)
	// Slots asks to have n of the rule's calls at once from now on, in all, and returns how many it has: less if other replicas have the rest.
	// They are for those to take after 30 seconds in which Slots was not called.
	Slots(ctx context.Context, key string, rule *Rule, n int) (have int, err error)
}

// share is what this replica has of a pool for one quota of somebody. The Limiter's lock guards it.
type share struct {
	asking chan struct{} // full while somebody asks the pool

	tokens int       // calls of the rate
	dry    time.Time // until when there are no more, as far as is known
	slots  int       // calls at once
	alone  time.Time // until when the pool is not asked, because it did not answer
}

func newShare() *share { return &share{asking: make(chan struct{}, 1)} }

// aloneTime is for how long a replica goes by its own calls after the pool has not answered, so that calls do not wait for it one after the other.
const aloneTime = 5 * time.Second

// batch is how many calls of the rate are taken at once.
func (r *Rule) batch() int { return min(max(1, cmp.Or(r.Burst, r.Rate)/10), 100) }

// spare is how many calls at once a replica keeps beyond those that it needs.
func (r *Rule) spare() int { return r.Concurrent / 8 }

// supply asks the pool for what the share lacks, after whoever asks already. It fails if there is nothing left.
func (l *Limiter) supply(u *use, now time.Time) error {
	u.share.asking <- struct{}{}
	defer func() { <-u.share.asking }()
	ctx, cancel := context.WithTimeout(context.Background(), saveTime)
	defer cancel()
	if err := l.supplyTokens(ctx, u, now); err != nil {
		return err
	}
	return l.supplySlots(ctx, u, now)
}

// lacks reports whether the share has nothing left for a call, although the pool may have.
func (u *use) lacks(now time.Time) bool { return u.lacksTokens(now) || u.lacksSlots(now) }

func (u *use) lacksTokens(now time.Time) bool {
	return u.rule.Rate > 0 && u.share.tokens < 1 && !now.Before(u.share.alone)
}

func (u *use) lacksSlots(now time.Time) bool {
	return u.rule.Concurrent > 0 && u.share.slots <= u.running && !now.Before(u.share.alone)
}

// empty says that there is no need to ask: the bucket is not full again before some time.
func (u *use) empty(now time.Time) error {
	if wait := u.share.dry.Sub(now); u.lacksTokens(now) && wait > 0 {
		return u.tooOften(max(time.Second, time.Duration(math.Ceil(wait.Seconds()))*time.Second))
	}
	return nil
}

// supplyTokens takes a batch, unless somebody else just has.
func (l *Limiter) supplyTokens(ctx context.Context, u *use, now time.Time) error {
	l.mu.Lock()
	need, err := u.lacksTokens(now), u.empty(now)
	l.mu.Unlock()
	if !need || err != nil {
		return err
	}
	taken, wait, err := l.options.Pool.Tokens(ctx, u.key, &u.rule, u.rule.batch())
	if err != nil {
		l.away(u, err)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if u.share.tokens += taken; taken == 0 {
		u.share.dry = now.Add(max(wait, time.Millisecond))
	}
	return u.empty(now)
}

// supplySlots asks for one more than there are calls, and some to spare.
func (l *Limiter) supplySlots(ctx context.Context, u *use, now time.Time) error {
	l.mu.Lock()
	need, running := u.lacksSlots(now), u.running
	l.mu.Unlock()
	if !need {
		return nil
	}
	have, err := l.options.Pool.Slots(ctx, u.key, &u.rule, min(u.rule.Concurrent, running+1+u.rule.spare()))
	if err != nil {
		l.away(u, err)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if u.share.slots = have; have <= running {
		return u.tooMany()
	}
	return nil
}

// away makes this replica go by its own calls for a while.
func (l *Limiter) away(u *use, err error) {
	l.options.Logger.Warn("share a quota with other replicas", "quota", u.rule.Name, "err", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	u.share.alone = l.options.Now().Add(aloneTime)
}

// giveBack returns what is not needed, and says that this replica still needs the rest.
func (l *Limiter) giveBack(u *use) {
	u.share.asking <- struct{}{}
	defer func() { <-u.share.asking }()
	ctx, cancel := context.WithTimeout(context.Background(), saveTime)
	defer cancel()
	l.mu.Lock()
	tokens, slots := u.share.tokens, u.share.slots
	keep := min(u.rule.Concurrent, u.running+u.rule.spare())
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
			l.away(u, err)
			return
		}
	}
	if slots > 0 {
		have, err := l.options.Pool.Slots(ctx, u.key, &u.rule, keep)
		if err != nil {
			l.away(u, err)
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		u.share.slots = min(u.share.slots, have) // others may have taken it for left behind
	}
}

// idleShare is after what time without a call all of a share goes back.
const idleShare = time.Second

// shared lists what has something of a pool.
func (l *Limiter) shared() (list []*use) {
	if l.options.Pool == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.options.Now()
	for _, u := range l.used {
		if (u.share.tokens > 0 || u.share.slots > 0) && !now.Before(u.share.alone) {
			list = append(list, u)
		}
	}
	return list
}
