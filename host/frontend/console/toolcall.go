package console

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// maxShown bounds the shown part of a result, in bytes.
const maxShown = 1 << 20

// callResult is the result of a call.
type callResult struct {
	Outcome    pipeline.Outcome `json:"outcome"`
	IsError    bool             `json:"isError"`
	DurationMS float64          `json:"durationMs"`
	Content    []contentJSON    `json:"content"`
	Structured json.RawMessage  `json:"structured,omitempty"`
	Cut        bool             `json:"cut,omitempty"`
}

// contentJSON is a content block of MCP. Data is base64 in JSON.
type contentJSON struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
	Data     []byte `json:"data,omitempty"`
	URI      string `json:"uri,omitempty"`
	Name     string `json:"name,omitempty"`
}

// call calls a tool as the person who is logged in. The call passes the pipeline with policy, approvals, quotas and
// audit. It is canceled when the client disconnects.
func (c *Console) call(q *request) (any, error) {
	var body struct {
		Arguments json.RawMessage
		Tenant    string
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	q.untilAnswered()
	if arguments := bytes.TrimSpace(body.Arguments); len(arguments) > 0 && arguments[0] != '{' {
		return nil, invalid("the arguments of a tool must be a JSON object")
	}
	name := q.PathValue("name")
	if _, ok := c.options.Host.Catalog().View().Tool(name); !ok {
		return nil, notFound("tool", name)
	}
	started := c.now()
	result, err := c.options.Host.Call(q.Context(), &pipeline.Call{
		Caller:  q.caller(body.Tenant),
		Request: abi.Request{Method: abi.CallTool, Name: name, Arguments: body.Arguments},
	})
	answer := &callResult{DurationMS: milliseconds(c.now().Sub(started)), Content: []contentJSON{}}
	if err != nil {
		return answer.refused(err)
	}
	answer.Outcome, answer.IsError = result.Outcome, result.Response.IsError
	answer.show(result.Response)
	return answer, nil
}

// caller returns the pipeline's caller.
func (q *request) caller(tenant string) pipeline.Caller {
	return pipeline.Caller{
		Frontend: pipeline.FrontendConsole, Tenant: tenant, User: q.session.Name, Session: q.session.short(),
		Token: q.session.token(), Groups: q.session.Groups,
		Address: q.address, Locale: q.language,
	}
}

// refused shows why the tool was not called.
func (r *callResult) refused(err error) (any, error) {
	var denied *pipeline.NotAllowedError
	var invalid *pipeline.InvalidError
	var missing *pipeline.NotFoundError
	switch {
	case errors.As(err, &denied):
		r.Outcome = pipeline.NotAllowed
	case errors.As(err, &invalid):
		r.Outcome = pipeline.InvalidArguments
	case errors.As(err, &missing):
		r.Outcome = pipeline.NotFound
	default:
		return nil, err
	}
	r.IsError, r.Content = true, []contentJSON{{Type: abi.Text, Text: err.Error()}}
	return r, nil
}

// show adds the tool's response, up to maxShown.
func (r *callResult) show(response *abi.Response) {
	room := maxShown
	fits := func(n int) bool {
		if n > room {
			r.Cut = true
			return false
		}
		room -= n
		return true
	}
	if s := response.StructuredContent; len(s) > 0 && fits(len(s)) {
		r.Structured = s
	}
	for _, block := range response.Content {
		shown := contentJSON{Type: block.Type, Text: block.Text, MIMEType: block.MIMEType, Data: block.Data,
			URI: block.URI, Name: block.Name}
		if inner := block.Resource; inner != nil {
			shown.Text, shown.MIMEType, shown.Data, shown.URI = inner.Text, inner.MIMEType, inner.Data, inner.URI
		}
		if fits(len(shown.Text) + len(shown.Data)) {
			r.Content = append(r.Content, shown)
		}
	}
}
