package sandbox

import "time"

// Observer sees what an Engine does with its plugins. Its methods are called from many goroutines at once, also on the path of calls, and must
// be quick. Every argument but the plugin's name is one of a fixed set.
type Observer interface {
	// CallQueued tells how long a call waited until it could run, which mostly is not at all.
	CallQueued(plugin string, waited time.Duration)
	// PluginCompiled tells how long it took until a plugin's code could run: with FromCompiler, FromCache or ByInterpreter.
	PluginCompiled(plugin, how string, took time.Duration)
	// InstanceMade tells of a new instance: FromStart or FromImage.
	InstanceMade(plugin, how string, took time.Duration)
	// InstanceRestored tells how long it took to put an instance back after a call.
	InstanceRestored(plugin string, took time.Duration)
	// InstanceClosed tells of the end of an instance, with one of CloseReasons.
	InstanceClosed(plugin, reason string)
}

// How code was made ready, and how instances were made.
const (
	FromCompiler  = "compiler"    // compiled, which takes seconds
	FromCache     = "cache"       // compiled earlier
	ByInterpreter = "interpreter" // until compiled code is ready
	FromStart     = "start"       // by running its start
	FromImage     = "image"       // as a copy of one that has started
)

// Why an instance was closed.
const (
	CloseFailed  = "failed"  // its call or its start failed
	CloseUnclean = "unclean" // something of its call would have stayed
	CloseSingle  = "single"  // it serves one call only
	CloseIdle    = "idle"    // nobody has used it for long
	CloseMemory  = "memory"  // its memory was wanted elsewhere
	CloseSurplus = "surplus" // there were more than may be kept
	CloseSession = "session" // its session is over
	CloseCode    = "code"    // its code was unloaded, or replaced by other code
)

// CloseReasons lists why instances are closed.
var CloseReasons = []string{CloseFailed, CloseUnclean, CloseSingle, CloseIdle, CloseMemory, CloseSurplus, CloseSession, CloseCode}

// unobserved is the Observer where there is none.
type unobserved struct{}

func (unobserved) CallQueued(string, time.Duration)             {}
func (unobserved) PluginCompiled(string, string, time.Duration) {}
func (unobserved) InstanceMade(string, string, time.Duration)   {}
func (unobserved) InstanceRestored(string, time.Duration)       {}
func (unobserved) InstanceClosed(string, string)                {}

// Load is what a plugin does at one moment.
type Load struct {
	// Running are the calls in an instance, Waiting those that wait for one.
	Running, Waiting int
	// Idle are the instances ready for a call, Used those that have to be put back first.
	Idle, Used int
	// Interpreted says that the code that is in service is not compiled yet. Loaded says that there is code.
	Interpreted, Loaded bool
}

// Load tells what the plugin does now. It waits for nobody: what cannot be seen at once is left zero.
func (p *Plugin) Load() Load {
	load := Load{Running: len(p.gate.slots), Waiting: int(p.gate.waiting.Load())}
	if code, ok := p.loaded(); ok {
		load.Loaded, load.Interpreted = true, code.interpreted
		load.Idle, load.Used = code.pool.counts()
	}
	return load
}

// counts tells how many instances are idle, and how many have to be put back.
func (p *pool) counts() (idle, used int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle), len(p.used)
}

// Memory tells how much of the memory budget is used, and how much there is, in bytes.
func (e *Engine) Memory() (used, limit int64) { return e.budget.used.Load(), e.budget.limit }

// restore puts an instance back, or reports that it cannot be.
func (p *Plugin) restore(image *image, i *instance) bool {
	begin := time.Now()
	if !image.restore(i) {
		return false
	}
	p.engine.observer.InstanceRestored(p.spec.Name, time.Since(begin))
	return true
}
