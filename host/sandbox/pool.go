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

// idleTime is how long an instance is kept without a call, stateTime one that remembers something.
const (
	idleTime  = time.Minute
	stateTime = 30 * time.Minute
)

// restoreDelay is how long a used instance waits for a call that puts it back itself.
const restoreDelay = time.Millisecond

// pool holds the instances of a plugin that wait for a call, and the image that they start from.
type pool struct {
	// starting is held while the first instance starts, and guards image.
	starting sync.Mutex
	image    *image
	// resets counts instances that are being put back.
	resets sync.WaitGroup

	// mu guards what follows.
	mu        sync.Mutex
	idle      []*instance // ready for a call, the one used last at the end
	used      []*instance // after a call, to be put back
	restoring *time.Timer // until then; nil: no need
	shrinking *time.Timer
	idleTime  time.Duration
	most      int // as many idle ones are kept
	closed    bool
}

// acquire returns an instance that is as after its start: an idle one, one that it puts back itself because nobody has yet, or a
// new one, for which the call waits.
func (p *Plugin) acquire(ctx context.Context, code *code, c *call) (*instance, error) {
	if i := c.session.take(); i != nil {
		return i, nil
	}
	if i := code.pool.takeIdle(p.spec.State, c.Tenant); i != nil {
		return i, nil
	}
	c.ctx = ctx
	if code.lasting.Load() {
		return p.instantiate(ctx, code, nil, c)
	}
	image, i, err := p.start(ctx, code, c)
	if err != nil || i != nil {
		return i, err
	}
	for i := code.pool.take(&code.pool.used); i != nil; i = code.pool.take(&code.pool.used) {
		if p.restore(image, i) {
			return i, nil
		}
		p.discard(i, CloseUnclean)
	}
	return p.instantiate(ctx, code, image, c)
}

// start returns the plugin's image. Whoever is first loads the one that was kept, or starts an instance to make it and gets that too.
func (p *Plugin) start(ctx context.Context, code *code, c *call) (*image, *instance, error) {
	code.pool.starting.Lock()
	defer code.pool.starting.Unlock()
	if code.pool.image != nil {
		return code.pool.image, nil, nil
	}
	if image := p.loadImage(code); image != nil {
		return image, nil, p.hold(ctx, code, image, c)
	}
	i, err := p.first(ctx, code, c)
	return code.pool.image, i, err
}

// first starts an instance and makes the image of it. code.pool.starting is held.
func (p *Plugin) first(ctx context.Context, code *code, c *call) (*instance, error) {
	i, err := p.instantiate(ctx, code, nil, c)
	if err != nil {
		return nil, err
	}
	if i.files.End() > 0 || i.spoiled {
		i.unique = "the start leaves files open or changes descriptors"
	}
	if i.unique != "" {
		code.lasting.Store(true)
		code.ahead.Store(i.unique == startDrew)
		p.logger.Debug("each call gets a fresh instance", "reason", i.unique)
		return i, nil
	}
	image, err := capture(i, p.engine.nanotime())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("plugin %s: %w", p.spec.Name, err), i.close(CloseFailed))
	}
	if err := p.hold(ctx, code, image, c); err != nil {
		return nil, errors.Join(err, i.close(CloseMemory))
	}
	code.pool.resets.Go(func() { p.saveImage(code, image) })
	return i, nil
}

// hold makes the image the one that instances start from, if there is memory for it. code.pool.starting is held.
func (p *Plugin) hold(ctx context.Context, code *code, image *image, c *call) error {
	if err := p.engine.budget.wait(ctx, p.spec.Name, image.weight(), c.patience); err != nil {
		return errors.Join(err, image.memory.close())
	}
	code.pool.image = image
	return nil
}

// giveBack hands in an instance after a call. It is put back off the path of this call: by the next one, which finds its memory still in
// the processor's caches, or in the background if none follows at once. An instance that cannot be put back, because the call failed or
// something of it would stay, is thrown away and replaced. One whose state lasts is kept as it is.
func (p *Plugin) giveBack(code *code, i *instance, c *call, ended bool) {
	switch {
	case ended && c.session != nil:
		c.session.instance = i
		return
	case ended && p.spec.State == manifest.StateShared:
		i.remembers, i.tenant = true, c.Tenant
		code.pool.keep(i)
		return
	case ended && !code.lasting.Load():
		code.pool.lay(i, func() { p.putBack(code) })
		return
	}
	reason := CloseFailed
	if ended {
		reason = CloseSingle
	}
	code.pool.resets.Go(func() {
		p.discard(i, reason)
		p.refill(code)
	})
}

// putBack makes the used instances idle that no call has taken in the meantime.
func (p *Plugin) putBack(code *code) {
	for i := code.pool.take(&code.pool.used); i != nil; i = code.pool.take(&code.pool.used) {
		if p.restore(code.image(), i) {
			code.pool.keep(i)
			continue
		}
		p.discard(i, CloseUnclean)
		p.refill(code)
	}
}

func (code *code) image() *image {
	code.pool.starting.Lock()
	defer code.pool.starting.Unlock()
	return code.pool.image
}

// refill makes an idle instance if there is none.
func (p *Plugin) refill(code *code) {
	image := code.image()
	if image == nil && !code.ahead.Load() || !code.pool.empty() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.spec.Limits.Time)
	defer cancel()
	c := p.newCall("", p.spec.Limits)
	c.ctx, c.patience = ctx, 0
	defer c.drop()
	if !p.engine.budget.free(code.startMemory(image)) {
		return // nothing else is given up for an instance that may not be needed
	}
	i, err := p.instantiate(ctx, code, image, c)
	if err != nil {
		p.logger.Warn("make an instance", "err", err)
		return
	}
	if i.unique != "" && i.unique != startDrew {
		p.discard(i, CloseUnclean) // its start did more than that of the first
		return
	}
	code.pool.keep(i)
}

func (p *Plugin) discard(i *instance, reason string) {
	if err := i.close(reason); err != nil {
		p.logger.Debug("close an instance", "err", err)
	}
}

// take removes the last instance of a list, or returns nil.
func (p *pool) take(list *[]*instance) *instance {
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

// takeIdle removes the idle instance used last, or returns nil. Where state is shared it is one that remembers this tenant's calls, or
// else one that remembers nobody's.
func (p *pool) takeIdle(state manifest.State, tenant string) *instance {
	if state != manifest.StateShared {
		return p.take(&p.idle)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found := -1
	for n, i := range slices.Backward(p.idle) {
		if i.remembers && i.tenant == tenant {
			found = n
			break
		}
		if !i.remembers && found < 0 {
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

// lay adds a used instance, and has putBack called a little later.
func (p *pool) lay(i *instance, putBack func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i.since = time.Now()
	p.used = append(p.used, i)
	if p.restoring != nil {
		return
	}
	p.restoring = time.AfterFunc(restoreDelay, func() {
		p.mu.Lock()
		p.restoring = nil
		closed := p.closed
		if !closed {
			p.resets.Add(1)
		}
		p.mu.Unlock()
		if !closed {
			defer p.resets.Done()
			putBack()
		}
	})
}

func (p *pool) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle) == 0 && !p.closed
}

// keep adds an idle instance. Where there are more than may be, which is only so where each tenant has its own, the one that has been idle
// for longest goes.
func (p *pool) keep(i *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = i.close(CloseCode) // nothing runs in it any more
		return
	}
	i.since = time.Now()
	p.idle = append(p.idle, i)
	if len(p.idle) > p.most {
		_ = p.idle[0].close(CloseSurplus) // nothing runs in it any more
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	if p.shrinking == nil {
		p.shrinking = time.AfterFunc(p.idleTime, p.shrink)
	}
}

// shrink closes the instances that have been idle for long; the oldest come first.
func (p *pool) shrink() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && time.Since(p.idle[n].since) >= p.idleTime {
		_ = p.idle[n].close(CloseIdle) // nothing runs in it any more
		n++
	}
	p.idle = append([]*instance(nil), p.idle[n:]...)
	p.shrinking = nil
	if len(p.idle) > 0 && !p.closed {
		p.shrinking = time.AfterFunc(p.idleTime-time.Since(p.idle[0].since), p.shrink)
	}
}

// idleTime is how long the plugin's instances are kept without a call.
func (p *Plugin) idleTime() time.Duration {
	if p.spec.State == manifest.StateShared {
		return stateTime
	}
	return idleTime
}

// oldest says since when the instance waits that has done so for longest.
func (p *pool) oldest() (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range [][]*instance{p.idle, p.used} {
		if len(list) > 0 {
			return list[0].since, true
		}
	}
	return time.Time{}, false
}

// drop closes the instance that has waited for longest. It reports false if there is none.
func (p *pool) drop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range []*[]*instance{&p.idle, &p.used} {
		if len(*list) > 0 {
			_ = (*list)[0].close(CloseMemory) // nothing runs in it any more
			*list = append([]*instance(nil), (*list)[1:]...)
			return true
		}
	}
	return false
}

// close waits for instances that are being put back and closes all. It returns the weight of the image that is no more. No call may be
// under way.
func (p *pool) close() (weight int64, err error) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.resets.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shrinking != nil {
		p.shrinking.Stop()
	}
	for _, i := range append(p.idle, p.used...) {
		_ = i.close(CloseCode) // nothing runs in it any more
	}
	p.idle, p.used = nil, nil
	if p.image == nil {
		return 0, nil
	}
	return p.image.weight(), p.image.memory.close()
}
