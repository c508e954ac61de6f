package llm

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/hako-run/hako/host/internal/identity"
)

// maxAdapted bounds how many schemas are kept, adapted or refused, and how many warnings are remembered.
const maxAdapted = 4096

// workshop adapts tools to a dialect. It is safe for concurrent use.
type workshop struct {
	dialect dialect
	logger  *slog.Logger

	mu      sync.Mutex             // guards what follows
	adapted map[string]*adaptation // by schema
	refused map[string]bool        // tools that the provider refused, by name and schema
	warned  map[string]bool        // what was logged already
}

type adaptation struct {
	parameters *parameters
	err        error
}

func newWorkshop(d dialect, logger *slog.Logger) *workshop {
	return &workshop{dialect: d, logger: logger, adapted: map[string]*adaptation{}, refused: map[string]bool{}, warned: map[string]bool{}}
}

// toolbox is the tools of a request as they are sent.
type toolbox struct {
	tools   []sentTool
	dialect dialect
	sent    map[string]*sentTool // by the name that is sent
	own     map[string]*sentTool // by Tool.Name
}

// sentTool is a Tool in a dialect.
type sentTool struct {
	Tool
	name       string
	parameters *parameters
}

// fit returns tools as they are to be sent. Those that cannot be are left out, with a warning the first time.
func (w *workshop) fit(tools []Tool) *toolbox {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := make([]string, len(tools))
	for i, tool := range tools {
		names[i] = tool.Name
	}
	safe := identifiers(names, "_-", w.dialect.name)
	b := &toolbox{tools: make([]sentTool, 0, len(tools)), dialect: w.dialect, sent: map[string]*sentTool{}, own: map[string]*sentTool{}}
	for _, tool := range tools {
		a := w.adapt(tool.Schema)
		switch {
		case b.own[tool.Name] != nil:
			continue // a second one of that name could not be called
		case a.err != nil:
			w.warn(tool.Name, a.err.Error())
			continue
		case len(w.refused) > 0 && w.refused[tool.key()]:
			continue
		case b.sent[safe[tool.Name]] != nil:
			w.warn(tool.Name, "its name cannot be told from that of "+b.sent[safe[tool.Name]].Name)
			continue
		case w.dialect.tools > 0 && len(b.tools) == w.dialect.tools:
			w.warn(tool.Name, fmt.Sprintf("the provider takes at most %d tools, and there are %d", w.dialect.tools, len(tools)))
			continue
		}
		tool.Description = cut(tool.Description, w.dialect.description)
		b.add(sentTool{tool, safe[tool.Name], a.parameters})
	}
	return b
}

// add adds a tool. There is room for it, so that pointers to those before it stay.
func (b *toolbox) add(tool sentTool) {
	b.tools = append(b.tools, tool)
	last := &b.tools[len(b.tools)-1]
	b.sent[tool.name], b.own[tool.Name] = last, last
}

func (w *workshop) adapt(schema json.RawMessage) *adaptation {
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

// refuse leaves a tool out from now on, since the provider refused its definition.
func (w *workshop) refuse(tool *sentTool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.refused) >= maxAdapted {
		clear(w.refused)
	}
	w.refused[tool.key()] = true
	w.warn(tool.Name, "the provider refused its definition")
}

// warn logs once why a tool is left out. mu is held.
func (w *workshop) warn(tool, reason string) {
	if len(w.warned) >= maxAdapted || w.warned[tool+reason] {
		return
	}
	w.warned[tool+reason] = true
	w.logger.Warn("the model does not get a tool", "tool", tool, "reason", reason)
}

// key tells definitions apart.
func (t *Tool) key() string { return identity.Key(t.Name, string(t.Schema)) }

// cut shortens text to n characters.
func cut(text string, n int) string {
	runes := []rune(text)
	if n == 0 || len(runes) <= n {
		return text
	}
	return strings.TrimSpace(string(runes[:n-1])) + "…"
}

// outgoing is a call of the conversation with the names that are sent.
func (b *toolbox) outgoing(call *Call) (name string, arguments json.RawMessage) {
	arguments = call.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	tool := b.own[call.Name]
	if tool == nil { // it is gone since
		return identifier(call.Name, "_-", b.dialect.name), arguments
	}
	back := make(map[string]string, len(tool.parameters.keys))
	for safe, key := range tool.parameters.keys {
		back[key] = safe
	}
	return tool.name, renameMembers(arguments, back)
}

// incoming is a call that the model asks for, with its own names.
func (b *toolbox) incoming(id, name, arguments string) Call {
	call := newCall(id, name, arguments)
	if tool := b.sent[name]; tool != nil {
		call.Name = tool.Name
		call.Arguments = renameMembers(call.Arguments, tool.parameters.keys)
	}
	return call
}

// begun is what a Delta says of a call.
func (b *toolbox) begun(id, name string) Delta {
	if tool := b.sent[name]; tool != nil {
		name = tool.Name
	}
	return Delta{Call: &Call{ID: id, Name: name}}
}

// renameMembers gives members of an object the names that names has for them.
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
