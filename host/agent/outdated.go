package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// belt is the custom tools that a session has: those of its agent's version when it began.
type belt struct {
	agent   string
	version int64
	tools   []Definition
}

func beltOf(s *anthropic.BetaManagedAgentsSession) *belt {
	b := &belt{agent: s.Agent.ID, version: s.Agent.Version}
	for i := range s.Agent.Tools {
		if d, custom := readDefinition(s.Agent.Tools[i].RawJSON()); custom {
			b.tools = append(b.tools, d)
		}
	}
	return b
}

// difference names the tools in which a session differs from what hako offers.
type difference struct {
	gone    []string // the agent knows them, and hako does not have them
	changed []string // they take other arguments by now
	unknown []string // hako offers them, and the agent does not know them
}

func (d *difference) empty() bool { return len(d.gone)+len(d.changed)+len(d.unknown) == 0 }

// against compares with what hako offers. Descriptions are not compared: they may be in another language.
func (b *belt) against(offered []Definition) *difference {
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

// maxNamed is how many tools of a kind a warning names.
const maxNamed = 10

// some are the first names, and how many there are besides.
func some(names []string) []string {
	if len(names) <= maxNamed {
		return names
	}
	return append(slices.Clone(names[:maxNamed]), fmt.Sprintf("and %d more", len(names)-maxNamed))
}

// inspection is what was seen of the tools of sessions.
type inspection struct {
	before map[string]string // the differences at the last look, by session
	warned map[string]bool   // those that were told, each with its agent and version
	count  int               // of sessions whose difference stands
}

// maxWarned is how many differences are remembered.
const maxWarned = 1000

// inspect looks from time to time whether sessions have other tools than hako offers, until ctx or serving ends.
func (r *Runner) inspect(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.serving, cancel)()
	seen := &inspection{warned: map[string]bool{}}
	for sleep(ctx, r.tempo.inspect) == nil {
		r.compare(ctx, seen)
	}
	r.options.Observer.AgentOutdated(-seen.count)
}

// compare looks once. A difference counts if it stands at two looks: tools of an upstream server come and go.
func (r *Runner) compare(ctx context.Context, seen *inspection) {
	offers := defined(r.custom.Fit(offered(r.options.Tools(r.caller("", "")), r.options.Locale)))
	now, count := map[string]string{}, 0
	for id, b := range r.belts(ctx) {
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
			r.logger.Warn("a session has other tools than hako offers: give its agent the tools (hako agent apply), and begin a new session",
				"session", id, "agent", b.agent, "version", b.version, "gone", some(d.gone), "changed", some(d.changed), "unknown", some(d.unknown))
		}
	}
	seen.before = now
	r.options.Observer.AgentOutdated(count - seen.count)
	seen.count = count
}

// belts are the tools of the sessions that are followed, as far as they can be read.
func (r *Runner) belts(ctx context.Context) map[string]*belt {
	known, missing := map[string]*belt{}, []*session(nil)
	r.mu.Lock()
	for id, s := range r.sessions {
		if known[id] = s.belt; s.belt == nil {
			delete(known, id)
			missing = append(missing, s)
		}
	}
	r.mu.Unlock()
	for _, s := range missing {
		b, err := r.client.belt(ctx, s.id)
		if err != nil {
			continue // who follows the session says so
		}
		r.mu.Lock()
		s.belt, known[s.id] = b, b
		r.mu.Unlock()
	}
	return known
}

// belt reads the tools of a session.
func (c *client) belt(ctx context.Context, session string) (b *belt, err error) {
	err = c.do(ctx, opSessions, func(key option.RequestOption) error {
		limited, cancel := context.WithTimeout(ctx, requestTime)
		defer cancel()
		s, err := c.sessions.Get(limited, session, anthropic.BetaSessionGetParams{}, key)
		if err == nil {
			b = beltOf(s)
		}
		return err
	})
	return b, err
}
