package llm

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/hako-run/hako/host/internal/identity"
	"github.com/hako-run/hako/internal/clip"
)

// maxAdapted bounds the cache of adapted schemas, the excluded tools and the warnings logged.
const maxAdapted = 4096

// toolAdapter adapts tools to a dialect. It is safe for concurrent use.
type toolAdapter struct {
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
func (w *toolAdapter) adaptAll(tools []Tool) *toolset {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := make([]string, len(tools))
	for i, tool := range tools {
		names[i] = tool.Name
	}
	safe := identifiers(names, "_-", w.dialect.name)
	b := &toolset{tools: make([]sentTool, 0, len(tools)), dialect: w.dialect, sent: map[string]*sentTool{},
		original: map[string]*sentTool{}}
	for _, tool := range tools {
		a := w.adapt(tool.Schema)
		switch {
		case b.original[tool.Name] != nil:
			continue // a second tool of that name could not be called
		case a.err != nil:
			w.warn(tool.Name, a.err.Error())
			continue
		case len(w.excluded) > 0 && w.excluded[tool.key()]:
			continue
		case b.sent[safe[tool.Name]] != nil:
			w.warn(tool.Name, "for the provider its name is the same as that of "+b.sent[safe[tool.Name]].Name)
			continue
		case w.dialect.tools > 0 && len(b.tools) == w.dialect.tools:
			w.warn(tool.Name, fmt.Sprintf("the provider takes at most %d tools, and there are %d", w.dialect.tools,
				len(tools)))
			continue
		}
		if w.dialect.description > 0 {
			tool.Description = clip.Runes(tool.Description, w.dialect.description)
		}
		b.add(sentTool{tool, safe[tool.Name], a.parameters})
	}
	return b
}

// add appends a tool within the capacity of tools, so that pointers to earlier ones stay valid.
func (b *toolset) add(tool sentTool) {
	b.tools = append(b.tools, tool)
	b.deferred = b.deferred || tool.Deferred
	last := &b.tools[len(b.tools)-1]
	b.sent[tool.name], b.original[tool.Name] = last, last
}

func (w *toolAdapter) adapt(schema json.RawMessage) *adaptation {
	if a := w.adapted[string(schema)]; a != nil {
		return a
	}
	if len(w.adapted) >= maxAdapted {
		clear(w.adapted)
	}
	parameters, err := adapt(schema, w.dialect)
	a := &adaptation{parameters, err}
	w.adapted[string(schema)] = a
	return a
}

// exclude omits a tool from later requests, because the provider refused its definition.
func (w *toolAdapter) exclude(tool *sentTool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.excluded) >= maxAdapted {
		clear(w.excluded)
	}
	w.excluded[tool.key()] = true
	w.warn(tool.Name, "the provider refused its definition")
}

// warn logs once why a tool is omitted. Callers hold mu.
func (w *toolAdapter) warn(tool, reason string) {
	if len(w.warned) >= maxAdapted || w.warned[tool+reason] {
		return
	}
	w.warned[tool+reason] = true
	w.logger.Warn("a tool is not offered to the model", "tool", tool, "reason", reason)
}

// key identifies a definition.
func (t *Tool) key() string { return identity.Key(t.Name, string(t.Schema)) }

// outgoing returns the name and arguments of a call with the names that are sent.
func (b *toolset) outgoing(call *Call) (name string, arguments json.RawMessage) {
	arguments = call.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	tool := b.original[call.Name]
	if tool == nil { // no longer offered
		return identifier(call.Name, "_-", b.dialect.name), arguments
	}
	back := make(map[string]string, len(tool.parameters.keys))
	for safe, key := range tool.parameters.keys {
		back[key] = safe
	}
	return tool.name, renameMembers(arguments, back)
}

// incoming returns a model's call with the tool's original names.
func (b *toolset) incoming(id, name, arguments string) Call {
	call := newCall(id, name, arguments)
	if tool := b.sent[name]; tool != nil {
		call.Name = tool.Name
		call.Arguments = renameMembers(call.Arguments, tool.parameters.keys)
	}
	return call
}

// begun returns the Delta for the start of a call.
func (b *toolset) begun(id, name string) Delta {
	if tool := b.sent[name]; tool != nil {
		name = tool.Name
	}
	return Delta{Call: &Call{ID: id, Name: name}}
}

// renameMembers renames the members of an object. names maps old names to new ones.
func renameMembers(object json.RawMessage, names map[string]string) json.RawMessage {
	var members map[string]json.RawMessage
	if len(names) == 0 || json.Unmarshal(object, &members) != nil {
		return object
	}
	for from, to := range names {
		if value, ok := members[from]; ok {
			delete(members, from)
			members[to] = value
		}
	}
	renamed, err := json.Marshal(members)
	if err != nil {
		return object
	}
	return renamed
}
