package sandbox

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// scheduler shares the processors fairly among guests that compute: first between plugins, then between the callers of a plugin, then
// between the calls of a caller.
//
// Compiled guest code is not preemptible, and Go knows nothing of plugins: left alone, 200 spinning calls of one plugin get 200 times as
// much as one call of another. So a guest holds one of a fixed number of slots, one for each processor, while it computes. After each
// quantum (see refuel) it looks whether somebody else waits who has had less, and hands its slot over.
//
// Who has had less is decided by virtual time: each share counts the time that was computed for it while somebody waited. A share that
// comes back after a pause starts a little below what the others have got: short calls are not interrupted, and nobody saves up more
// than that. What is computed while nobody waits is counted for nobody.
//
// A guest in a host function may wait there for a network or a disk. It keeps its slot, so that a short function costs nothing, until
// somebody needs it: then the slot is taken away, and the guest queues when it comes back.
//
// The slots leave threads of the Go runtime for the host's own work (see Options.Processors), but the operating system has no processor
// to spare for those while guests compute on all of them: Linux lets a thread that wakes up wait for milliseconds, and a request wakes
// several. So a guest that computes for long also yields its processor every yieldQuanta quanta.
//
// While nobody waits, a call costs two atomic operations, a host function two more, and a quantum one load. Slots change hands only in
// host functions and between quanta, where a guest holds no lock of the host's.
type scheduler struct {
	// slots are those who compute, or nil. A nil slot is claimed without mu; a slot that is taken away or handed over changes under mu.
	slots []atomic.Pointer[turn]
	// waiting counts the turns that wait for a slot. It is written under mu.
	waiting atomic.Int64

	// mu guards what follows, and all shares.
	mu   sync.Mutex
	root share
	// busy is since when somebody has been waiting, or was; then calm is until when.
	busy, calm time.Time
	// fresh counts the waiting turns that have arrived and were not just handed over.
	fresh int
	// takeback runs while somebody waits.
	takeback *time.Timer
}

const (
	// slice is how long a guest computes before it hands over to one that it was preferred to before.
	slice = time.Millisecond
	// credit is how far a share that comes back starts below the others.
	credit = 10 * time.Millisecond
	// takebackInterval is how often slots are taken back from guests in host functions while somebody waits.
	takebackInterval = time.Millisecond
	// yieldQuanta is after how many quanta a guest yields its processor to other threads: after some 100 us in most guests. Short calls
	// end before.
	yieldQuanta = 4
	// maxIdleShares is how many callers without a call a plugin remembers.
	maxIdleShares = 64
)

func newScheduler(processors int) *scheduler {
	return &scheduler{slots: make([]atomic.Pointer[turn], processors)}
}

// share is what one plugin, caller or call has had. Those of plugins are below the scheduler's root.
type share struct {
	parent *share
	// used is the virtual time, floor the least of the members that wait. Both only grow.
	used, floor time.Duration
	// members counts the calls below that take part now, and waiting are the members that have a call that waits.
	members int
	waiting []*share
	// callers are the members of a plugin's share, by name.
	callers map[callerID]*share
	// turn is that of a call's share.
	turn *turn
}

// callerID is a caller among those of all tenants.
type callerID struct{ tenant, user string }

// turn is one call's part in the scheduler. The zero value with scheduler, plugin and caller set is ready.
type turn struct {
	scheduler *scheduler
	plugin    *share
	caller    callerID

	state atomic.Int32
	slot  int
	// quanta counts those since the last yieldThread.
	quanta int
	// share is the call's. It has a parent from the moment on that somebody waits.
	share share
	// since is when the slot was given to it or its use was counted last, and began when it was given.
	since, began time.Time
	// fresh says that it waits because it has arrived.
	fresh   bool
	granted chan struct{}
}

// States of a turn.
const (
	turnIdle int32 = iota // no slot
	turnHeld
	turnAway // it has a slot and is in a host function
	turnLost // it is in a host function and its slot was taken away
)

// acquire waits for a slot. It fails with ctx's error; release is to be called in any case.
func (t *turn) acquire(ctx context.Context) error {
	if s := t.scheduler; s == nil || s.waiting.Load() == 0 && s.claim(t) {
		return nil
	}
	return t.queue(ctx)
}

func (t *turn) queue(ctx context.Context) error {
	s := t.scheduler
	s.mu.Lock()
	s.enqueue(t, true)
	s.dispatch()
	s.mu.Unlock()
	return t.wait(ctx)
}

// yield hands the slot over if somebody waits who has had less, and waits for the next. It is called after each quantum.
func (t *turn) yield(ctx context.Context) error {
	if t.quanta++; t.quanta == yieldQuanta {
		t.quanta = 0
		yieldThread()
	}
	if s := t.scheduler; s.waiting.Load() == 0 || !s.handOver(t) {
		return nil
	}
	return t.wait(ctx)
}

// leave says that the guest enters a host function.
func (t *turn) leave() {
	if t.state.CompareAndSwap(turnHeld, turnAway) && t.scheduler.waiting.Load() > 0 {
		t.scheduler.lend(t)
	}
}

// back says that the guest leaves a host function, and waits if the slot was taken away.
func (t *turn) back(ctx context.Context) error {
	if t.state.CompareAndSwap(turnAway, turnHeld) || t.state.Load() != turnLost {
		return nil
	}
	t.state.Store(turnIdle)
	return t.queue(ctx)
}

// release gives the slot back, if there is one.
func (t *turn) release() {
	s := t.scheduler
	if s == nil {
		return
	}
	before := t.state.Swap(turnIdle)
	held := before == turnHeld || before == turnAway
	if before != turnLost && t.share.parent == nil {
		if !held {
			return
		}
		if s.waiting.Load() == 0 {
			s.slots[t.slot].Store(nil)
			if s.waiting.Load() == 0 {
				return
			}
			held = false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if held {
		s.charge(t, time.Now())
		s.slots[t.slot].Store(nil)
	}
	s.part(t)
	s.dispatch()
}

// wait waits until the turn that is in the queue is given a slot.
func (t *turn) wait(ctx context.Context) error {
	select {
	case <-t.granted:
		return nil
	case <-ctx.Done():
	}
	s := t.scheduler
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-t.granted: // release gives it back
	default:
		s.dequeue(t)
	}
	return ctx.Err()
}

// claim takes a slot that is free.
func (s *scheduler) claim(t *turn) bool {
	for i := range s.slots {
		if s.slots[i].Load() == nil && s.slots[i].CompareAndSwap(nil, t) {
			t.slot = i
			t.state.Store(turnHeld)
			return true
		}
	}
	return false
}

// handOver gives t's slot to whoever waits and comes before it, and queues t.
func (s *scheduler) handOver(t *turn) bool {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charge(t, now)
	if s.fresh == 0 && now.Sub(t.began) < slice {
		return false
	}
	next := s.first()
	if next == nil || !next.before(t, now) {
		return false
	}
	t.state.Store(turnIdle)
	s.enqueue(t, false)
	s.dequeue(next)
	s.grant(next, t.slot, now)
	return true
}

// lend gives the slot of t, which is in a host function, to whoever waits and comes before it.
func (s *scheduler) lend(t *turn) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charge(t, now)
	next := s.first()
	if next == nil || !next.before(t, now) || !t.state.CompareAndSwap(turnAway, turnLost) {
		return
	}
	s.dequeue(next)
	s.grant(next, t.slot, now)
}

// dispatch gives slots that are free, and those of guests in host functions, to who waits. s.mu is held.
func (s *scheduler) dispatch() {
	for i := range s.slots {
		if s.waiting.Load() == 0 {
			return
		}
		holder, now := s.slots[i].Load(), time.Now()
		switch {
		case holder == nil:
			next := s.first()
			if !s.slots[i].CompareAndSwap(nil, next) {
				continue
			}
			s.dequeue(next)
			s.grant(next, i, now)
		case holder.state.CompareAndSwap(turnAway, turnLost):
			s.charge(holder, now)
			next := s.first()
			s.dequeue(next)
			s.grant(next, i, now)
		}
	}
}

// grant gives a turn that is not in the queue any more a slot. s.mu is held.
func (s *scheduler) grant(t *turn, slot int, now time.Time) {
	t.slot, t.since, t.began = slot, now, now
	t.state.Store(turnHeld)
	s.slots[slot].Store(t)
	t.granted <- struct{}{}
}

// enqueue makes t wait. s.mu is held.
func (s *scheduler) enqueue(t *turn, fresh bool) {
	if s.waiting.Add(1) == 1 {
		s.busy = time.Now()
		if s.takeback == nil {
			s.takeback = time.AfterFunc(takebackInterval, s.takeBack)
		}
	}
	if t.granted == nil {
		t.granted = make(chan struct{}, 1)
	}
	if t.fresh = fresh; fresh {
		s.fresh++
	}
	s.join(t)
	for member := &t.share; member.parent != nil; member = member.parent {
		member.parent.waiting = append(member.parent.waiting, member)
		if len(member.parent.waiting) > 1 {
			break // so the parent is in its parent's already
		}
	}
}

// dequeue ends t's waiting. s.mu is held.
func (s *scheduler) dequeue(t *turn) {
	if s.waiting.Add(-1) == 0 {
		s.calm = time.Now()
	}
	if t.fresh {
		s.fresh--
	}
	for member := &t.share; member.parent != nil; member = member.parent {
		list := member.parent.waiting
		for i := range list {
			if list[i] == member {
				copy(list[i:], list[i+1:])
				list[len(list)-1] = nil
				member.parent.waiting = list[:len(list)-1]
				break
			}
		}
		if len(member.parent.waiting) > 0 {
			break
		}
	}
}

// takeBack takes slots back from guests in host functions, and looks again later while somebody waits.
func (s *scheduler) takeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatch()
	if s.takeback = nil; s.waiting.Load() > 0 {
		s.takeback = time.AfterFunc(takebackInterval, s.takeBack)
	}
}

// first returns the waiting turn that comes before all others, or nil. s.mu is held.
func (s *scheduler) first() *turn {
	at := &s.root
	for at.turn == nil {
		var least *share
		for _, member := range at.waiting {
			if least == nil || member.used < least.used {
				least = member
			}
		}
		if least == nil {
			return nil
		}
		at.floor = max(at.floor, least.used)
		at = least
	}
	return at.turn
}

// before reports whether w, which waits, is to have the slot of t, which computes: because w's plugin has had less, or of one plugin w's
// caller, or of one caller w itself. Where w has waited for its turn before, t goes on until its slice is over, so that two who compute all
// the time do not hand over after each quantum. s.mu is held.
func (w *turn) before(t *turn, now time.Time) bool {
	mine, other := &w.share, &t.share
	if mine.parent != other.parent {
		mine, other = mine.parent, other.parent
	}
	if mine.parent != other.parent {
		mine, other = mine.parent, other.parent
	}
	if w.fresh {
		return mine.used <= other.used
	}
	return mine.used < other.used && now.Sub(t.began) >= slice
}

// charge counts what t, which has a slot, has computed while somebody waited. s.mu is held.
func (s *scheduler) charge(t *turn, now time.Time) {
	s.join(t)
	from, to := t.since, now
	if from.Before(s.busy) {
		from = s.busy
	}
	if s.waiting.Load() == 0 {
		to = s.calm
	}
	t.since = now
	for member := &t.share; member.parent != nil; member = member.parent {
		member.used += max(to.Sub(from), 0)
	}
}

// join makes t take part. s.mu is held.
func (s *scheduler) join(t *turn) {
	if t.share.parent != nil {
		return
	}
	caller := t.plugin.callers[t.caller]
	if caller == nil {
		if t.plugin.callers == nil {
			t.plugin.callers = map[callerID]*share{}
		}
		caller = &share{parent: t.plugin}
		t.plugin.callers[t.caller] = caller
	}
	t.plugin.parent = &s.root
	t.share.parent, t.share.turn = caller, t
	for member := &t.share; member.parent != nil; member = member.parent {
		if member.members++; member.members == 1 {
			member.used = max(member.used, member.parent.floor-credit)
		}
	}
}

// part ends what join began. A caller that has had more than others is remembered until they have caught up. s.mu is held.
func (s *scheduler) part(t *turn) {
	if t.share.parent == nil {
		return
	}
	caller := t.share.parent
	for member := &t.share; member.parent != nil; member = member.parent {
		member.members--
	}
	t.share.parent = nil
	if caller.members > 0 {
		return
	}
	if caller.used <= t.plugin.floor-credit {
		delete(t.plugin.callers, t.caller)
	}
	if len(t.plugin.callers) > maxIdleShares+t.plugin.members {
		for name, caller := range t.plugin.callers {
			if caller.members == 0 {
				delete(t.plugin.callers, name)
			}
		}
	}
}
