package sandbox

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// idleTime is how long an instance is kept without a call.
const idleTime = time.Minute

// pool holds the instances of a plugin that wait for a call, and the image that they start from.
type pool struct {
	// starting is held while the first instance starts, and guards image.
	starting sync.Mutex
	image    *image
	// resets counts instances that are being put back.
	resets sync.WaitGroup

	// mu guards what follows.
	mu        sync.Mutex
	idle      []*instance // the one used last at the end
	shrinking *time.Timer
	closed    bool
}

// acquire returns an instance that is as after its start: an idle one, or a new one, for which the call waits.
func (p *Plugin) acquire(ctx context.Context, code *code, c *call) (*instance, error) {
	if i := p.pool.take(); i != nil {
		return i, nil
	}
	c.ctx = ctx
	if code.lasting != "" {
		return p.instantiate(ctx, code, nil, c)
	}
	p.pool.starting.Lock()
	image := p.pool.image
	if image != nil {
		p.pool.starting.Unlock()
		return p.instantiate(ctx, code, image, c)
	}
	defer p.pool.starting.Unlock()
	return p.first(ctx, code, c)
}

// first starts an instance and makes the image of it. p.pool.starting is held.
func (p *Plugin) first(ctx context.Context, code *code, c *call) (*instance, error) {
	i, err := p.instantiate(ctx, code, nil, c)
	if err != nil {
		return nil, err
	}
	if i.files.End() > 0 {
		code.lasting = "files left open by the start"
		return i, nil
	}
	if p.pool.image, err = capture(i); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.spec.Name, err)
	}
	return i, nil
}

// giveBack puts an instance back for the next call, off the path of this one. One that cannot be put back, because the call
// failed or something of it would stay, is thrown away and replaced.
func (p *Plugin) giveBack(code *code, i *instance, ended bool) {
	p.pool.resets.Go(func() {
		p.pool.starting.Lock()
		image := p.pool.image
		p.pool.starting.Unlock()
		if ended && image != nil && image.restore(i) {
			p.pool.put(i)
			return
		}
		p.discard(i)
		if image != nil && p.pool.empty() {
			p.refill(code, image)
		}
	})
}

// refill makes an idle instance.
func (p *Plugin) refill(code *code, image *image) {
	ctx, cancel := context.WithTimeout(context.Background(), p.spec.Limits.Time)
	defer cancel()
	c := p.newCall("", p.spec.Limits)
	c.ctx = ctx
	i, err := p.instantiate(ctx, code, image, c)
	if err != nil {
		p.logger.Warn("make an instance", "err", err)
		return
	}
	p.pool.put(i)
}

func (p *Plugin) discard(i *instance) {
	if err := i.close(); err != nil {
		p.logger.Debug("close an instance", "err", err)
	}
}

func (p *pool) take() *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	i := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return i
}

func (p *pool) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle) == 0 && !p.closed
}

func (p *pool) put(i *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = i.close() // nothing runs in it any more
		return
	}
	i.since = time.Now()
	p.idle = append(p.idle, i)
	if p.shrinking == nil {
		p.shrinking = time.AfterFunc(idleTime, p.shrink)
	}
}

// shrink closes the instances that have been idle for idleTime; the oldest come first.
func (p *pool) shrink() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && time.Since(p.idle[n].since) >= idleTime {
		_ = p.idle[n].close() // nothing runs in it any more
		n++
	}
	p.idle = append([]*instance(nil), p.idle[n:]...)
	p.shrinking = nil
	if len(p.idle) > 0 && !p.closed {
		p.shrinking = time.AfterFunc(idleTime-time.Since(p.idle[0].since), p.shrink)
	}
}

// close waits for instances that are being put back and closes all. No call may be under way.
func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.resets.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shrinking != nil {
		p.shrinking.Stop()
	}
	for _, i := range p.idle {
		_ = i.close() // nothing runs in it any more
	}
	p.idle = nil
	if p.image == nil {
		return nil
	}
	return p.image.memory.close()
}
