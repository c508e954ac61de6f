package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/manifest"
)

// Keys that only one of the commands uses, each with all keys below it.
var (
	agentKeys = []string{"agent"}
	serveKeys = []string{"http", "mcp", "console", "slack", "llm", "chat"}
)

// silently returns a change without warnings and without resources.
func silently(apply func()) *change {
	return &change{apply: func() []string { apply(); return nil }}
}

// reloader reads the configuration again while the server runs, and applies it to the reloadable parts. It is safe for
// concurrent use.
type reloader struct {
	server *Server
	// otherKeys are configuration keys that only another command uses, which reads them itself.
	otherKeys []string
	// record writes to the audit log.
	record func(*audit.Event)

	// current is the configuration in force, outcome how the last reload ended.
	current atomic.Pointer[config.Config]
	outcome atomic.Pointer[reloadOutcome]

	// mu serialises reloads and guards the fields below.
	mu     sync.Mutex
	closed bool
	// digest is the Source.Digest of the last reading.
	digest string
}

// reloadOutcome is the result of reading a configuration. A nil err means that it is in force.
type reloadOutcome struct {
	at  time.Time
	err error
}

// errStopping is the error of a reload during a shutdown.
var errStopping = errors.New("hako is stopping")

func newReloader(s *Server, otherKeys []string) *reloader {
	record := func(e *audit.Event) { s.governance.record(e) }
	r := &reloader{server: s, otherKeys: otherKeys, record: record, digest: s.Digest}
	r.current.Store(s.Config)
	r.outcome.Store(&reloadOutcome{at: time.Now()})
	return r
}

// config returns the configuration in force. It must not be changed.
func (r *reloader) config() *config.Config { return r.current.Load() }

func (r *reloader) start(context.Context) error {
	r.server.observability.metrics.ShowReloads(func() (time.Time, bool) {
		o := r.outcome.Load()
		return o.at, o.err == nil
	})
	return nil
}

// configPoll is the interval at which the configuration file is checked for changes.
const configPoll = 500 * time.Millisecond

// run reloads whenever the configuration file has changed and on every signal. A file that changed since the last check
// may still be being written; it is read at the next check.
func (r *reloader) run(ctx context.Context) error {
	check := time.NewTicker(configPoll)
	defer check.Stop()
	var seen, handled fileStamp
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.server.Reload:
			_, _ = r.reload(ctx, audit.Subject{Frontend: "signal", User: audit.ProcessUser()}) // logged by report
		case <-check.C:
			path, err := r.server.Source.Path()
			if err != nil {
				continue
			}
			stamp := stampOf(path)
			if stamp == seen && stamp != handled {
				handled = stamp
				if r.changed() {
					_, _ = r.reload(ctx, audit.Subject{Frontend: "file"}) // logged by report
				}
			}
			seen = stamp
		}
	}
}

// changed reports whether the file has other contents than those that were read last.
func (r *reloader) changed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.server.Source.Digest() != r.digest
}

// close waits for a reload in progress and refuses further ones.
func (r *reloader) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// reload reads the configuration again and applies it. by is recorded in the audit log; its Frontend is "signal",
// "file" or "console".
//
// The configuration is checked as a whole before anything changes. The error names each setting that is wrong, or
// matches errStopping during a shutdown. A reload that has begun is finished even if ctx ends.
func (r *reloader) reload(ctx context.Context, by audit.Subject) (*console.Reloaded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errStopping
	}
	notify(notifyReloading())
	defer notify(notifyReady)
	r.digest = r.server.Source.Digest() // before apply reads, so that a change in between is noticed
	result, err := r.apply(context.WithoutCancel(ctx))
	r.report(by, result, err)
	return result, err
}

// apply reads the configuration and applies it to all parts, or to none. r.mu is held.
func (r *reloader) apply(ctx context.Context) (*console.Reloaded, error) {
	next, err := config.Load(r.server.Source)
	if err != nil {
		return nil, err
	}
	if file := r.config().File; file != "" && next.File == "" {
		return nil, fmt.Errorf(
			"the configuration file %s is missing: restore it, or restart hako for the built-in default", file)
	}
	result := &console.Reloaded{
		Changed: []string{}, NeedRestart: []string{}, Others: []string{},
		Warnings: append([]string{}, next.Warnings...),
	}
	started := r.server.Config
	for _, key := range started.Changes(next) {
		if !r.isLive(key, next) && !belowAny(key, r.otherKeys) {
			result.NeedRestart = append(result.NeedRestart, key)
		}
	}
	next.Keep(started, result.NeedRestart)
	for _, key := range r.config().Changes(next) {
		switch {
		case r.isLive(key, next):
			result.Changed = append(result.Changed, key)
		case belowAny(key, r.otherKeys):
			result.Others = append(result.Others, key)
		}
	}
	var prepared []*change
	for _, p := range r.server.parts {
		p, ok := p.(reloadable)
		if !ok || !slices.ContainsFunc(result.Changed, func(key string) bool { return belowAny(key, p.keys()) }) {
			continue
		}
		c, err := p.prepare(ctx, next)
		if err != nil {
			for _, c := range slices.Backward(prepared) {
				if c.discard != nil {
					c.discard()
				}
			}
			return nil, err
		}
		prepared = append(prepared, c)
	}
	r.current.Store(next)
	for _, c := range prepared {
		result.Warnings = append(result.Warnings, c.apply()...)
	}
	return result, nil
}

// belowAny reports whether a key is one of the others or below one of them.
func belowAny(key string, others []string) bool {
	return slices.ContainsFunc(others, func(other string) bool { return config.Below(key, other) })
}

// isLive reports whether a key whose value differs in next can change without a restart.
func (r *reloader) isLive(key string, next *config.Config) bool {
	if strings.HasPrefix(key, "http.tls.") && (next.HTTP.TLSCert == "") != (r.server.Config.HTTP.TLSCert == "") {
		return false // the address would speak another protocol
	}
	return slices.ContainsFunc(r.server.parts, func(p part) bool {
		live, ok := p.(reloadable)
		return ok && belowAny(key, live.keys())
	})
}

// report logs and records how a reload ended.
func (r *reloader) report(by audit.Subject, result *console.Reloaded, err error) {
	logger := r.server.Logger
	r.outcome.Store(&reloadOutcome{time.Now(), err})
	event := &audit.Event{Action: "configuration.reload", Outcome: "ok", Subject: by, Detail: map[string]string{}}
	if err != nil {
		event.Outcome, event.Error = audit.OutcomeFailed, err.Error()
		logger.Error("the configuration is invalid: the previous one stays in force", "err", err)
		r.record(event)
		return
	}
	event.Detail["applied"] = strings.Join(result.Changed, " ")
	event.Detail["restart"] = strings.Join(result.NeedRestart, " ")
	event.Detail["configuration"] = configDigest(r.config())
	attributes := []any{"applied", result.Changed, "restart", result.NeedRestart}
	if len(result.Others) > 0 {
		event.Detail["others"] = strings.Join(result.Others, " ")
		attributes = append(attributes, "others", result.Others)
	}
	logger.Info("the configuration was read again", attributes...)
	for _, warning := range result.Warnings {
		logger.Warn("the configuration in force", "err", warning)
	}
	r.record(event)
}

// configDigest identifies the values in force, wherever they come from, as "hako config show" lists them.
func configDigest(c *config.Config) string {
	sum := sha256.New()
	for _, e := range c.Entries() {
		fmt.Fprintf(sum, "%s\x00%s\n", e.Key, e.Value)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

func (r *reloader) status() []string {
	if r.outcome.Load().err == nil {
		return nil
	}
	return []string{"the configuration is invalid: the previous one stays in force (hako config check)"}
}

func (r *reloader) problems(language string) []console.Problem {
	err := r.outcome.Load().err
	if err == nil {
		return nil
	}
	return []console.Problem{{Kind: "reload", Text: err.Error(), Remedy: manifest.Text{
		"en": "Correct the configuration (hako config check); until then the previous one stays in force.",
		"ja": "設定を修正してください (hako config check)。それまでは以前の設定が有効です。",
	}.In(language)}}
}
