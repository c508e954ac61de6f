package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hako-run/hako/internal/httpserver"
	"github.com/hako-run/hako/internal/strictjson"
)

// route is one endpoint of the API.
type route struct {
	// name is the method and the path below Path + "api/".
	name string
	// role is the required role; nobody requires no login.
	role Role
	// query lists the accepted parameters besides lang. anyQuery ignores others, which providers may add (RFC 6749,
	// section 4.1.2).
	query    []string
	anyQuery bool
	// answer returns the response to encode as JSON. If it is nil, serve writes the response.
	answer func(*Console, *request) (any, error)
	serve  func(*Console, http.ResponseWriter, *request) error
	// kind is the type of the request body. Empty means JSON.
	kind string
	// body bounds the request body, in bytes. Zero means 16 KiB.
	body int64
}

const (
	usualBody = 16 << 10
	// callBody is the bound for the arguments of a tool.
	callBody = 1 << 20
)

// routes are all endpoints with their required roles.
var routes = []route{
	{name: "GET session", answer: (*Console).session},
	{name: "POST login", serve: (*Console).login},
	{name: "GET oidc/login", serve: (*Console).oidcLogin},
	{name: "GET oidc/callback", serve: (*Console).oidcCallback, anyQuery: true},
	{name: "POST logout", role: Viewer, serve: (*Console).logout},

	{name: "GET overview", role: Viewer, answer: (*Console).overview},
	{name: "GET plugins", role: Viewer, answer: (*Console).plugins, query: []string{"state", "q", "cursor", "limit"}},
	{name: "GET plugins/{name}", role: Viewer, answer: (*Console).plugin},
	{name: "POST plugins/{name}/review", role: Admin, answer: (*Console).review, body: maxChoices},
	{name: "POST plugins/{name}/approve", role: Admin, answer: (*Console).approve, body: maxChoices},
	{name: "POST plugins/{name}/revoke", role: Admin, answer: (*Console).revoke},
	{name: "POST plugins/{name}/newer", role: Admin, answer: (*Console).readNewer},
	{name: "POST plugins/{name}/update", role: Admin, answer: (*Console).update},
	{name: "POST plugins/{name}/previous", role: Admin, answer: (*Console).readPrevious},
	{name: "POST plugins/{name}/rollback", role: Admin, answer: (*Console).rollback},
	{name: "POST plugins/{name}/remove", role: Admin, answer: (*Console).remove},
	{name: "GET plugin-folder", role: Admin, answer: (*Console).pluginFolder},
	{name: "POST plugin-folder/read/file", role: Admin, answer: (*Console).readFile, kind: wasmType,
		body: unboundedBody},
	{name: "POST plugin-folder/read/url", role: Admin, answer: (*Console).readURL},
	{name: "POST plugin-folder/add/file", role: Admin, answer: (*Console).addFile, kind: wasmType, body: unboundedBody,
		query: []string{"digest", "replace"}},
	{name: "POST plugin-folder/add/url", role: Admin, answer: (*Console).addURL},
	{name: "GET index", role: Admin, answer: (*Console).searchIndexes, query: []string{"q"}},
	{name: "POST index/read", role: Admin, answer: (*Console).readListed},
	{name: "POST index/add", role: Admin, answer: (*Console).addListed},
	{name: "GET index/servers", role: Admin, answer: (*Console).searchServers, query: []string{"q"}},
	{name: "GET tools", role: Viewer, answer: (*Console).tools, query: []string{"plugin", "q", "cursor", "limit"}},
	{name: "GET tools/{name}", role: Viewer, answer: (*Console).tool},
	{name: "POST tools/{name}/call", role: Admin, answer: (*Console).call, body: callBody},
	{name: "GET toolsets", role: Viewer, answer: (*Console).toolsets, query: []string{"cursor", "limit"}},
	{name: "GET toolsets/{name}", role: Viewer, answer: (*Console).toolset, query: []string{"cursor", "limit"}},
	{name: "POST toolsets/preview", role: Admin, answer: (*Console).previewToolset, body: maxToolset},
	{name: "POST toolsets/rules/preview", role: Admin, answer: (*Console).previewRules, body: maxToolset},
	{name: "GET approvals", role: Viewer, answer: (*Console).approvals},
	{name: "GET approvals/{id}/arguments", role: Viewer, answer: (*Console).approvalArguments},
	{name: "GET approvals/{id}/rules", role: Approver, answer: (*Console).allowRules},
	{name: "POST approvals/{id}/rules", role: Admin, answer: (*Console).proposeRule},
	{name: "POST approvals/{id}", role: Approver, answer: (*Console).answerApproval},

	{name: "GET audit", role: Viewer, answer: (*Console).audit, query: auditParameters},
	{name: "GET audit/export", role: Viewer, serve: (*Console).exportAudit,
		query: append(slices.Clip(auditFilters), "format")},
	{name: "GET audit/verification", role: Viewer, answer: (*Console).verification},
	{name: "POST audit/verify", role: Viewer, serve: (*Console).verify},

	{name: "GET calls", role: Viewer, serve: (*Console).calls},
	{name: "GET calls/running", role: Viewer, answer: (*Console).runningCalls},
	{name: "GET calls/finished", role: Viewer, answer: (*Console).finishedCalls},
	{name: "GET calls/{id}", role: Viewer, answer: (*Console).oneCall},
	{name: "POST calls/{id}/stop", role: Admin, answer: (*Console).stopCall},
	{name: "GET series", role: Viewer, answer: (*Console).series, query: []string{"tool", "span"}},
	{name: "GET series/top", role: Viewer, answer: (*Console).top, query: []string{"span", "by", "limit"}},
	{name: "GET errors", role: Viewer, answer: (*Console).failures},

	{name: "GET policy", role: Viewer, answer: (*Console).policy},
	{name: "GET policy/table", role: Viewer, answer: (*Console).policyTable,
		query: []string{"frontend", "caller", "tool", "cursor", "limit"}},
	{name: "POST policy/explain", role: Viewer, answer: (*Console).explainPolicy, body: callBody},
	{name: "GET policy/text", role: Admin, answer: (*Console).policyText},
	{name: "POST policy/try", role: Admin, answer: (*Console).tryPolicy, body: maxPolicyText},

	{name: "GET configuration", role: Viewer, answer: (*Console).configuration},
	{name: "POST configuration/reload", role: Admin, answer: (*Console).reload},
	{name: "GET upstreams", role: Viewer, answer: (*Console).upstreams},
	{name: "GET slack", role: Viewer, answer: (*Console).slack},
	{name: "GET credentials", role: Viewer, answer: (*Console).credentials},
	{name: "GET replicas", role: Viewer, answer: (*Console).replicas},
	{name: "GET clients", role: Viewer, answer: (*Console).clients},
	{name: "POST clients/{id}/end", role: Admin, answer: (*Console).endClient},
	{name: "GET sessions", role: Admin, answer: (*Console).listSessions},
	{name: "GET tokens", role: Admin, answer: (*Console).tokens},
	{name: "POST tokens", role: Admin, answer: (*Console).createToken},
	{name: "POST tokens/{id}/revoke", role: Admin, answer: (*Console).revokeToken},
	{name: "GET logins", role: Admin, answer: (*Console).clientLogins},
	{name: "POST logins/{id}/end", role: Admin, answer: (*Console).endLogin},
	{name: "GET blocks", role: Admin, answer: (*Console).blocks},
	{name: "POST blocks", role: Admin, answer: (*Console).blockUser},
	{name: "POST blocks/remove", role: Admin, answer: (*Console).unblockUser},
}

// pattern returns the route's pattern for http.ServeMux.
func (r route) pattern() string {
	method, path, _ := strings.Cut(r.name, " ")
	return method + " " + Path + "api/" + path
}

// request is a request to the API.
type request struct {
	*http.Request
	// language is the language of the server's texts, "en" or "ja".
	language string
	// site is the site when the request arrived, address the client's address.
	site    *site
	address string
	// session is nil without a login. secret is that of its cookie.
	session *session
	secret  string

	control *http.ResponseController
}

// handler serves one route.
func (c *Console) handler(route route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := c.site.Load()
		q := &request{Request: r, language: language(r), site: at, address: at.proxies.Address(r),
			control: http.NewResponseController(w)}
		err := c.serve(w, q, route)
		if err == nil {
			return
		}
		f := faultOf(err)
		switch f {
		case nil:
			c.logger.Error("a request to the console failed", "route", route.name, "err", err)
			f = faultInternal
		case faultStore:
			c.logger.Error("the store of the console failed", "route", route.name, "err", err)
		}
		writeFault(w, q.language, f)
	})
}

func (c *Console) serve(w http.ResponseWriter, q *request, route route) error {
	if !isText(q.URL.Path) {
		return notFound("address", q.URL.Path)
	}
	if err := checkQuery(q.Request, route.query); err != nil && !route.anyQuery {
		return err
	}
	if err := c.identify(q); err != nil {
		return err
	}
	if err := c.permit(q, route); err != nil {
		return err
	}
	limit := route.body
	if limit == 0 {
		limit = usualBody
	}
	q.Body = http.MaxBytesReader(w, q.Body, limit)
	if route.serve != nil {
		return route.serve(c, w, q)
	}
	answer, err := route.answer(c, q)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// identify finds the session of the request.
func (c *Console) identify(q *request) error {
	secret := q.site.cookieValue(q.Request, sessionCookie)
	if secret == "" {
		return nil
	}
	s, err := c.sessions.find(q.Context(), secret, c.now())
	if err != nil || s == nil {
		return err
	}
	if c.logins.Load().admit(&s.Person, s.proof, c.now()) != nil {
		return c.sessions.end(q.Context(), s, false)
	}
	q.session, q.secret = s, secret
	httpserver.SetUser(q.Context(), s.Name)
	if err := c.sessions.touch(q.Context(), s, c.now()); err != nil && q.Context().Err() == nil {
		c.logger.Warn("record the use of a session of the console", "err", err) // the store may be full
	}
	return nil
}

// permit checks whether the request is allowed.
func (c *Console) permit(q *request, route route) error {
	if isChange(q.Request) {
		if err := checkType(q.Request, cmp.Or(route.kind, "application/json")); err != nil {
			return err
		}
	}
	if route.role == nobody {
		return nil
	}
	if q.session == nil {
		return faultNotLoggedIn
	}
	if isChange(q.Request) {
		if err := checkCSRF(q.Request, q.secret); err != nil {
			return err
		}
	}
	if !q.session.Role.includes(route.role) {
		return faultRole(q.session.Role, route.role)
	}
	return nil
}

// isText reports whether PostgreSQL can compare a text with its own: it fails on NUL and on what is not UTF-8.
func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// checkQuery refuses unknown and repeated parameters, and values that are no texts.
func checkQuery(r *http.Request, known []string) error {
	if len(r.URL.RawQuery) > maxQuery {
		return invalid("the query is longer than %d bytes", maxQuery)
	}
	for name, values := range r.URL.Query() {
		if name != "lang" && !slices.Contains(known, name) {
			return invalid("unknown parameter %q", name)
		}
		if len(values) > 1 {
			return invalid("the parameter %q occurs %d times", name, len(values))
		}
		if !isText(values[0]) {
			return invalid("the parameter %q is not valid text", name)
		}
	}
	return nil
}

// maxQuery bounds the query of a request, in bytes.
const maxQuery = 8 << 10

// language returns the language that the page requests.
func language(r *http.Request) string {
	if r.URL.Query().Get("lang") == "ja" {
		return "ja"
	}
	return "en"
}

// param returns a parameter of the query, or "".
func (q *request) param(name string) string { return q.URL.Query().Get(name) }

// decode reads the body into v: one JSON object without unknown members.
func (q *request) decode(v any) error {
	data, err := io.ReadAll(q.Body)
	if err != nil {
		return err
	}
	if err := strictjson.Check(data); err != nil {
		return invalid("the request body is invalid: %v", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return invalid("the request body is invalid: %v", err)
	}
	return nil
}

// lasting returns the request's context without cancellation, for work that is finished even if the client is gone.
func (q *request) lasting() context.Context { return context.WithoutCancel(q.Context()) }

// untilAnswered lifts the limit on the time of the response, for responses with limits of their own. It does nothing if
// there is no limit.
func (q *request) untilAnswered() { _ = q.control.SetWriteDeadline(time.Time{}) }
