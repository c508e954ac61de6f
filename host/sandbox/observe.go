package sandbox

import "time"

// Observer is notified of the activity of an Engine. Its methods are called concurrently, also during calls, and must
// be quick. Apart from the name of the plugin, each string is one of a fixed set.
type Observer interface {
	// CallQueued reports how long a call waited for a slot, mostly not at all.
	CallQueued(plugin string, waited time.Duration)
	// CodeLoaded reports how long loading the code took; how is FromCompiler, FromCache or ByInterpreter.
	CodeLoaded(plugin, how string, took time.Duration)
	// InstanceMade reports a new instance; how is FromStart or FromImage.
	InstanceMade(plugin, how string, took time.Duration)
	// InstanceRestored reports how long restoring an instance after a call took.
	InstanceRestored(plugin string, took time.Duration)
	// InstanceClosed reports the end of an instance; reason is one of CloseReasons.
	InstanceClosed(plugin, reason string)
}

// How code and instances were made.
const (
	FromCompiler  = "compiler"    // compiled, which takes seconds
	FromCache     = "cache"       // compiled earlier
	ByInterpreter = "interpreter" // until compiled code is ready
	FromStart     = "start"       // by running its start
	FromImage     = "image"       // as a copy of a started one
)

// Why an instance was closed.
const (
	CloseFailed  = "failed"  // its call or its start failed
	CloseUnclean = "unclean" // it could not be restored
	CloseSingle  = "single"  // it serves one call only
	CloseIdle    = "idle"    // unused for long
	CloseMemory  = "memory"  // another call needed the memory
	CloseSurplus = "surplus" // the pool was full
	CloseSession = "session" // its session ended
	CloseCode    = "code"    // its code was unloaded or replaced
)

// CloseReasons lists the reasons.
var CloseReasons = []string{
	CloseFailed, CloseUnclean, CloseSingle, CloseIdle, CloseMemory, CloseSurplus, CloseSession, CloseCode,
}

// noopObserver is the default Observer.
type noopObserver struct{}

func (noopObserver) CallQueued(string, time.Duration)           {}
func (noopObserver) CodeLoaded(string, string, time.Duration)   {}
func (noopObserver) InstanceMade(string, string, time.Duration) {}
func (noopObserver) InstanceRestored(string, time.Duration)     {}
func (noopObserver) InstanceClosed(string, string)              {}

// Stats are a plugin's current numbers of calls and instances.
type Stats struct {
	// Running counts calls in an instance, Waiting calls that wait for a slot.
	Running, Waiting int
	// Idle counts instances ready for a call, Used those to be restored first.
	Idle, Used int
	// Interpreted reports whether the code in memory is not compiled.
	Interpreted bool
}

// Stats returns the current numbers. It never blocks: values that are locked at the moment are zero.
func (p *Plugin) Stats() Stats {
	var stats Stats
	stats.Running, stats.Waiting = p.gate.Load()
	if code, ok := p.tryLoadedCode(); ok {
		stats.Interpreted = code.interpreted
		code.pool.mu.Lock()
		defer code.pool.mu.Unlock()
		stats.Idle, stats.Used = len(code.pool.idle), len(code.pool.used)
	}
	return stats
}

// Memory returns the used part of the memory budget and its limit, in bytes.
func (e *Engine) Memory() (used, limit int64) { return e.budget.used.Load(), e.budget.limit }
