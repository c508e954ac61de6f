// Package fault makes the fakes of vendors fail in the ways the real ones do. Plan.Wrap puts a Plan of Faults
// before a fake's handler.
package fault

import (
	"net/http"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// Fault selects requests that fail, and their failure. A Fault with neither Status, Body nor Drop answers as the server
// does, only later, cut short or with more headers.
type Fault struct {
	Method string // the method of the requests it meets; empty meets any
	Path   string // a glob of their decoded path, "**" crossing slashes; empty meets any

	Times int // how many requests it meets before it is spent; 0 is all, for ever

	Delay    time.Duration // waited before anything else, or until the client is gone
	After    bool          // let the server do its work first and lose only its answer: the write a retry would repeat
	Status   int           // answered instead of the server's; 0 with a Body is 200
	Header   http.Header   // set on the answer, the server's own or this one
	Body     string        // answered instead of the server's
	Drop     bool          // close the connection without an answer
	Truncate bool          // announce the whole body, send half of it and close the connection
}

// Plan is the list of a server's faults. The zero value has none. It is safe for concurrent use.
type Plan struct {
	mu     sync.Mutex
	faults []*Fault // guarded by mu; a spent one is removed
}

// Add appends f. A request meets the first fault in the order they were added. A Path that is no glob meets nothing.
func (p *Plan) Add(f Fault) {
	f.Header = f.Header.Clone()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, &f)
}

// Clear removes every fault.
func (p *Plan) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// Wrap returns a handler that fails as planned at the time of each request, and else is next.
func (p *Plan) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := p.take(r)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		f.serve(w, r, next)
	})
}

// take returns the fault that r meets, one use of it spent.
func (p *Plan) take(r *http.Request) (Fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.faults {
		if !f.meets(r) {
			continue
		}
		met := *f
		if f.Times > 0 {
			f.Times--
			if f.Times == 0 {
				p.faults = append(p.faults[:i], p.faults[i+1:]...)
			}
		}
		return met, true
	}
	return Fault{}, false
}

func (f *Fault) meets(r *http.Request) bool {
	if f.Method != "" && f.Method != r.Method {
		return false
	}
	return f.Path == "" || doublestar.MatchUnvalidated(f.Path, r.URL.Path)
}
