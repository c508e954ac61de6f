// Package quota limits what callers use: calls per minute, concurrent calls, and computing per day.
//
// A Limiter applies Rules: Limiter.Acquire counts a call or fails with an *Error. A Ledger keeps the used computing
// over restarts, a Pool shares the other limits between replicas. Store implements both in the host's store.
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

	"github.com/hako-run/hako/pdk/locale"
)

// Scope is the group of callers whose use is counted together.
type Scope string

// Scopes.
const (
	All    Scope = "all" // all callers
	Tenant Scope = "tenant"
	User   Scope = "user" // a user of a tenant
	Token  Scope = "token"
	Plugin Scope = "plugin"
)

// scopes lists all scopes.
var scopes = []Scope{All, Tenant, User, Token, Plugin}

// Rule is a quota. Zero limits do not apply.
type Rule struct {
	Name string
	// Per is the group of callers whose use is counted together. Empty means User.
	Per Scope
	// Tenants, Users, Tokens, Plugins and Tools restrict the calls to which the quota applies. Empty means all.
	Tenants, Users, Tokens, Plugins, Tools []string

	// Rate bounds the calls per minute; Burst of them may come at once. Zero Burst means Rate.
	Rate, Burst int
	// Concurrent bounds the concurrent calls.
	Concurrent int
	// CPU bounds the computing per day, which begins at midnight UTC. A second is StepsPerSecond steps of guests.
	CPU time.Duration
}

// StepsPerSecond is the number of steps that count as a second of computing, about what a core executes. Steps do not
// depend on the machine or its load.
const StepsPerSecond = 500_000_000

// Call identifies a call for quotas.
type Call struct {
	Tenant, User, Token, Plugin, Tool string
	// Parent is the call whose tool makes this one. A quota that counts both counts them as one concurrent call. Nil
	// means that there is none.
	Parent *Call
}

// Error means that a quota is used up.
type Error struct {
	// Rule is the name of the quota, Limit its limit in words.
	Rule, Limit string
	// RetryAfter is the time until a call may pass again.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	return fmt.Sprintf("quota %s: %s: try again in %s", e.Rule, e.Limit, e.RetryAfter.Round(time.Second))
}

// Ledger keeps the used computing over restarts and shares it between replicas. *Store implements it.
type Ledger interface {
	// Add adds used to the use of key on day, and returns the sum. Zero only reads it.
	Add(ctx context.Context, day, key string, used time.Duration) (time.Duration, error)
}

// Options configures a Limiter. A nil *Options means all defaults.
type Options struct {
	// Ledger keeps the used computing. Nil means that it is forgotten when the process ends.
	Ledger Ledger
	// Pool shares rates and concurrent calls with other replicas. Nil means that there are none.
	Pool Pool
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Logger receives failures of the ledger. Nil discards them.
	Logger *slog.Logger
}

// Limiter applies quotas. It is safe for concurrent use.
type Limiter struct {
	options Options

	// mu guards the fields below.
	mu    sync.Mutex
	rules []Rule
	used  map[string]*use // by rule and owner

	closed  bool
	returns sync.WaitGroup // goroutines that return shares to the pool
}

// use is the use of one quota by one owner.
type use struct {
	rule    Rule
	key     string
	limiter *rate.Limiter // nil without a rate
	running int
	last    time.Time
	share   *share // of Options.Pool

	day        string
	usedCPU    time.Duration // on day, as far as known
	unsavedCPU time.Duration // part of usedCPU that is not in the ledger yet
	loaded     bool          // usedCPU includes the ledger's value
}

// New returns a Limiter with rules, which must have passed Check.
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

// Check returns an error if the rule is invalid.
func (r *Rule) Check() error {
	switch {
	case r.Name == "":
		return locale.Text{"en": "a quota needs a name: errors refer to it",
			"ja": "クォータには name が必要です。エラーはこの名前で示します"}.Errorf()
	case r.Per != "" && !slices.Contains(scopes, r.Per):
		return locale.Text{"en": "quota %s: per must be one of %v, not %q",
			"ja": "クォータ %s: per には %v のいずれかを書いてください (現在は %q)"}.Errorf(r.Name, scopes, r.Per)
	case min(r.Rate, r.Burst, r.Concurrent) < 0 || r.CPU < 0:
		return locale.Text{"en": "quota %s: limits must not be below zero",
			"ja": "クォータ %s: 上限に負の値は使えません"}.Errorf(r.Name)
	case r.Rate == 0 && r.Concurrent == 0 && r.CPU == 0:
		return locale.Text{"en": "quota %s limits nothing: set rate, concurrent or cpu",
			"ja": "クォータ %s には上限がありません。rate、concurrent、cpu のいずれかを書いてください"}.Errorf(r.Name)
	}
	return nil
}

// SetRules replaces the rules. Use under rules with the same name and limits still counts.
func (l *Limiter) SetRules(rules []Rule) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules = rules
}

// Acquire counts a call, or fails with an *Error if a quota is used up. release must be called once when the call has
// ended, with the steps of the guest.
func (l *Limiter) Acquire(c Call) (release func(steps int64), err error) {
	now := l.options.Now()
	mine := l.usesOf(c, now)
	for _, u := range mine {
		l.loadUsage(u.use)
	}
	for {
		short, err := l.tryAcquire(mine, now)
		if err == nil && short == nil {
			return func(steps int64) { l.releaseCall(mine, steps) }, nil
		}
		if err == nil {
			err = l.refillShare(short, now)
		}
		if err != nil {
			return nil, err
		}
		now = l.options.Now() // the pool may have taken time
	}
}

// tryAcquire counts the call if all quotas have room. Otherwise it changes nothing; short, if not nil, needs a refill
// from the pool first.
func (l *Limiter) tryAcquire(mine []counted, now time.Time) (short *counted, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range mine {
		if err := u.check(now); err != nil {
			return nil, err
		}
	}
	for i, u := range mine {
		if l.options.Pool == nil || !u.needsRefill(now) {
			continue
		}
		return &mine[i], u.checkEmpty(now)
	}
	for _, u := range mine {
		u.count(now)
	}
	return nil, nil
}

// counted is a use in which a call counts.
type counted struct {
	*use
	// concurrent reports whether it is one of the concurrent calls.
	concurrent bool
}

// usesOf returns the uses in which the call counts.
func (l *Limiter) usesOf(c Call, now time.Time) (mine []counted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.rules {
		if rule := &l.rules[i]; rule.matches(c) {
			parent := c.Parent != nil && rule.matches(*c.Parent) && rule.ownerKey(*c.Parent) == rule.ownerKey(c)
			mine = append(mine, counted{l.use(rule, c, now), !parent})
		}
	}
	return mine
}

func (l *Limiter) releaseCall(mine []counted, steps int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	computed := time.Duration(float64(steps) / StepsPerSecond * float64(time.Second))
	for _, u := range mine {
		if u.concurrent {
			u.running--
		}
		if u.rule.CPU > 0 {
			u.usedCPU += computed
			u.unsavedCPU += computed
		}
		if l.options.Pool != nil && u.rule.Concurrent > 0 && u.share.slots > u.running+2*u.rule.spareSlots() &&
			!l.closed {
			l.returns.Go(func() { l.returnShare(u.use) }) // another replica may need the slots
		}
	}
}

// matches reports whether the quota applies to the call.
func (r *Rule) matches(c Call) bool {
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

// ownerKey identifies the callers whose use is counted together with that of c.
func (r *Rule) ownerKey(c Call) string {
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
	// maxUses bounds the uses in memory. When it is reached, those without a call for idleUse are evicted.
	maxUses = 100_000
	idleUse = 10 * time.Minute
)

// use returns the use of the caller of c. l.mu is held.
func (l *Limiter) use(rule *Rule, c Call, now time.Time) *use {
	key := url.PathEscape(rule.Name) + "/" + rule.ownerKey(c)
	u, ok := l.used[key]
	if !ok || !u.rule.equal(rule) {
		if len(l.used) >= maxUses {
			l.evictIdle(now)
		}
		u = &use{rule: *rule, key: key, share: &share{refilling: make(chan struct{}, 1)}}
		if rule.Rate > 0 {
			u.limiter = rate.NewLimiter(rate.Limit(float64(rule.Rate)/60), cmp.Or(rule.Burst, rule.Rate))
		}
		l.used[key] = u
	}
	u.last = now
	if day := now.UTC().Format(time.DateOnly); rule.CPU > 0 && u.day != day {
		u.day, u.usedCPU, u.unsavedCPU, u.loaded = day, 0, 0, false
	}
	return u
}

func (r *Rule) equal(other *Rule) bool {
	return r.Rate == other.Rate && r.Burst == other.Burst && r.Concurrent == other.Concurrent && r.CPU == other.CPU &&
		r.Per == other.Per
}

// evictIdle removes idle uses that hold nothing.
func (l *Limiter) evictIdle(now time.Time) {
	for key, u := range l.used {
		if u.running == 0 && u.unsavedCPU == 0 && u.share.tokens == 0 && u.share.slots == 0 &&
			now.Sub(u.last) > idleUse {
			delete(l.used, key)
		}
	}
}

// check returns an error if the quota is used up.
func (u *counted) check(now time.Time) error {
	switch {
	case u.concurrent && u.rule.Concurrent > 0 && u.running >= u.rule.Concurrent:
		return u.concurrencyError()
	case u.rule.CPU > 0 && u.usedCPU >= u.rule.CPU:
		midnight := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		return &Error{u.rule.Name, fmt.Sprintf("%s of computing a day", u.rule.CPU), midnight.Sub(now)}
	}
	if wait := u.rateWait(now); wait > 0 {
		return u.rateError(wait)
	}
	return nil
}

func (u *use) concurrencyError() error {
	return &Error{u.rule.Name, fmt.Sprintf("%d calls at once", u.rule.Concurrent), time.Second}
}

func (u *use) rateError(wait time.Duration) error {
	return &Error{u.rule.Name, fmt.Sprintf("%d calls a minute", u.rule.Rate), wait}
}

// rateWait returns how long it takes until the rate allows a call.
func (u *use) rateWait(now time.Time) time.Duration {
	if u.limiter == nil {
		return 0
	}
	missing := 1 - u.limiter.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(missing/float64(u.limiter.Limit()))) * time.Second
}

// count counts the call, which check has allowed.
func (u *counted) count(now time.Time) {
	if u.limiter != nil {
		u.limiter.AllowN(now, 1)
		u.share.tokens = max(0, u.share.tokens-1)
	}
	if u.concurrent {
		u.running++
	}
}

// ledgerTimeout bounds one access to the ledger: the first call of an owner on a day waits for one.
const ledgerTimeout = 2 * time.Second

// loadUsage reads, once per day, what other replicas have used.
func (l *Limiter) loadUsage(u *use) {
	l.mu.Lock()
	known := u.rule.CPU == 0 || u.loaded
	l.mu.Unlock()
	if !known {
		l.saveUsage(u)
	}
}

// saveUsage adds unsavedCPU to the ledger and reads what others have used. It does not block other calls. It reports
// whether the ledger has responded.
func (l *Limiter) saveUsage(u *use) bool {
	if l.options.Ledger == nil {
		return true
	}
	l.mu.Lock()
	day, unsaved := u.day, u.unsavedCPU
	u.loaded, u.unsavedCPU = true, 0
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), ledgerTimeout)
	defer cancel()
	sum, err := l.options.Ledger.Add(ctx, day, u.key, unsaved)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.options.Logger.Warn("save the use of a quota", "quota", u.rule.Name, "err", err)
		if u.day == day {
			u.unsavedCPU += unsaved
		}
	case u.day == day:
		u.usedCPU = sum + u.unsavedCPU
	}
	return err == nil
}

// Flush saves the used computing to the Ledger and returns unused shares to the Pool. It should be called every few
// seconds.
func (l *Limiter) Flush() {
	for _, u := range l.unsavedUses() {
		if !l.saveUsage(u) {
			break // the others would wait as long; the next Flush saves them
		}
	}
	for _, u := range l.sharedUses() {
		l.returnShare(u)
	}
}

// Close flushes for the last time. All calls must have ended.
func (l *Limiter) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.returns.Wait()
	l.Flush()
}

func (l *Limiter) unsavedUses() (list []*use) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.used {
		if u.unsavedCPU > 0 {
			list = append(list, u)
		}
	}
	return list
}
