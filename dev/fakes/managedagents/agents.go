package managedagents

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/hako-run/hako/dev/fakes/anthropic"
)

// Limits of an agent's metadata.
const (
	maxMetadata = 16
	maxKey      = 64
	maxValue    = 512
)

// agent is one version of a definition. It never changes but for Archived.
type agent struct {
	ID          string            `json:"id"`
	Type        string            `json:"type"`
	Version     int               `json:"version"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	System      string            `json:"system"`
	Model       json.RawMessage   `json:"model"`
	Tools       []json.RawMessage `json:"tools"`
	MCPServers  []json.RawMessage `json:"mcp_servers"`
	Skills      []json.RawMessage `json:"skills"`
	Metadata    map[string]string `json:"metadata"`
	Created     time.Time         `json:"created_at"`
	Updated     time.Time         `json:"updated_at"`
	Archived    *time.Time        `json:"archived_at"`
}

// change holds a request's changes to an agent. What it leaves out stays as it is.
type change struct {
	Version     *int               `json:"version"`
	Name        string             `json:"name"`
	Description *string            `json:"description"`
	System      *string            `json:"system"`
	Model       json.RawMessage    `json:"model"`
	Tools       list               `json:"tools"`
	MCPServers  list               `json:"mcp_servers"`
	Skills      list               `json:"skills"`
	Metadata    map[string]*string `json:"metadata"`
}

// list is a field that is replaced as a whole. Null empties it.
type list struct {
	given    bool
	elements []json.RawMessage
}

func (l *list) UnmarshalJSON(data []byte) error {
	l.given, l.elements = true, []json.RawMessage{}
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	return json.Unmarshal(data, &l.elements)
}

// replace puts a list that was given in the place of another.
func (l *list) replace(old *[]json.RawMessage) {
	if l.given {
		*old = l.elements
	}
}

// createAgent makes an agent.
func (s *Server) createAgent(w http.ResponseWriter, body []byte) error {
	var in change
	if err := decode(body, &in); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case in.Name == "":
		return anthropic.Invalid("name: Field required")
	case in.Model == nil:
		return anthropic.Invalid("model: Field required")
	}
	s.agent("") // the default one is there first
	a, err := in.on(blankAgent(s.newID("agent"), s.tick()))
	if err != nil {
		return err
	}
	s.agents[a.ID] = []*agent{a}
	return reply(w, a)
}

func blankAgent(id string, now time.Time) *agent {
	return &agent{
		ID: id, Type: "agent", Version: 1, Model: json.RawMessage(`{"id":"fake","speed":"standard"}`), Created: now,
		Updated: now,
		Tools:   []json.RawMessage{}, MCPServers: []json.RawMessage{}, Skills: []json.RawMessage{},
		Metadata: map[string]string{},
	}
}

// updateAgent makes a new version of an agent, unless nothing changes.
func (s *Server) updateAgent(w http.ResponseWriter, id string, body []byte) error {
	var in change
	if err := decode(body, &in); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.agent(id)
	switch {
	case a == nil:
		return missing("agent")
	case in.Version != nil && *in.Version < 1:
		return anthropic.Invalid("version: must be at least 1")
	case in.Version != nil && *in.Version != a.Version:
		return &anthropic.Error{Status: 409, Kind: "invalid_request_error",
			Message: "version: the agent has another version by now"}
	case a.Archived != nil:
		return anthropic.Invalid("the agent is archived")
	}
	next, err := in.on(a)
	if err != nil {
		return err
	}
	if same(a, next) {
		return reply(w, a)
	}
	next.Version, next.Updated = a.Version+1, s.tick()
	s.agents[id] = append(s.agents[id], next)
	return reply(w, next)
}

func same(a, b *agent) bool {
	one, errOne := json.Marshal(a)
	other, errOther := json.Marshal(b)
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}

// on returns a copy of an agent with the change.
func (c *change) on(a *agent) (*agent, error) {
	next := *a
	next.Metadata = maps.Clone(a.Metadata)
	if c.Name != "" {
		next.Name = c.Name
	}
	if c.Description != nil {
		next.Description = *c.Description
	}
	if c.System != nil {
		next.System = *c.System
	}
	if c.Model != nil {
		next.Model = spelledOut(c.Model)
	}
	c.Tools.replace(&next.Tools)
	c.MCPServers.replace(&next.MCPServers)
	c.Skills.replace(&next.Skills)
	var err error
	if next.Tools, err = checkTools(next.Tools, next.MCPServers); err != nil {
		return nil, err
	}
	for key, value := range c.Metadata {
		if delete(next.Metadata, key); value != nil {
			next.Metadata[key] = *value
		}
		if len(key) > maxKey || value != nil && len(*value) > maxValue {
			return nil, anthropic.Invalid("metadata: keys have at most %d characters, values %d", maxKey, maxValue)
		}
	}
	if len(next.Metadata) > maxMetadata {
		return nil, anthropic.Invalid("metadata: at most %d pairs", maxMetadata)
	}
	return &next, nil
}

// spelledOut is a model as the API shows it, where it was given by its name alone.
func spelledOut(model json.RawMessage) json.RawMessage {
	var id string
	if json.Unmarshal(model, &id) != nil {
		return model
	}
	shown, _ := json.Marshal(map[string]string{"id": id, "speed": "standard"}) // it was read from JSON
	return shown
}

// snapshot is the agent as its sessions show it.
func (a *agent) snapshot() map[string]any {
	return map[string]any{
		"id": a.ID, "type": a.Type, "version": a.Version, "name": a.Name, "description": a.Description,
		"system": a.System, "model": a.Model,
		"tools": a.Tools, "mcp_servers": a.MCPServers, "skills": a.Skills,
	}
}

// showAgent shows an agent's last version, or the one that is asked for.
func (s *Server) showAgent(w http.ResponseWriter, id string, query url.Values) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.agent(id)
	if text := query.Get("version"); text != "" {
		version, err := strconv.Atoi(text)
		if err != nil || version < 1 {
			return anthropic.Invalid("version: must be at least 1")
		}
		a = s.version(id, version)
	}
	if a == nil {
		return missing("agent")
	}
	return reply(w, a)
}

// listVersions lists the versions of an agent, the newest first.
func (s *Server) listVersions(w http.ResponseWriter, r *http.Request, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agent(id) == nil {
		return missing("agent")
	}
	var all []any
	for _, a := range slices.Backward(s.agents[id]) {
		all = append(all, a)
	}
	return s.page(w, r, all)
}

// archiveAgent makes an agent one that cannot be changed any more.
func (s *Server) archiveAgent(w http.ResponseWriter, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.agent(id)
	if a == nil {
		return missing("agent")
	}
	now := s.tick()
	a.Archived = &now
	return reply(w, a)
}

// agent returns the last version of an agent, or nil. mu is held.
func (s *Server) agent(id string) *agent {
	if s.agents == nil {
		a := blankAgent(DefaultAgent, s.tick())
		a.Name = "Fake"
		s.agents = map[string][]*agent{DefaultAgent: {a}}
	}
	return s.version(id, len(s.agents[id]))
}

// version returns a version of an agent, or nil. mu is held.
func (s *Server) version(id string, version int) *agent {
	if versions := s.agents[id]; version >= 1 && version <= len(versions) {
		return versions[version-1]
	}
	return nil
}
