package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hako-run/hako/internal/retry"
	"github.com/hako-run/hako/internal/visible"
)

// ErrChanged means that the agent was changed in the meantime, so that the Plan no longer applies.
var ErrChanged = errors.New("the agent was changed meanwhile, and needs other changes now: look at them again")

// Publisher updates the tool definitions of agents. It is safe for concurrent use.
type Publisher struct {
	client *client
	retry  time.Duration // first wait before a failed request is retried
}

// publishTries bounds the attempts of a change.
const publishTries = 5

// NewPublisher returns a Publisher with the key and the address of spec, whose other fields play no part. Proxy is an
// upstream proxy; nil means none. It fails if the key is missing, or the address is one that a key must not be sent to.
func NewPublisher(spec Spec, proxy *url.URL) (*Publisher, error) {
	if err := spec.checkAccess(); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	return &Publisher{newClient(&spec, proxy, noObserver{}.AgentRequest), defaultTiming.retry}, nil
}

// Plan reads an agent and returns the changes that make its custom tools those of the list. Which tools are
// hako's is noted in the agent's metadata, under the keys hako_tools_1 and so on: others stay as they are. With adopt,
// hako also takes over custom tools of other owners that have the name of a listed tool.
//
// It fails if the definitions pass a limit of the API, if there are tools that would have to be adopted, if the agent
// is archived, or with an *Error.
func (p *Publisher) Plan(ctx context.Context, agent string, tools []Definition, adopt bool) (*Plan, error) {
	if !identifier().MatchString(agent) {
		return nil, fmt.Errorf("%q is not an agent ID: IDs have letters, digits, _ and -, such as agent_011CZkZ", agent)
	}
	if err := checkDefinitions(tools, 0); err != nil {
		return nil, err // before anything is sent
	}
	for failures := 0; ; {
		a, err := p.client.agent(ctx, agent)
		if err == nil {
			return plan(a, tools, adopt)
		}
		var e *Error
		if failures++; failures == publishTries || !errors.As(err, &e) || !e.temporary() {
			return nil, err
		}
		if err := retry.Wait(ctx, backoff(p.retry, failures)); err != nil {
			return nil, err
		}
	}
}

// Apply makes a new version of the agent with what the plan says, and returns its number. Sessions that have begun keep
// the version that they began with. It may be called again after an error: what was done is not done twice.
//
// If the agent has another version by now, the same changes are made to that one; it returns ErrChanged if others are
// needed. Other errors are an *Error, with what the API wrote where it does not take the definitions.
func (p *Publisher) Apply(ctx context.Context, agreed *Plan) (version int64, err error) {
	now := agreed
	for failures := 0; ; {
		if now.Empty() {
			return now.Version, nil // also if an update arrived whose answer was lost
		}
		version, err := p.client.update(ctx, now)
		var e *Error
		if failures++; err == nil || ctx.Err() != nil || failures == publishTries || !errors.As(err, &e) ||
			e.Kind == Auth || e.Kind == Gone {
			return version, err
		}
		if e.Status != http.StatusConflict && e.temporary() {
			_ = retry.Wait(ctx, backoff(p.retry, failures)) // if ctx ends, the next request says so
		}
		next, unread := p.Plan(ctx, now.Agent, now.wanted, now.adopt)
		switch {
		case unread != nil:
			return 0, unread
		case next.Version == now.Version && !e.temporary():
			return 0, err
		case !next.Empty() && !next.sameChanges(agreed):
			return 0, ErrChanged
		}
		now = next
	}
}

func agentPath(id string) string { return "/v1/agents/" + url.PathEscape(id) }

// agent reads the latest version of an agent.
func (c *client) agent(ctx context.Context, id string) (*agentObject, error) {
	var a struct {
		Name       string            `json:"name"`
		Version    int64             `json:"version"`
		ArchivedAt time.Time         `json:"archived_at"`
		Metadata   map[string]string `json:"metadata"`
		Tools      []json.RawMessage `json:"tools"`
	}
	if err := c.request(ctx, opAgents, http.MethodGet, agentPath(id), nil, nil, &a); err != nil {
		return nil, err
	}
	read := &agentObject{id: id, name: a.Name, version: a.Version, archived: !a.ArchivedAt.IsZero(),
		metadata: a.Metadata}
	for _, tool := range a.Tools {
		read.tools = append(read.tools, string(tool))
	}
	return read, nil
}

// update creates a new version of an agent and returns its number. Tools of others are sent back as they came.
func (c *client) update(ctx context.Context, p *Plan) (version int64, err error) {
	next := struct {
		Version  int64              `json:"version"`
		Tools    []json.RawMessage  `json:"tools"`
		Metadata map[string]*string `json:"metadata,omitempty"`
	}{p.Version, p.tools, p.metadata}
	var a struct {
		Version int64 `json:"version"`
	}
	err = c.request(ctx, opAgents, http.MethodPost, agentPath(p.Agent), nil, next, &a)
	var api *apiError
	if errors.Is(err, Refused) && errors.As(err, &api) {
		err = fmt.Errorf("%w: %s", err, api.reason())
	}
	return a.Version, err
}

// maxReason bounds the part of the API's error message that is shown, in characters.
const maxReason = 500

// reason returns the API's message for a rejected request on one line. Definitions are not secret.
func (e *apiError) reason() string {
	message := e.content().Error.Message
	if message == "" {
		return "it gives no reason"
	}
	text := strings.Join(strings.Fields(visible.Clean(message)), " ")
	if runes := []rune(text); len(runes) > maxReason {
		text = string(runes[:maxReason]) + "…"
	}
	return text
}
