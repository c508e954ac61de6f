package console

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/hako-run/hako/host/govern/audit"
)

// States of a verification.
const (
	verifyNever   = "never"
	verifyRunning = "running"
	verifyDone    = "done"
	verifyFailed  = "failed" // the log could not be read
)

// verification is the running or last check of the audit log. One runs at a time. The zero value is ready.
type verification struct {
	done sync.WaitGroup

	// mu guards the fields below. ended reports whether no further check starts.
	mu    sync.Mutex
	state verificationJSON
	ended bool
}

// verificationJSON describes the last check. Its report stays while the next one runs.
type verificationJSON struct {
	State    string    `json:"state"`
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
	OK       *bool     `json:"ok,omitempty"`
	Records  int       `json:"records,omitempty"`
	Segments int       `json:"segments,omitempty"`
	First    uint64    `json:"first,omitempty"`
	Last     uint64    `json:"last,omitempty"`
	// Head is to be kept in another place, for hako audit verify --expect.
	Head     string   `json:"head,omitempty"`
	Signed   uint64   `json:"signed,omitempty"`
	Problems []string `json:"problems"`
	Error    string   `json:"error,omitempty"`
}

func (v *verification) snapshot() verificationJSON {
	v.mu.Lock()
	defer v.mu.Unlock()
	state := v.state
	if state.State == "" {
		state.State = verifyNever
	}
	if state.Problems == nil {
		state.Problems = []string{}
	}
	return state
}

// end waits for the running check and prevents others.
func (v *verification) end() {
	v.mu.Lock()
	v.ended = true
	v.mu.Unlock()
	v.done.Wait()
}

// start starts a check unless one runs or end was called.
func (v *verification) start(now func() time.Time, check func() (*audit.Report, error)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended || v.state.State == verifyRunning {
		return
	}
	v.state.State, v.state.Started = verifyRunning, now().UTC()
	v.done.Go(func() {
		report, err := check()
		v.mu.Lock()
		defer v.mu.Unlock()
		v.state.finish(report, err, now().UTC())
	})
}

func (s *verificationJSON) finish(r *audit.Report, err error, now time.Time) {
	*s = verificationJSON{State: verifyDone, Started: s.Started, Finished: now}
	if err != nil {
		s.State, s.Error = verifyFailed, err.Error()
		return
	}
	ok := r.OK()
	s.OK, s.Records, s.Segments, s.First, s.Last, s.Signed = &ok, r.Records, r.Segments, r.First, r.Last, r.Signed
	s.Head = fmt.Sprintf("%d:%s", r.Last, r.Head)
	for _, p := range r.Problems {
		s.Problems = append(s.Problems, p.String())
	}
}

func (c *Console) verification(*request) (any, error) {
	if c.options.Journal == nil {
		return nil, faultNoAudit
	}
	return c.check.snapshot(), nil
}

// verify starts a check of the audit log in the background.
func (c *Console) verify(w http.ResponseWriter, q *request) error {
	var body struct{}
	if err := q.decode(&body); err != nil {
		return err
	}
	if c.options.Journal == nil {
		return faultNoAudit
	}
	c.check.start(c.now, func() (*audit.Report, error) { return c.options.Journal.Verify(c.background) })
	writeJSON(w, http.StatusAccepted, c.check.snapshot())
	return nil
}
