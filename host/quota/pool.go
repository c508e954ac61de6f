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
	empty  time.Time // until when there are no more, as far as is known
	slots  int       // calls at once
}

func newShare() *share { return &share{asking: make(chan struct{}, 1)} }

// batch is how many calls of the rate are taken at once.
func (r *Rule) batch() int { return min(max(1, cmp.Or(r.Burst, r.Rate)/10), 100) }

// spare is how many calls at once a replica keeps beyond those that it needs.
func (r *Rule) spare() int { return r.Concurrent / 8 }

// supply asks the pool where the share is used up. It waits for whoever asks already.
func (l *Limiter) supply(u *use, now time.Time) {
	if l.options.Pool == nil || !l.lacks(u, now) {
		return
	}
	u.share.asking <- struct{}{}
	defer func() { <-u.share.asking }()
	if !l.lacks(u, now) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), saveTime)
	defer cancel()
	l.supplyTokens(ctx, u, now)
	l.supplySlots(ctx, u)
}

// lacks reports whether the share has nothing left for a call, although the pool may have.
func (l *Limiter) lacks(u *use, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return u.lacksTokens(now) || u.lacksSlots()
}

func (u *use) lacksTokens(now time.Time) bool {
	return u.rule.Rate > 0 && u.share.tokens < 1 && !now.Before(u.share.empty)
}

func (u *use) lacksSlots() bool { return u.rule.Concurrent > 0 && u.share.slots <= u.running }

// supplyTokens takes a batch. If the pool cannot be asked, this replica goes by what it has let pass itself.
func (l *Limiter) supplyTokens(ctx context.Context, u *use, now time.Time) {
	l.mu.Lock()
	need := u.lacksTokens(now)
	l.mu.Unlock()
	if !need {
		return
	}
	taken, wait, err := l.options.Pool.Tokens(ctx, u.key, &u.rule, u.rule.batch())
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.options.Logger.Warn("share a quota with other replicas", "quota", u.rule.Name, "err", err)
		taken = 1
	}
	u.share.tokens += taken
	if taken == 0 {
		u.share.empty = now.Add(wait)
	}
}

func (l *Limiter) supplySlots(ctx context.Context, u *use) {
	l.mu.Lock()
	need, n := u.lacksSlots(), min(u.rule.Concurrent, u.running+1+u.rule.spare())
	l.mu.Unlock()
	if !need {
		return
	}
	have, err := l.options.Pool.Slots(ctx, u.key, &u.rule, n)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.options.Logger.Warn("share a quota with other replicas", "quota", u.rule.Name, "err", err)
		have = u.running + 1
	}
	u.share.slots = have
}

// left is full where the quota is shared: what the share does not have is another replica's.
func (u *use) left(now time.Time) error {
	switch {
	case u.rule.Concurrent > 0 && u.running >= u.share.slots:
		return u.tooMany()
	case u.rule.Rate > 0 && u.share.tokens < 1:
		wait := u.share.empty.Sub(now)
		return u.tooOften(max(time.Second, time.Duration(math.Ceil(wait.Seconds()))*time.Second))
	}
	return nil
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
		_, _, err := l.options.Pool.Tokens(ctx, u.key, &u.rule, -tokens)
		l.warn(u, err)
	}
	if slots > 0 {
		_, err := l.options.Pool.Slots(ctx, u.key, &u.rule, keep)
		l.warn(u, err)
	}
}

// idleShare is after what time without a call all of a share goes back.
const idleShare = time.Second

func (l *Limiter) warn(u *use, err error) {
	if err != nil {
		l.options.Logger.Warn("share a quota with other replicas", "quota", u.rule.Name, "err", err)
	}
}

// shared lists what has something of a pool.
func (l *Limiter) shared() (list []*use) {
	if l.options.Pool == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.used {
		if u.share.tokens > 0 || u.share.slots > 0 {
			list = append(list, u)
		}
	}
	return list
}
