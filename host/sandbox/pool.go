package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hako-run/hako/host/manifest"
)

// idleTime is the time for which an unused instance is kept; stateTime applies to an instance that holds state.
const (
	idleTime  = time.Minute
	stateTime = 30 * time.Minute
)

// restoreDelay is the wait of a used instance for a call that restores it; after that a goroutine does.
const restoreDelay = time.Millisecond

// pool holds the instances of a plugin between calls, and the image from which they are created.
type pool struct {
	// starting is held while the first instance starts, and guards image.
	starting sync.Mutex
	image    *image
	// background counts goroutines that restore or replace instances.
	background sync.WaitGroup

	// mu guards the fields below.
	mu           sync.Mutex
	idle         []*instance // ready for a call, most recently used last
	used         []*instance // to be restored
	restoreTimer *time.Timer // restores used; nil if not running
	shrinkTimer  *time.Timer
	idleTime     time.Duration
	maxIdle      int // instances
	closed       bool
}

// acquireInstance returns an instance in its state after start: an idle one, a used one that it restores first, or a
// new one. Sessions and shared state have their own instances.
func (p *Plugin) acquireInstance(ctx context.Context, code *code, c *call) (*instance, error) {
	if i := c.session.takeInstance(); i != nil {
		return i, nil
	}
	if i := code.pool.popIdle(p.spec.State, c.Tenant); i != nil {
		return i, nil
	}
	c.ctx = ctx
	if code.singleUse.Load() {
		return p.instantiate(ctx, code, nil, c)
	}
	image, i, err := p.imageOrFirstInstance(ctx, code, c)
	if err != nil || i != nil {
		return i, err
	}
	for i := code.pool.pop(&code.pool.used); i != nil; i = code.pool.pop(&code.pool.used) {
		if p.restore(image, i) {
			return i, nil
		}
		p.discard(i, CloseUnclean)
	}
	return p.instantiate(ctx, code, image, c)
}

// imageOrFirstInstance returns the plugin's image. The first caller loads the stored image; if there is none, it starts
// an instance, captures the image and gets that instance too.
func (p *Plugin) imageOrFirstInstance(ctx context.Context, code *code, c *call) (*image, *instance, error) {
	code.pool.starting.Lock()
	defer code.pool.starting.Unlock()
	if code.pool.image != nil {
		return code.pool.image, nil, nil
	}
	if image := p.loadImage(code); image != nil {
		return image, nil, p.installImage(ctx, code, image, c)
	}
	i, err := p.startFirstInstance(ctx, code, c)
	return code.pool.image, i, err
}

// startFirstInstance starts an instance and captures its image. code.pool.starting is held.
func (p *Plugin) startFirstInstance(ctx context.Context, code *code, c *call) (*instance, error) {
	i, err := p.instantiate(ctx, code, nil, c)
	if err != nil {
		return nil, err
	}
	if i.files.End() > 0 || i.descriptorsChanged {
		i.notCopyable = "the start leaves files open or changes descriptors"
	}
	if i.linked != nil && i.linked.CallScoped() != "" {
		i.notCopyable = "the start leaves a resource open: " + i.linked.CallScoped()
	}
	if c.HasPrivate() {
		i.notCopyable = "the start uses a database, requests or commands, whose answers are the caller's"
	}
	if i.notCopyable != "" {
		code.singleUse.Store(true)
		code.startAhead.Store(i.notCopyable == drawsRandom)
		p.logger.Debug("each call gets a fresh instance", "reason", i.notCopyable)
		return i, nil
	}
	image, err := capture(i, p.engine.Nanotime())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("plugin %s: %w", p.spec.Name, err), i.close(CloseFailed))
	}
	if err := p.installImage(ctx, code, image, c); err != nil {
		return nil, errors.Join(err, i.close(CloseMemory))
	}
	code.pool.background.Go(func() { p.saveImage(code, image) })
	return i, nil
}

// installImage makes image the one from which instances are created, after reserving memory for it. code.pool.starting
// is held.
func (p *Plugin) installImage(ctx context.Context, code *code, image *image, c *call) error {
	if err := p.engine.budget.reserveWithin(ctx, p.spec.Name, image.weight(), c.memoryWait); err != nil {
		return errors.Join(err, image.close())
	}
	code.pool.image = image
	code.data.drop()
	return nil
}

// releaseInstance returns an instance after a call. Restoring it is not part of this call: the next call does it, which
// finds the memory in its processor's caches, or a goroutine if no call follows at once. An instance that cannot be
// restored is discarded and replaced. One whose state lasts is kept as it is.
func (p *Plugin) releaseInstance(code *code, i *instance, c *call, ended bool) {
	i.dropCall()
	switch {
	case ended && c.session != nil:
		c.session.instance = i
		return
	case ended && p.spec.State == manifest.StateShared:
		i.hasState, i.tenant = true, c.Tenant
		code.pool.addIdle(i)
		return
	case ended && !code.singleUse.Load():
		code.pool.recycle(i, func() { p.restoreUsed(code) })
		return
	}
	reason := CloseFailed
	if ended {
		reason = CloseSingle
	}
	code.pool.background.Go(func() {
		p.discard(i, reason)
		p.replenish(code)
	})
}

// restoreUsed restores the used instances that no call has taken meanwhile.
func (p *Plugin) restoreUsed(code *code) {
	for i := code.pool.pop(&code.pool.used); i != nil; i = code.pool.pop(&code.pool.used) {
		if p.restore(code.image(), i) {
			code.pool.addIdle(i)
			continue
		}
		p.discard(i, CloseUnclean)
		p.replenish(code)
	}
}

func (code *code) image() *image {
	code.pool.starting.Lock()
	defer code.pool.starting.Unlock()
	return code.pool.image
}

// replenish adds an idle instance if there is none.
func (p *Plugin) replenish(code *code) {
	image := code.image()
	if image == nil && !code.startAhead.Load() || !code.pool.noneIdle() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.spec.Limits.Time)
	defer cancel()
	c := p.newCall("", p.spec.Limits)
	c.ctx, c.memoryWait = ctx, 0
	defer c.releaseReserved()
	defer c.log.flush()
	budget := &p.engine.budget
	if budget.used.Load()+code.startMemory(image) > budget.limit {
		return // evict nothing for an instance that may not be needed
	}
	i, err := p.instantiate(ctx, code, image, c)
	if err != nil {
		p.logger.Warn("make an instance", "err", err)
		return
	}
	if i.notCopyable != "" && i.notCopyable != drawsRandom {
		p.discard(i, CloseUnclean) // unlike the first instance, it did something that copies must not share
		return
	}
	code.pool.addIdle(i)
}

func (p *Plugin) discard(i *instance, reason string) {
	if err := i.close(reason); err != nil {
		p.logger.Debug("close an instance", "err", err)
	}
}

// pop removes and returns the last instance of a list, or nil.
func (p *pool) pop(list *[]*instance) *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(*list)
	if n == 0 {
		return nil
	}
	i := (*list)[n-1]
	(*list)[n-1] = nil
	*list = (*list)[:n-1]
	return i
}

// popIdle removes and returns the most recently used idle instance, or nil. With shared state it prefers one with this
// tenant's state and otherwise returns one without state.
func (p *pool) popIdle(state manifest.State, tenant string) *instance {
	if state != manifest.StateShared {
		return p.pop(&p.idle)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found := -1
	for n, i := range slices.Backward(p.idle) {
		if i.hasState && i.tenant == tenant {
			found = n
			break
		}
		if !i.hasState && found < 0 {
			found = n
		}
	}
	if found < 0 {
		return nil
	}
	i := p.idle[found]
	p.idle = slices.Delete(p.idle, found, found+1)
	return i
}

// recycle adds a used instance and schedules restoreUsed after restoreDelay.
func (p *pool) recycle(i *instance, restoreUsed func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i.since = time.Now()
	p.used = append(p.used, i)
	if p.restoreTimer != nil {
		return
	}
	p.restoreTimer = time.AfterFunc(restoreDelay, func() {
		p.mu.Lock()
		p.restoreTimer = nil
		closed := p.closed
		if !closed {
			p.background.Add(1)
		}
		p.mu.Unlock()
		if !closed {
			defer p.background.Done()
			restoreUsed()
		}
	})
}

func (p *pool) noneIdle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle) == 0 && !p.closed
}

// addIdle adds an idle instance. If there are more than maxIdle, which happens only with shared state, the least
// recently used one is closed.
func (p *pool) addIdle(i *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = i.close(CloseCode) // no guest code runs, so closing does not fail
		return
	}
	i.since = time.Now()
	p.idle = append(p.idle, i)
	if len(p.idle) > p.maxIdle {
		_ = p.idle[0].close(CloseSurplus) // no guest code runs, so closing does not fail
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	if p.shrinkTimer == nil {
		p.shrinkTimer = time.AfterFunc(p.idleTime, p.shrink)
	}
}

// shrink closes the instances that have been idle for idleTime.
func (p *pool) shrink() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && time.Since(p.idle[n].since) >= p.idleTime {
		_ = p.idle[n].close(CloseIdle) // no guest code runs, so closing does not fail
		n++
	}
	p.idle = append([]*instance(nil), p.idle[n:]...)
	p.shrinkTimer = nil
	if len(p.idle) > 0 && !p.closed {
		p.shrinkTimer = time.AfterFunc(p.idleTime-time.Since(p.idle[0].since), p.shrink)
	}
}

// instanceIdleTime returns the time for which the plugin's unused instances are kept.
func (p *Plugin) instanceIdleTime() time.Duration {
	if p.spec.State == manifest.StateShared {
		return stateTime
	}
	return idleTime
}

// oldestSince returns since when the least recently used instance has been waiting.
func (p *pool) oldestSince() (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range [][]*instance{p.idle, p.used} {
		if len(list) > 0 {
			return list[0].since, true
		}
	}
	return time.Time{}, false
}

// closeOldest closes the least recently used instance. It reports false if there is none.
func (p *pool) closeOldest() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range []*[]*instance{&p.idle, &p.used} {
		if len(*list) > 0 {
			_ = (*list)[0].close(CloseMemory) // no guest code runs, so closing does not fail
			*list = append([]*instance(nil), (*list)[1:]...)
			return true
		}
	}
	return false
}

// close waits for background goroutines and closes all instances and the image, whose weight it returns. No call may be
// running.
func (p *pool) close() (weight int64, err error) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.background.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shrinkTimer != nil {
		p.shrinkTimer.Stop()
	}
	for _, i := range append(p.idle, p.used...) {
		_ = i.close(CloseCode) // no guest code runs, so closing does not fail
	}
	p.idle, p.used = nil, nil
	if p.image == nil {
		return 0, nil
	}
	return p.image.weight(), p.image.close()
}

// restore resets an instance to the image. It reports false if that is not possible.
func (p *Plugin) restore(image *image, i *instance) bool {
	begin := time.Now()
	if !image.restore(i) {
		return false
	}
	p.engine.observer.InstanceRestored(p.spec.Name, time.Since(begin))
	return true
}
