package llm

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/hako-run/hako/host/identity"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/toolschema"
)

// maxAdapted bounds the cache of adapted schemas, the excluded tools and the warnings logged.
const maxAdapted = 4096

// toolAdapter adapts tools to a dialect. It is safe for concurrent use.
type toolAdapter struct {
	// dialect does not change except for its refused, which mu guards.
	dialect dialect
	logger  *slog.Logger

	mu       sync.Mutex             // guards what follows
	adapted  map[string]*adaptation // by schema
	excluded map[string]bool        // tools that the provider refused, by name and schema
	warned   map[string]bool        // warnings already logged
}

type adaptation struct {
	parameters *parameters
	err        error
}

func newToolAdapter(d dialect, logger *slog.Logger) *toolAdapter {
	return &toolAdapter{dialect: d, logger: logger, adapted: map[string]*adaptation{}, excluded: map[string]bool{},
		warned: map[string]bool{}}
}

// toolset is the adapted tools of one request.
type toolset struct {
	tools    []sentTool
	dialect  dialect
	sent     map[string]*sentTool // by the name sent
	original map[string]*sentTool // by Tool.Name
	// deferred reports whether some are deferred, so that the provider's search is sent with them.
	deferred bool
}

// sentTool is a Tool adapted to a dialect.
type sentTool struct {
	Tool
	name       string
	parameters *parameters
}

// adaptFor returns the adapted tools for a model that loads deferred tools itself, or for one that has to be sent the
// tools that find them. The latter are sent as well where the provider's search would not find all tools.
func (w *toolAdapter) adaptFor(tools []Tool, defers bool) *toolset {
	if defers && len(tools) <= w.dialect.deferred {
		b := w.adaptAll(slices.DeleteFunc(slices.Clone(tools), func(t Tool) bool { return t.Finds }))
		if b.deferred && b.sent[searchTool] == nil {
			return b
		}
	}
	return w.adaptAll(slices.DeleteFunc(slices.Clone(tools), func(t Tool) bool { return t.Deferred }))
}

// adaptAll returns the adapted tools. Tools that cannot be adapted are omitted, with a warning the first time.
func (t *toolAdapter) adaptAll(tools []Tool) *toolset {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, len(tools))
	for i, tool := range tools {
		names[i] = tool.Name
	}
	safe := toolschema.Identifiers(names, "_-", t.dialect.name)
	b := &toolset{tools: make([]sentTool, 0, len(tools)), dialect: t.dialect, sent: map[string]*sentTool{},
		original: map[string]*sentTool{}}
	for _, tool := range tools {
		a := t.adapt(tool.Schema)
		switch {
		case b.original[tool.Name] != nil:
			continue // a second tool of that name could not be called
		case a.err != nil:
			t.warn(tool.Name, a.err.Error())
			continue
		case len(t.excluded) > 0 && t.excluded[tool.key()]:
			continue
		case b.sent[safe[tool.Name]] != nil:
			t.warn(tool.Name, "for the provider its name is the same as that of "+b.sent[safe[tool.Name]].Name)
			continue
		case t.dialect.tools > 0 && len(b.tools) == t.dialect.tools:
			t.warn(tool.Name, fmt.Sprintf("the provider takes at most %d tools, and there are %d", t.dialect.tools,
				len(tools)))
			continue
		}
		if t.dialect.description > 0 {
			tool.Description = clip.Runes(tool.Description, t.dialect.description)
		}
		b.add(sentTool{tool, safe[tool.Name], a.parameters})
	}
	return b
}

// add appends a tool within the capacity of tools, so that pointers to earlier ones stay valid.
func (t *toolset) add(tool sentTool) {
	t.tools = append(t.tools, tool)
	t.deferred = t.deferred || tool.Deferred
	last := &t.tools[len(t.tools)-1]
	t.sent[tool.name], t.original[tool.Name] = last, last
}

func (t *toolAdapter) adapt(schema json.RawMessage) *adaptation {
	if a := t.adapted[string(schema)]; a != nil {
		return a
	}
	if len(t.adapted) >= maxAdapted {
		clear(t.adapted)
	}
	parameters, err := adapt(schema, t.dialect)
	a := &adaptation{parameters, err}
	t.adapted[string(schema)] = a
	return a
}

// exclude omits a tool from later requests, because the provider refused its definition.
func (t *toolAdapter) exclude(tool *sentTool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.excluded) >= maxAdapted {
		clear(t.excluded)
	}
	t.excluded[tool.key()] = true
	t.warn(tool.Name, "the provider refused its definition")
}

// dropKeyword removes a keyword that the provider refuses from the schemas of later requests. It reports false if it was
// removed before.
func (t *toolAdapter) dropKeyword(keyword string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dialect.refused[keyword] || len(t.dialect.refused) == maxRefused {
		return false
	}
	refused := maps.Clone(t.dialect.refused) // requests read the earlier one
	if refused == nil {
		refused = map[string]bool{}
	}
	refused[keyword] = true
	t.dialect.refused = refused
	clear(t.adapted)
	t.logger.Info("the provider refuses a keyword of JSON Schema: schemas are sent without it", "keyword", keyword)
	return true
}

// maxRefused bounds the keywords that are removed.
const maxRefused = 64

// warn logs once why a tool is omitted. Callers hold mu.
func (t *toolAdapter) warn(tool, reason string) {
	if len(t.warned) >= maxAdapted || t.warned[tool+reason] {
		return
	}
	t.warned[tool+reason] = true
	t.logger.Warn("a tool is not offered to the model", "tool", tool, "reason", reason)
}

// key identifies a definition.
func (t *Tool) key() string { return identity.Key(t.Name, string(t.Schema)) }

// outgoing returns the name of a call as it is sent, and its arguments.
func (t *toolset) outgoing(call *Call) (name string, arguments json.RawMessage) {
	arguments = call.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	tool := t.original[call.Name]
	if tool == nil { // no longer offered
		return toolschema.Identifier(call.Name, "_-", t.dialect.name), arguments
	}
	return tool.name, arguments
}

// incoming returns a model's call with the tool's original name.
func (t *toolset) incoming(id, name, arguments string) Call {
	call := newCall(id, name, arguments)
	if tool := t.sent[name]; tool != nil {
		call.Name = tool.Name
	}
	return call
}

// incoming returns a model's call with the tool's original name. given is the model's ID of the call.
func (x *exchange) incoming(id, given, name, arguments string) Call {
	call := x.tools.incoming(id, name, arguments)
	call.given = modelID{x.origin(), given}
	return call
}
