// Package quota limits how much callers use: calls a minute, calls at once, computing a day.
package quota

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Scope says whose use counts together.
type Scope string

// Scopes.
const (
	All    Scope = "all" // everybody's
	Tenant Scope = "tenant"
	User   Scope = "user" // a user of a tenant
	Token  Scope = "token"
	Plugin Scope = "plugin"
)

// Scopes lists them all.
var Scopes = []Scope{All, Tenant, User, Token, Plugin}

// Rule is one quota. Limits that are zero do not apply.
type Rule struct {
	Name string
	// Per says whose use counts together. Empty means User.
	Per Scope
	// Tenants, Users, Tokens, Plugins and Tools say whom and what the quota is for. Empty means all.
	Tenants, Users, Tokens, Plugins, Tools []string

	// Rate is calls a minute, of which Burst may come at once. Zero Burst means Rate.
	Rate, Burst int
	// Concurrent is calls under way at once.
	Concurrent int
	// CPU is computing a day, which begins at midnight UTC. A second is StepsPerSecond of the guest's steps.
	CPU time.Duration
}

// StepsPerSecond is how many steps of a guest count as a second of computing: about what a core takes. Steps are counted alike on any
// machine, however busy it is.
const StepsPerSecond = 500_000_000

// Call is what counts.
type Call struct{ Tenant, User, Token, Plugin, Tool string }

// Error says that a quota is used up.
type Error struct {
	// Rule is its name, Limit what it allows.
	Rule, Limit string
	// RetryAfter is when a call may pass again.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	return fmt.Sprintf("quota %s: %s: try again in %s", e.Rule, e.Limit, e.RetryAfter.Round(time.Second))
}

// Ledger keeps what was used over restarts, and between replicas. *Book is one.
type Ledger interface {
	// Add adds to what key has used on day, and returns the sum. Adding nothing reads it.
	Add(ctx context.Context, day, key string, used time.Duration) (time.Duration, error)
}

// Options configures a Limiter. A nil *Options means all defaults.
type Options struct {
	// Ledger keeps computing time. Nil forgets it when the process ends.
	Ledger Ledger
	// Pool shares calls a minute and calls at once with other replicas. Nil means that there are none.
	Pool Pool
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Logger receives failures of the ledger. Nil discards them.
	Logger *slog.Logger
}

// Limiter holds calls to quotas. It is safe for concurrent use.
type Limiter struct {
	options Options

	// mu guards what follows.
	mu    sync.Mutex
	rules []Rule
	used  map[string]*use // by rule and whose

	closed    bool
	returning sync.WaitGroup // what goes back to the pool
}

// use is what somebody has used of one quota.
type use struct {
	rule    Rule
	key     string
	limiter *rate.Limiter // nil: no rate
	running int
	last    time.Time
	share   *share // of Options.Pool

	day      string
	computed time.Duration // today, as far as known
	unsaved  time.Duration // of it, what the ledger does not know
	asked    bool          // the ledger was asked about the day
}

// New returns a Limiter with rules, which are to be checked with Check before.
func New(rules []Rule, options *Options) *Limiter {
	l := &Limiter{rules: rules, used: map[string]*use{}}
	if options != nil {
		l.options = *options
	}
	if l.options.Now == nil {
		l.options.Now = time.Now
	}
	if l.options.Logger == nil {
		l.options.Logger = slog.New(slog.DiscardHandler)
	}
	return l
}

// Check reports what is wrong with the rule.
func (r *Rule) Check() error {
	switch {
	case r.Name == "":
		return fmt.Errorf("a quota needs a name, by which errors refer to it")
	case r.Per != "" && !slices.Contains(Scopes, r.Per):
		return fmt.Errorf("quota %s: per must be one of %v, not %q", r.Name, Scopes, r.Per)
	case min(r.Rate, r.Burst, r.Concurrent) < 0 || r.CPU < 0:
		return fmt.Errorf("quota %s: limits must not be below zero", r.Name)
	case r.Rate == 0 && r.Concurrent == 0 && r.CPU == 0:
		return fmt.Errorf("quota %s limits nothing: set rate, concurrent or cpu", r.Name)
	}
	return nil
}

// SetRules puts other rules in force. What was used under rules of the same name and limits still counts.
func (l *Limiter) SetRules(rules []Rule) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules = rules
}

// Enter lets a call pass, or fails with an *Error if a quota is used up. leave, to be called once when the call has ended, takes the
// guest's steps.
func (l *Limiter) Enter(c Call) (leave func(steps int64), err error) {
	now := l.options.Now()
	mine := l.uses(c, now)
	for _, u := range mine {
		l.learn(u)
	}
	for {
		short, err := l.pass(mine, now)
		if err == nil && short == nil {
			return func(steps int64) { l.leave(mine, steps) }, nil
		}
		if err == nil {
			err = l.supply(short, now)
		}
		if err != nil {
			return nil, err
		}
		now = l.options.Now() // of which the pool may have taken some
	}
}

// pass counts the call if there is room for it everywhere. Otherwise nothing has changed, and short is what the pool has to be asked for first.
func (l *Limiter) pass(mine []*use, now time.Time) (short *use, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range mine {
		if err := u.full(now); err != nil {
			return nil, err
		}
	}
	for _, u := range mine {
		if l.options.Pool == nil || !u.lacks(now) {
			continue
		}
		return u, u.empty(now)
	}
	for _, u := range mine {
		u.take(now)
	}
	return nil, nil
}

// uses lists what counts for the call.
func (l *Limiter) uses(c Call, now time.Time) (mine []*use) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.rules {
		if rule := &l.rules[i]; rule.concerns(c) {
			mine = append(mine, l.use(rule, c, now))
		}
	}
	return mine
}

func (l *Limiter) leave(mine []*use, steps int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	computed := time.Duration(float64(steps) / StepsPerSecond * float64(time.Second))
	for _, u := range mine {
		u.running--
		if u.rule.CPU > 0 {
			u.computed += computed
			u.unsaved += computed
		}
		if l.options.Pool != nil && u.rule.Concurrent > 0 && u.share.slots > u.running+2*u.rule.spare() && !l.closed {
			l.returning.Go(func() { l.giveBack(u) }) // another replica may wait for it
		}
	}
}

// concerns reports whether the quota is for the call.
func (r *Rule) concerns(c Call) bool {
	for _, pair := range []struct {
		names []string
		name  string
	}{{r.Tenants, c.Tenant}, {r.Users, c.User}, {r.Tokens, c.Token}, {r.Plugins, c.Plugin}, {r.Tools, c.Tool}} {
		if len(pair.names) > 0 && !slices.Contains(pair.names, pair.name) {
			return false
		}
	}
	return true
}

// whose names who shares the quota with the caller of c.
func (r *Rule) whose(c Call) string {
	switch cmp.Or(r.Per, User) {
	case Tenant:
		return url.PathEscape(c.Tenant)
	case User:
		return url.PathEscape(c.Tenant) + "/" + url.PathEscape(c.User)
	case Token:
		return url.PathEscape(c.Token)
	case Plugin:
		return url.PathEscape(c.Plugin)
	}
	return ""
}

const (
	// maxUses bounds what is remembered, and idleUse after what time it is forgotten then.
	maxUses = 100_000
	idleUse = 10 * time.Minute
)

// use returns what the caller of c has used. The lock is held.
func (l *Limiter) use(rule *Rule, c Call, now time.Time) *use {
	key := url.PathEscape(rule.Name) + "/" + rule.whose(c)
	u, ok := l.used[key]
	if !ok || !u.rule.equal(rule) {
		if len(l.used) >= maxUses {
			l.forget(now)
		}
		u = &use{rule: *rule, key: key, share: newShare()}
		if rule.Rate > 0 {
			u.limiter = rate.NewLimiter(rate.Limit(float64(rule.Rate)/60), cmp.Or(rule.Burst, rule.Rate))
		}
		l.used[key] = u
	}
	u.last = now
	if day := now.UTC().Format(time.DateOnly); rule.CPU > 0 && u.day != day {
		u.day, u.computed, u.unsaved, u.asked = day, 0, 0, false
	}
	return u
}

func (r *Rule) equal(other *Rule) bool {
	return r.Rate == other.Rate && r.Burst == other.Burst && r.Concurrent == other.Concurrent && r.CPU == other.CPU && r.Per == other.Per
}

// forget drops what has not been used for a while and holds nothing.
func (l *Limiter) forget(now time.Time) {
	for key, u := range l.used {
		if u.running == 0 && u.unsaved == 0 && u.share.tokens == 0 && u.share.slots == 0 && now.Sub(u.last) > idleUse {
			delete(l.used, key)
		}
	}
}

// full reports whether nothing is left, without taking anything.
func (u *use) full(now time.Time) error {
	switch {
	case u.rule.Concurrent > 0 && u.running >= u.rule.Concurrent:
		return u.tooMany()
	case u.rule.CPU > 0 && u.computed >= u.rule.CPU:
		midnight := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		return &Error{u.rule.Name, fmt.Sprintf("%s of computing a day", u.rule.CPU), midnight.Sub(now)}
	}
	if wait := u.wait(now); wait > 0 {
		return u.tooOften(wait)
	}
	return nil
}

func (u *use) tooMany() error {
	return &Error{u.rule.Name, fmt.Sprintf("%d calls at once", u.rule.Concurrent), time.Second}
}

func (u *use) tooOften(wait time.Duration) error {
	return &Error{u.rule.Name, fmt.Sprintf("%d calls a minute", u.rule.Rate), wait}
}

// wait is how long it takes until the rate allows a call.
func (u *use) wait(now time.Time) time.Duration {
	if u.limiter == nil {
		return 0
	}
	missing := 1 - u.limiter.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(missing/float64(u.limiter.Limit()))) * time.Second
}

// take counts the call, for which there is room.
func (u *use) take(now time.Time) {
	if u.limiter != nil {
		u.limiter.AllowN(now, 1)
		u.share.tokens = max(0, u.share.tokens-1)
	}
	u.running++
}

// saveTime bounds one exchange with the ledger: a caller's first call of a day waits for one.
const saveTime = 2 * time.Second

// learn asks the ledger, once a day, what others have used.
func (l *Limiter) learn(u *use) {
	l.mu.Lock()
	known := u.rule.CPU == 0 || u.asked
	l.mu.Unlock()
	if !known {
		l.save(u)
	}
}

// save tells the ledger, and learns what others have used. No call waits for it but the caller's. It reports whether the ledger has answered.
func (l *Limiter) save(u *use) bool {
	if l.options.Ledger == nil {
		return true
	}
	l.mu.Lock()
	day, unsaved := u.day, u.unsaved
	u.asked, u.unsaved = true, 0
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), saveTime)
	defer cancel()
	sum, err := l.options.Ledger.Add(ctx, day, u.key, unsaved)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.options.Logger.Warn("keep what was used of a quota", "quota", u.rule.Name, "err", err)
		if u.day == day {
			u.unsaved += unsaved
		}
	case u.day == day:
		u.computed = sum + u.unsaved
	}
	return err == nil
}

// Flush saves what was computed since the last time, and gives back what was taken of a Pool and not used. Whoever made the Limiter calls
// it every few seconds.
func (l *Limiter) Flush() {
	for _, u := range l.unsaved() {
		if !l.save(u) {
			break // the others would wait as long, and are there the next time
		}
	}
	for _, u := range l.shared() {
		l.giveBack(u)
	}
}

// Close flushes for the last time. Calls must have ended.
func (l *Limiter) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.returning.Wait()
	l.Flush()
}

func (l *Limiter) unsaved() (list []*use) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.used {
		if u.unsaved > 0 {
			list = append(list, u)
		}
	}
	return list
}
