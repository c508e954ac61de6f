// Package elicitation is what a server asks a person in the middle of a call (MCP 2025-11-25 and 2026-07-28, elicitation): a form with a few
// fields, or an address to go to.
//
// A question is a stranger's. Parse takes of it what the specification allows, within bounds, and makes the rest an error; what is shown to
// people says who asks; and an answer leaves only if it fits the form (Form.Check).
package elicitation

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"

	"github.com/hako-run/hako/internal/visible"
)

// Modes of a question.
const (
	ModeForm = "form"
	ModeURL  = "url"
)

// Actions are how a person can answer.
const (
	Accept  = "accept"
	Decline = "decline" // a no
	Cancel  = "cancel"  // neither yes nor no: closed, or nobody came
)

// Request is a question as a server puts it. Nothing of it is checked.
type Request struct {
	// Mode is ModeForm or ModeURL. Empty is ModeForm, or ModeURL where there is a URL.
	Mode, Message string
	// Schema is that of a form, URL the address to go to, and ID the server's name for what happens there.
	Schema  json.RawMessage
	URL, ID string
}

// Question is a question that may be shown. It does not change.
type Question struct {
	// Server is who asks, and Tool what was called, by its name at the doors. Parse leaves them empty.
	Server, Tool string
	// Message is what the server says, with control characters made visible.
	Message string
	// Form is what to fill in. It is nil if there is an address to go to.
	Form *Form
	// URL is the address, its host in ASCII, and ID the server's name for what happens there.
	URL *url.URL
	ID  string
}

// Mode is ModeForm or ModeURL.
func (q *Question) Mode() string {
	if q.Form == nil {
		return ModeURL
	}
	return ModeForm
}

// Request is the question as Parse takes it, with what Parse has taken of it, Server and Tool aside.
func (q *Question) Request() *Request {
	r := &Request{Mode: q.Mode(), Message: q.Message, ID: q.ID}
	if q.Form != nil {
		r.Schema = q.Form.Schema()
	} else {
		r.URL = q.URL.String()
	}
	return r
}

// Answer is what a person said. Content is there if they accepted a form: values by the names of its fields.
type Answer struct {
	Action  string
	Content map[string]any
}

// RuleError says that a question breaks a rule, and so is put to nobody. It repeats nothing of the question but names of fields.
type RuleError struct{ Rule string }

func (e *RuleError) Error() string { return e.Rule }

func rule(format string, args ...any) error { return &RuleError{fmt.Sprintf(format, args...)} }

var (
	// ErrNobody says that there is nobody who could answer.
	ErrNobody = errors.New("there is nobody to ask where the call comes from")
	// ErrMisfit says that an answer is not what the form asks for.
	ErrMisfit = errors.New("the answer does not fit the form, and was not passed on")
)

// Bounds of a question, in bytes where nothing else is said.
const (
	maxMessage = 4 << 10
	maxSchema  = 64 << 10
	maxURL     = 2 << 10
	maxID      = 256
)

// Parse returns the question that may be shown, or a *RuleError: for another mode, more than the bounds allow, a schema that is not one of
// flat fields (Form), a form that asks for a secret, or an address that is not https, or http on this machine, or that has a user name in it.
func Parse(r *Request) (*Question, error) {
	mode := r.Mode
	switch {
	case mode == "" && r.URL != "":
		mode = ModeURL
	case mode == "":
		mode = ModeForm
	}
	if len(r.Message) > maxMessage {
		return nil, rule("its message is longer than %d bytes", maxMessage)
	}
	q := &Question{Message: visible.Text(r.Message)}
	var err error
	switch mode {
	case ModeForm:
		if q.Form, err = parseForm(r.Schema); err == nil {
			err = q.Form.checkSecrets(r.Message)
		}
	case ModeURL:
		q.URL, err = parseURL(r.URL)
		if q.ID = r.ID; len(q.ID) > maxID {
			err = rule("its elicitationId is longer than %d bytes", maxID)
		}
	default:
		err = rule("its mode is neither form nor url")
	}
	if err != nil {
		return nil, err
	}
	return q, nil
}

// parseURL returns an address that people can be sent to. What is shown is what is opened.
func parseURL(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, rule("its url is longer than %d bytes", maxURL)
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Opaque != "" || visible.Text(text) != text || strings.ContainsAny(text, " \n\\") {
		return nil, rule("its url is no address of a page")
	}
	if u.User != nil {
		return nil, rule("its url holds a user name, behind which another host can hide")
	}
	host, err := idna.Lookup.ToASCII(u.Hostname())
	if addr, notIP := netip.ParseAddr(u.Hostname()); notIP == nil {
		host, err = addr.String(), nil
		if addr.Is6() {
			host = "[" + host + "]"
		}
	}
	if err != nil {
		return nil, rule("the host of its url is none")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return nil, rule("its url must begin with https")
	}
	if port := u.Port(); port != "" {
		host += ":" + port
	}
	u.Host = host
	return u, nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// oneLine is what stands in one line, so that it cannot look like the next one.
func oneLine(text string) string { return strings.Join(strings.Fields(visible.Text(text)), " ") }
