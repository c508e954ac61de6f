package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/internal/config"
)

// reloader takes up another configuration while hako serves. It is safe for concurrent use.
type reloader struct {
	source config.Source
	// started is the configuration that hako was started with. What cannot change while it runs stays as it is there.
	started *config.Config
	parts   []part
	// others are keys that this command does not use, with all below them: another one does, and follows them by
	// itself.
	others []string
	record func(*audit.Event)
	logger *slog.Logger

	// inForce is the configuration in force, and outcome what became of the one that was read last.
	inForce atomic.Pointer[config.Config]
	outcome atomic.Pointer[reloadOutcome]

	// mu serialises reloads, and guards what follows.
	mu     sync.Mutex
	closed bool
	// read is the digest of what was read last.
	read string
}

// reloadOutcome says when a configuration was read, and what was wrong with it, if something was.
type reloadOutcome struct {
	at  time.Time
	err error
}

// part is something of the service that takes up another configuration while it runs.
type part struct {
	// keys are those that it takes up, with all below them.
	keys []string
	// prepare checks next and returns what puts it in force; until that is called nothing has changed. put cannot fail,
	// and returns warnings, if there are any. What goes on under the old configuration is finished under it.
	prepare func(ctx context.Context, next *config.Config) (put func() []string, err error)
}

// reloaded says what became of a configuration that was read again. Keys are sorted; values are not in it.
type reloaded struct {
	// Applied are the keys whose new values are in force now.
	Applied []string
	// Restart are the keys that differ from what hako was started with, and keep their old values until it is started
	// again.
	Restart []string
	// Others are the keys with new values that other commands use, and this one does not.
	Others []string
	// Warnings are about settings that have no effect, and about plugins that do not work with theirs.
	Warnings []string
}

// errStopping is the error of a reload while hako stops.
var errStopping = errors.New("hako is stopping")

// newReloader returns the reloader of a service that was started with the configuration. It takes up nothing before it
// is given parts.
func newReloader(flags serveFlags, started *config.Config, record func(*audit.Event), logger *slog.Logger) *reloader {
	r := &reloader{source: flags.source, started: started, record: record, logger: logger, read: flags.read}
	r.inForce.Store(started)
	r.outcome.Store(&reloadOutcome{at: time.Now()})
	return r
}

// config is the configuration in force. It must not be changed.
func (r *reloader) config() *config.Config { return r.inForce.Load() }

// reload reads the configuration again and puts it in force. by says for the audit log who asked: Frontend is "signal",
// "file" or "console", the last with its user.
//
// The configuration is checked as a whole first. The error names each setting that is wrong, and then nothing has
// changed; it matches errStopping once hako stops. One reload waits for the other, and what has begun is finished also
// when ctx ends.
func (r *reloader) reload(ctx context.Context, by audit.Subject) (*reloaded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errStopping
	}
	notify(notifyReloading())
	defer notify(notifyReady)
	r.read = r.source.Digest() // which is not newer than what is taken
	answer, err := r.take(context.WithoutCancel(ctx))
	r.note(by, answer, err)
	return answer, err
}

// take does what reload does, and leaves the noting to it.
func (r *reloader) take(ctx context.Context) (*reloaded, error) {
	next, err := config.Load(r.source)
	if err != nil {
		return nil, err
	}
	if now := r.config().File; now != "" && next.File == "" {
		return nil, fmt.Errorf("the configuration file %s is gone: put it back, or start hako again for the built-in default", now)
	}
	answer := &reloaded{Applied: []string{}, Restart: []string{}, Others: []string{},
		Warnings: append([]string{}, next.Warnings...)}
	for _, key := range r.started.Changes(next) {
		if !r.live(key, next) && !below(key, r.others) {
			answer.Restart = append(answer.Restart, key)
		}
	}
	next.Keep(r.started, answer.Restart)
	for _, key := range r.config().Changes(next) {
		switch {
		case r.live(key, next):
			answer.Applied = append(answer.Applied, key)
		case below(key, r.others):
			answer.Others = append(answer.Others, key)
		}
	}
	var puts []func() []string
	for _, p := range r.parts {
		if !slices.ContainsFunc(answer.Applied, p.takes) {
			continue
		}
		put, err := p.prepare(ctx, next)
		if err != nil {
			return nil, err
		}
		puts = append(puts, put)
	}
	r.inForce.Store(next)
	for _, put := range puts {
		answer.Warnings = append(answer.Warnings, put()...)
	}
	return answer, nil
}

// takes reports whether the part takes up the key.
func (p *part) takes(key string) bool { return below(key, p.keys) }

// below reports whether a key is one of outer, or below one of them.
func below(key string, outer []string) bool {
	return slices.ContainsFunc(outer, func(one string) bool { return config.Below(key, one) })
}

// live reports whether a key that has another value in next can change without a restart.
func (r *reloader) live(key string, next *config.Config) bool {
	if strings.HasPrefix(key, "http.tls.") && (next.HTTP.TLSCert == "") != (r.started.HTTP.TLSCert == "") {
		return false // it is another protocol at the address
	}
	return slices.ContainsFunc(r.parts, func(p part) bool { return p.takes(key) })
}

// note tells everybody how a reload ended.
func (r *reloader) note(by audit.Subject, answer *reloaded, err error) {
	r.outcome.Store(&reloadOutcome{time.Now(), err})
	event := &audit.Event{Action: "configuration.reload", Outcome: "ok", Subject: by, Detail: map[string]string{}}
	if err != nil {
		event.Outcome, event.Error = "failed", err.Error()
		r.logger.Error("the configuration is not usable: the one read before stays in force", "err", err)
	} else {
		event.Detail["applied"], event.Detail["restart"] = strings.Join(answer.Applied, " "),
			strings.Join(answer.Restart, " ")
		event.Detail["configuration"] = configDigest(r.config())
		read := []any{"applied", answer.Applied, "restart", answer.Restart}
		if len(answer.Others) > 0 {
			event.Detail["others"] = strings.Join(answer.Others, " ")
			read = append(read, "others", answer.Others)
		}
		r.logger.Info("the configuration was read again", read...)
		for _, warning := range answer.Warnings {
			r.logger.Warn("the configuration in force", "err", warning)
		}
	}
	r.record(event)
}

// state says what an operator should look at, for those who look after the process. It quotes nothing of the
// configuration.
func (r *reloader) state() []string {
	if r.outcome.Load().err == nil {
		return nil
	}
	return []string{"the configuration is not usable: the one read before stays in force (hako config check)"}
}

// last says when a configuration was read last, and whether it is the one in force.
func (r *reloader) last() (at time.Time, ok bool) {
	o := r.outcome.Load()
	return o.at, o.err == nil
}

// close waits for a reload under way, and lets no other begin.
func (r *reloader) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}
