package agent

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/hako-run/hako/internal/retry"
)

// sessionTools has the custom tools of a session: those of the agent's version at its start.
type sessionTools struct {
	agent   string
	version int64
	tools   []Definition
}

func sessionToolsOf(s *sessionObject) *sessionTools {
	b := &sessionTools{agent: s.Agent.ID, version: s.Agent.Version}
	for _, tool := range s.Agent.Tools {
		if d, custom := readDefinition(string(tool)); custom {
			b.tools = append(b.tools, d)
		}
	}
	return b
}

// difference names the tools of a session that differ from hako's.
type difference struct {
	gone    []string // not offered by hako
	changed []string // with other arguments
	unknown []string // unknown to the agent
}

func (d *difference) empty() bool { return len(d.gone)+len(d.changed)+len(d.unknown) == 0 }

// against compares the tools with those that hako offers, without descriptions, which may be in another language.
func (b *sessionTools) against(offered []Definition) *difference {
	d, known := new(difference), map[string]bool{}
	for _, tool := range b.tools {
		known[tool.Name] = true
		i := slices.IndexFunc(offered, func(o Definition) bool { return o.Name == tool.Name })
		if i < 0 {
			d.gone = append(d.gone, tool.Name)
			continue
		}
		if tool.Description = offered[i].Description; !tool.sameAs(&offered[i]) {
			d.changed = append(d.changed, tool.Name)
		}
	}
	for _, tool := range offered {
		if !known[tool.Name] {
			d.unknown = append(d.unknown, tool.Name)
		}
	}
	return d
}

// maxNamed bounds the tools named in a warning.
const maxNamed = 10

// some joins the first names and the number of the others.
func some(names []string) []string {
	if len(names) <= maxNamed {
		return names
	}
	return append(slices.Clone(names[:maxNamed]), fmt.Sprintf("and %d more", len(names)-maxNamed))
}

// inspection has the results of the last inspection.
type inspection struct {
	before map[string]string // the differences at the last look, by session
	warned map[string]bool   // those that were told, each with its agent and version
	count  int               // of sessions whose difference stands
}

// maxWarned bounds the differences remembered as logged.
const maxWarned = 1000

// inspect periodically compares the tools of sessions with hako's, until ctx or serving ends.
func (r *Runner) inspect(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.serving, cancel)()
	seen := &inspection{warned: map[string]bool{}}
	for retry.Wait(ctx, r.timing.inspect) == nil {
		r.compare(ctx, seen)
	}
	r.options.Observer.AgentOutdated(-seen.count)
}

// compare inspects once. Only a difference seen twice in a row counts, because upstream servers may disconnect briefly.
func (r *Runner) compare(ctx context.Context, seen *inspection) {
	offers := defined(r.custom.Fit(offered(r.options.Tools(r.caller("", "")), r.options.Locale)))
	now, count := map[string]string{}, 0
	for id, b := range r.sessionTools(ctx) {
		d := b.against(offers)
		if r.spec.Unknown == UnknownLeave {
			d.gone = nil // another program has them
		}
		if d.empty() {
			continue
		}
		now[id] = fmt.Sprint(b.agent, b.version, *d)
		if seen.before[id] != now[id] {
			continue
		}
		count++
		if len(seen.warned) < maxWarned && !seen.warned[now[id]] {
			seen.warned[now[id]] = true
			r.logger.Warn(
				"the tools of a session differ from hako's: run hako agent apply, and start a new session",
				"session", id, "agent", b.agent, "version", b.version, "gone", some(d.gone), "changed", some(d.changed),
				"unknown", some(d.unknown))
		}
	}
	seen.before = now
	r.options.Observer.AgentOutdated(count - seen.count)
	seen.count = count
}

// sessionTools returns the tools of the followed sessions, as far as they can be read.
func (r *Runner) sessionTools(ctx context.Context) map[string]*sessionTools {
	known, missing := map[string]*sessionTools{}, []*session(nil)
	r.mu.Lock()
	for id, s := range r.sessions {
		if known[id] = s.tools; s.tools == nil {
			delete(known, id)
			missing = append(missing, s)
		}
	}
	r.mu.Unlock()
	for _, s := range missing {
		b, err := r.client.sessionTools(ctx, s.id)
		if err != nil {
			continue // the session's follower reports the error
		}
		r.mu.Lock()
		s.tools, known[s.id] = b, b
		r.mu.Unlock()
	}
	return known
}

// sessionTools reads the tools of a session.
func (c *client) sessionTools(ctx context.Context, session string) (*sessionTools, error) {
	var s sessionObject
	if err := c.request(ctx, opSessions, http.MethodGet, sessionPath(session), nil, nil, &s); err != nil {
		return nil, err
	}
	return sessionToolsOf(&s), nil
}
