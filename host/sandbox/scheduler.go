package sandbox

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// scheduler shares the processors fairly among computing guests: first between plugins, then between the callers of a
// plugin, then between the calls of a caller.
//
// Compiled guest code is not preemptible, and Go's scheduler does not know plugins: without this one, 200 spinning
// calls of a plugin get 200 times as much as one call of another. So a guest needs one of a fixed number of slots, one
// per processor, while it computes. After each quantum (see refuel) it hands its slot over if a waiting guest has had
// less.
//
// Virtual time decides which guest has had less: each share counts the time computed for it while others waited. A
// share that returns after a pause starts slightly below the others: that keeps short calls from being interrupted, and
// a share cannot save up more. Time computed while nobody waits is not counted.
//
// A guest in a host function may wait there for a network or a disk. It keeps its slot, which makes short functions
// cheap, until a waiting guest needs it. Then the guest loses the slot and queues again when the function returns.
//
// Go's runtime has more threads than slots (see Options.Processors), but the operating system gives them no processor
// while guests compute on all of them: Linux lets a woken thread wait for milliseconds, and a request wakes several. So
// a guest that computes for long yields its processor every yieldQuanta quanta.
//
// While nobody waits, a call costs two atomic operations, a host function two more, and a quantum one load. Slots
// change hands only in host functions and between quanta, where a guest holds no lock of the host.
type scheduler struct {
	// slots holds the turn in each slot, or nil. An empty slot may be acquired without mu; all other changes need it.
	slots []atomic.Pointer[turn]
	// waiting counts the turns in the queue. It is written under mu.
	waiting atomic.Int64

	// mu guards the fields below and all shares.
	mu   sync.Mutex
	root share
	// waitingSince and waitingUntil bound the last period in which turns waited; waitingUntil is valid once waiting is
	// zero.
	waitingSince, waitingUntil time.Time
	// newArrivals counts the waiting turns that were not queued by handOver.
	newArrivals int
	// reclaimTimer runs reclaimSlots while turns wait.
	reclaimTimer *time.Timer
}

const (
	// timeSlice is the time after which a guest hands over to one that handOver has queued.
	timeSlice = time.Millisecond
	// wakeupCredit is the advantage in virtual time with which a returning share starts.
	wakeupCredit = 10 * time.Millisecond
	// reclaimInterval is the interval at which slots are reclaimed from guests in host functions while turns wait.
	reclaimInterval = time.Millisecond
	// yieldQuanta is the number of quanta after which a guest yields its processor: some 100 us in most guests, longer
	// than a short call.
	yieldQuanta = 4
	// maxIdleShares limits the callers without a running call that a plugin remembers.
	maxIdleShares = 64
)

func newScheduler(processors int) *scheduler {
	return &scheduler{slots: make([]atomic.Pointer[turn], processors)}
}

// share is the virtual time of one plugin, caller or call. The root has the shares of plugins below it.
type share struct {
	parent *share
	// used is the virtual time, floor the lowest used among waiting members. Both only grow.
	used, floor time.Duration
	// members counts the attached shares below; waiting lists those with a waiting call.
	members int
	waiting []*share
	// callers are the members of a plugin's share.
	callers map[callerID]*share
	// turn belongs to a call's share.
	turn *turn
}

// callerID identifies a caller.
type callerID struct{ tenant, user string }

// turn is one call in the scheduler. The zero value with scheduler, plugin and caller set is ready.
type turn struct {
	scheduler *scheduler
	plugin    *share
	caller    callerID

	state atomic.Int32
	slot  int
	// quanta counts those since the last yieldThread.
	quanta int
	// share is the call's. It is attached while others wait.
	share share
	// chargedUntil is the time at which the slot was granted or last charged, grantedAt the time of the grant.
	chargedUntil, grantedAt time.Time
	// newArrival reports whether it was not queued by handOver.
	newArrival bool
	granted    chan struct{}
}

// States of a turn.
const (
	turnIdle      int32 = iota // has no slot
	turnComputing              // has a slot
	turnInHost                 // has a slot and is in a host function
	turnPreempted              // is in a host function and has lost its slot
)

// acquire waits for a slot. It fails with the error of ctx; release must be called in any case.
func (t *turn) acquire(ctx context.Context) error {
	if s := t.scheduler; s.waiting.Load() == 0 && s.tryAcquire(t) {
		return nil
	}
	return t.enqueueAndWait(ctx)
}

func (t *turn) enqueueAndWait(ctx context.Context) error {
	s := t.scheduler
	s.mu.Lock()
	s.enqueue(t, true)
	s.dispatch()
	s.mu.Unlock()
	return t.wait(ctx)
}

// yield hands the slot over if a waiting guest has had less, and waits for a slot again. It is called after each
// quantum.
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

// enterHost marks the guest as in a host function, where it can lose its slot.
func (t *turn) enterHost() {
	if t.state.CompareAndSwap(turnComputing, turnInHost) && t.scheduler.waiting.Load() > 0 {
		t.scheduler.preempt(t)
	}
}

// leaveHost ends enterHost. It waits for a slot if the guest has lost its own.
func (t *turn) leaveHost(ctx context.Context) error {
	if t.state.CompareAndSwap(turnInHost, turnComputing) || t.state.Load() != turnPreempted {
		return nil
	}
	t.state.Store(turnIdle)
	return t.enqueueAndWait(ctx)
}

// release ends the turn and frees its slot, if it has one.
func (t *turn) release() {
	s := t.scheduler
	before := t.state.Swap(turnIdle)
	held := before == turnComputing || before == turnInHost
	if before != turnPreempted && t.share.parent == nil {
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
	s.detach(t)
	s.dispatch()
}

// wait waits until the queued turn is granted a slot.
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
	case <-t.granted: // release frees it
	default:
		s.dequeue(t)
	}
	return ctx.Err()
}

// tryAcquire acquires a free slot.
func (s *scheduler) tryAcquire(t *turn) bool {
	for i := range s.slots {
		if s.slots[i].Load() == nil && s.slots[i].CompareAndSwap(nil, t) {
			t.slot = i
			t.state.Store(turnComputing)
			return true
		}
	}
	return false
}

// handOver grants the slot of t to the next waiting turn, if it comes before t, and queues t.
func (s *scheduler) handOver(t *turn) bool {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charge(t, now)
	if s.newArrivals == 0 && now.Sub(t.grantedAt) < timeSlice {
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

// preempt grants the slot of t, which is in a host function, to the next waiting turn, if it comes before t.
func (s *scheduler) preempt(t *turn) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charge(t, now)
	next := s.first()
	if next == nil || !next.before(t, now) || !t.state.CompareAndSwap(turnInHost, turnPreempted) {
		return
	}
	s.dequeue(next)
	s.grant(next, t.slot, now)
}

// dispatch grants free slots, and those of guests in host functions, to waiting turns. s.mu is held.
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
		case holder.state.CompareAndSwap(turnInHost, turnPreempted):
			s.charge(holder, now)
			next := s.first()
			s.dequeue(next)
			s.grant(next, i, now)
		}
	}
}

// grant gives a slot to a dequeued turn. s.mu is held.
func (s *scheduler) grant(t *turn, slot int, now time.Time) {
	t.slot, t.chargedUntil, t.grantedAt = slot, now, now
	t.state.Store(turnComputing)
	s.slots[slot].Store(t)
	t.granted <- struct{}{}
}

// enqueue queues t. s.mu is held.
func (s *scheduler) enqueue(t *turn, fresh bool) {
	if s.waiting.Add(1) == 1 {
		s.waitingSince = time.Now()
		if s.reclaimTimer == nil {
			s.reclaimTimer = time.AfterFunc(reclaimInterval, s.reclaimSlots)
		}
	}
	if t.granted == nil {
		t.granted = make(chan struct{}, 1)
	}
	if t.newArrival = fresh; fresh {
		s.newArrivals++
	}
	s.attach(t)
	for member := &t.share; member.parent != nil; member = member.parent {
		member.parent.waiting = append(member.parent.waiting, member)
		if len(member.parent.waiting) > 1 {
			break // the parent is already listed in its own parent
		}
	}
}

// dequeue removes t from the queue. s.mu is held.
func (s *scheduler) dequeue(t *turn) {
	if s.waiting.Add(-1) == 0 {
		s.waitingUntil = time.Now()
	}
	if t.newArrival {
		s.newArrivals--
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

// reclaimSlots reclaims slots from guests in host functions, again and again while turns wait.
func (s *scheduler) reclaimSlots() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatch()
	if s.reclaimTimer = nil; s.waiting.Load() > 0 {
		s.reclaimTimer = time.AfterFunc(reclaimInterval, s.reclaimSlots)
	}
}

// first returns the waiting turn with the least virtual time, or nil. s.mu is held.
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

// before reports whether the waiting turn w should get the slot of t, because w has had less: its plugin, or of the
// same plugin its caller, or of the same caller itself. If w was queued by handOver, t first completes its timeSlice,
// so that two computing guests do not alternate at every quantum. s.mu is held.
func (w *turn) before(t *turn, now time.Time) bool {
	mine, other := &w.share, &t.share
	if mine.parent != other.parent {
		mine, other = mine.parent, other.parent
	}
	if mine.parent != other.parent {
		mine, other = mine.parent, other.parent
	}
	if w.newArrival {
		return mine.used <= other.used
	}
	return mine.used < other.used && now.Sub(t.grantedAt) >= timeSlice
}

// charge adds the time that t has computed while others waited to its shares. s.mu is held.
func (s *scheduler) charge(t *turn, now time.Time) {
	s.attach(t)
	from, to := t.chargedUntil, now
	if from.Before(s.waitingSince) {
		from = s.waitingSince
	}
	if s.waiting.Load() == 0 {
		to = s.waitingUntil
	}
	t.chargedUntil = now
	for member := &t.share; member.parent != nil; member = member.parent {
		member.used += max(to.Sub(from), 0)
	}
}

// attach adds t to the tree of shares. s.mu is held.
func (s *scheduler) attach(t *turn) {
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
			member.used = max(member.used, member.parent.floor-wakeupCredit)
		}
	}
}

// detach undoes attach. A caller that has had more than others is remembered until they have caught up. s.mu is held.
func (s *scheduler) detach(t *turn) {
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
	if caller.used <= t.plugin.floor-wakeupCredit {
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
