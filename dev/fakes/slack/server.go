// Package slack is a fake of Slack's Web API (docs.slack.dev/methods): bearer tokens with scopes, errors as HTTP
// 200 with "ok": false, and the messages kept in memory.
//
// A method is one entry of the table methods. Deliveries to an app are beside it: events, clicks and commands, over
// Socket Mode or signed HTTP requests (deliver.go), so that a bot can be talked to (people.go).
package slack

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
	"github.com/hako-run/hako/dev/fakes/fault"
)

// Server is an http.Handler that serves /api/METHOD. Make one with New; its methods are safe for concurrent use.
type Server struct {
	// Faults are met before anything else. Slack's own way to fail is {Body: `{"ok":false,"error":"internal_error"}`}.
	Faults fault.Plan
	// TeamID is the workspace's identifier. It may be changed before anything happens.
	TeamID string
	// AckTime bounds the wait for the app's acknowledgement. Zero means Slack's 3 seconds, which a busy machine does
	// not keep to.
	AckTime time.Duration
	// LateTriggers makes every trigger of a modal come too late.
	LateTriggers bool
	// OnCall sees the arguments of each request of the Web API, if it is not nil. It may be set before anything
	// happens.
	OnCall func(method string, arguments map[string]any)

	mu       sync.Mutex
	tokens   map[string]*token // guarded by mu, as all below
	users    map[string]*User
	channels map[string]*channel
	messages []Message
	last     time.Time // of the last message, so that timestamps differ
	groups   []group
	files    map[string]*file
	sessions map[string]string // agent sessions: the status by channel and thread
	serial   int               // of what needs a number
	app      app
	triggers map[string]string // who may open a modal, by trigger
	views    []View
	changed  chan struct{} // closed at the next change; nil while nobody waits for one
}

// token describes a bot's token.
type token struct {
	bot    string
	scopes []string
}

// User is a member of the workspace.
type User struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Real  string `json:"real_name"`
	Email string `json:"-"`
	// Unconfirmed reports whether nobody has shown yet that the address is the person's.
	Unconfirmed bool   `json:"-"`
	Bot         bool   `json:"is_bot"`
	Deleted     bool   `json:"deleted"`
	Locale      string `json:"-"` // such as "ja-JP"
	// Team is the workspace that the person belongs to, in channels that are shared with others. Empty means the
	// server's.
	Team string `json:"-"`
	// Enterprise is the organisation of a person of Enterprise Grid, and Teams are its workspaces of which they are a
	// member.
	Enterprise string   `json:"-"`
	Teams      []string `json:"-"`
	// Hidden reports whether users.info does not find the person.
	Hidden bool `json:"-"`
}

// channel is a conversation: a channel, or a direct message to User.
type channel struct {
	id, name string
	user     string
	archived bool
	members  []string
}

// Message is one that was posted.
type Message struct {
	Channel string         // "D…" or "C…"
	User    string         // for a direct message, whom it is to
	Text    string         // as sent
	TS      string         // Slack's identifier of it in the channel
	Sent    map[string]any // all that came with it
	Author  string         // who wrote it
	Thread  string         // the first message of its thread, or empty
	// Ephemeral is the only one who sees it, or empty.
	Ephemeral string
	// Streaming reports whether it is still being written. Tasks are its task cards, as they were last updated.
	Streaming bool
	Tasks     []Task
	// Parts are the streamed parts, in order: text, and cards where they first appeared.
	Parts []Part
	// Blocks are those of the last post, update or stop.
	Blocks string
	// Files are the identifiers of those that came with it.
	Files []string
}

// Part is a piece of a streamed message: Markdown, or the ID of one of its task cards.
type Part struct{ Text, Task string }

// Task is a task card of a streamed message.
type Task struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"`
	Output string `json:"output,omitempty"`
}

// New returns a server without tokens and users.
func New() *Server {
	return &Server{
		TeamID: Team, tokens: map[string]*token{}, users: map[string]*User{}, channels: map[string]*channel{},
		files: map[string]*file{}, sessions: map[string]string{},
	}
}

// AddToken makes token a bot's, with these scopes: "chat:write", "im:write", "users:read".
func (s *Server) AddToken(value, bot string, scopes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[value] = &token{bot, scopes}
}

// AddUser adds a member of the workspace.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = &u
}

// AddChannel adds a channel with members, bots or users by their ID.
func (s *Server) AddChannel(id, name string, members ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[id] = &channel{id: id, name: name, members: members}
}

// Messages returns what was posted, in order.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// call is a request of the Web API with its arguments, all of them as JSON has them.
type call struct {
	*token
	arguments map[string]any
	base      string // the server's own URL
}

// flag is a true or "true".
func (c *call) flag(name string) bool { return c.arguments[name] == true || c.text(name) == "true" }

func (c *call) text(name string) string {
	text, _ := c.arguments[name].(string)
	return text
}

// methods are those of the Web API that are served, each with the scopes of which it needs one.
var methods = map[string]struct {
	scopes []string
	serve  func(*Server, *call) (answer, error)
}{
	"auth.test":  {nil, (*Server).authTest},
	"users.info": {[]string{"users:read"}, (*Server).usersInfo},
	"users.list": {[]string{"users:read"}, (*Server).usersList},
	"conversations.info": {[]string{"channels:read", "groups:read", "im:read", "mpim:read"},
		(*Server).conversationInfo},
	"conversations.open": {[]string{"im:write", "mpim:write", "channels:manage", "groups:write"}, (*Server).open},
	"chat.postMessage":   {[]string{"chat:write"}, (*Server).post},
	"chat.update":        {[]string{"chat:write"}, (*Server).update},
	"chat.postEphemeral": {[]string{"chat:write"}, (*Server).postEphemeral},
	"views.open":         {nil, (*Server).openView},

	"chat.startStream":          {[]string{"chat:write"}, (*Server).startStream},
	"chat.appendStream":         {[]string{"chat:write"}, (*Server).appendStream},
	"chat.stopStream":           {[]string{"chat:write"}, (*Server).stopStream},
	"agents.sessions.setStatus": {[]string{"chat:write"}, (*Server).setStatus},

	"conversations.replies": {[]string{"channels:history", "groups:history", "im:history", "mpim:history"},
		(*Server).replies},
	"usergroups.list":              {[]string{"usergroups:read"}, (*Server).userGroups},
	"files.getUploadURLExternal":   {[]string{"files:write"}, (*Server).uploadURL},
	"files.completeUploadExternal": {[]string{"files:write"}, (*Server).completeUpload},
}

type answer map[string]any

// apiError is an error in Slack's form.
type apiError struct {
	code  string
	extra answer
}

func (e *apiError) Error() string { return e.code }

func refuse(code string) error { return &apiError{code, nil} }

// ServeHTTP serves the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Faults.Wrap(http.HandlerFunc(s.serve)).ServeHTTP(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	switch path, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); path {
	case "socket":
		s.socket(w, r)
		return
	case "files":
		s.serveFile(w, r)
		return
	}
	result, err := s.api(r)
	if err != nil {
		result = answer{"ok": false, "error": err.Error()}
		var e *apiError
		if errors.As(err, &e) {
			for key, value := range e.extra {
				result[key] = value
			}
		}
	} else {
		result["ok"] = true
	}
	fakehttp.JSON(w, http.StatusOK, result)
}

func (s *Server) api(r *http.Request) (answer, error) {
	if r.URL.Path == "/api/apps.connections.open" {
		return s.connect(r)
	}
	method, ok := methods[strings.TrimPrefix(r.URL.Path, "/api/")]
	if !ok {
		return nil, &apiError{"unknown_method", answer{"req_method": strings.TrimPrefix(r.URL.Path, "/api/")}}
	}
	arguments, err := readArguments(r)
	if err != nil {
		return nil, err
	}
	if s.OnCall != nil {
		s.OnCall(strings.TrimPrefix(r.URL.Path, "/api/"), maps.Clone(arguments))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.touch()
	bearer := fakehttp.Bearer(r)
	if form, ok := arguments["token"].(string); ok && bearer == "" && isForm(r) {
		bearer = form // the other way to send it (docs.slack.dev/apis/web-api)
	}
	delete(arguments, "token")
	if bearer == "" {
		return nil, refuse("not_authed")
	}
	t := s.tokens[bearer]
	if t == nil {
		return nil, refuse("invalid_auth")
	}
	if len(method.scopes) > 0 && !slices.ContainsFunc(method.scopes,
		func(scope string) bool { return slices.Contains(t.scopes, scope) }) {
		return nil, &apiError{"missing_scope", answer{"needed": strings.Join(method.scopes, ","),
			"provided": strings.Join(t.scopes, ",")}}
	}
	return method.serve(s, &call{t, arguments, base(r)})
}

func isForm(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
}

// maxBody bounds a request, in bytes.
const maxBody = 1 << 20

// readArguments reads JSON, which needs its Content-Type, or a form.
func readArguments(r *http.Request) (map[string]any, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return nil, refuse("request_timeout")
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	arguments := map[string]any{}
	switch {
	case r.Method != "POST":
		return nil, refuse("invalid_post_type")
	case kind == "application/json":
		if json.Unmarshal(body, &arguments) != nil {
			return nil, refuse("invalid_json")
		}
	case kind == "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, refuse("invalid_form_data")
		}
		for name := range form {
			arguments[name] = form.Get(name)
		}
	case len(body) > 0 || err == nil:
		return nil, refuse("invalid_post_type")
	}
	return arguments, nil
}
