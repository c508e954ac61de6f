// Package elicitation validates questions that servers put to people during a call, and people's answers (MCP
// 2025-11-25 and 2026-07-28, elicitation). A question has a form or a URL to visit.
//
// Questions are untrusted. Parse accepts what the specification allows, within limits, and returns a Question.
// Question.Text, which is shown to people, names the server that asks. Form.Check validates an answer before it is
// sent.
package elicitation

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"

	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/visible"
)

// Modes of a Question.
const (
	ModeForm = "form"
	ModeURL  = "url"
)

// Actions of an Answer.
const (
	Accept  = "accept"
	Decline = "decline" // refused
	Cancel  = "cancel"  // dismissed, or nobody answered
)

// Request is a server's question before validation.
type Request struct {
	// Mode is ModeForm or ModeURL. Empty is ModeForm, or ModeURL where there is a URL.
	Mode, Message string
	// Schema is the schema of a form. URL is the address to visit, and ID the server's name of the interaction there.
	Schema  json.RawMessage
	URL, ID string
}

// Question is a validated question. It is immutable.
type Question struct {
	// Server is the server that asks, and Tool the called tool's name in the catalog. Parse leaves them empty.
	Server, Tool string
	// Message is the server's message, with control characters made visible.
	Message string
	// Form is the form to fill in. It is nil in ModeURL.
	Form *Form
	// URL is the address to visit, with its host in ASCII, and ID the server's name of the interaction there.
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

// Request returns the question as Parse accepts it, without Server and Tool.
func (q *Question) Request() *Request {
	r := &Request{Mode: q.Mode(), Message: q.Message, ID: q.ID}
	if q.Form != nil {
		r.Schema = q.Form.Schema()
	} else {
		r.URL = q.URL.String()
	}
	return r
}

// Answer is a person's answer. Content has the values of an accepted form by the names of its fields.
type Answer struct {
	Action  string
	Content map[string]any
}

// RuleError is the rule that a question breaks, so that nobody is asked. It quotes nothing of the question but field
// names.
type RuleError struct{ Rule string }

func (e *RuleError) Error() string { return e.Rule }

func rule(format string, args ...any) error { return &RuleError{fmt.Sprintf(format, args...)} }

var (
	// ErrNobody means that there is nobody to answer.
	ErrNobody = errors.New("the caller's frontend cannot ask anybody")
	// ErrMisfit means that an answer does not match the form.
	ErrMisfit = errors.New("the answer does not match the form and was not forwarded")
)

// Limits of a question, in bytes unless stated otherwise.
const (
	// Limits of texts count the bytes that are shown and forwarded: making a character visible lengthens it.
	maxMessage = 4 << 10
	maxSchema  = 64 << 10
	maxURL     = 2 << 10
	maxID      = 256
)

// Parse validates a question. It fails with a *RuleError for an unknown mode, an exceeded limit, a schema that does not
// consist of flat fields (Form), a form that asks for a secret, or a URL that has a user name or is neither https nor
// http to a loopback address.
func Parse(r *Request) (*Question, error) {
	mode := r.Mode
	switch {
	case mode == "" && r.URL != "":
		mode = ModeURL
	case mode == "":
		mode = ModeForm
	}
	q := &Question{Message: visible.Text(r.Message)}
	if len(q.Message) > maxMessage {
		return nil, rule("its message is longer than %d bytes", maxMessage)
	}
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

// parseURL validates an address to which people are sent. The address shown is the address opened.
func parseURL(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, rule("its url is longer than %d bytes", maxURL)
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Opaque != "" || visible.Text(text) != text ||
		strings.ContainsAny(text, " \n\\") {
		return nil, rule("its url is not the URL of a page")
	}
	if u.User != nil {
		return nil, rule("its url has a user name, which can disguise another host")
	}
	host, err := idna.Lookup.ToASCII(u.Hostname())
	if addr, notIP := netip.ParseAddr(u.Hostname()); notIP == nil {
		host, err = addr.String(), nil
		if addr.Is6() {
			host = "[" + host + "]"
		}
	}
	if err != nil {
		return nil, rule("its url has no valid host")
	}
	if !address.IsConfidential(u) {
		return nil, rule("its url must begin with https")
	}
	if port := u.Port(); port != "" {
		host += ":" + port
	}
	if u.Host = host; len(u.String()) > maxURL {
		return nil, rule("its url is longer than %d bytes", maxURL)
	}
	return u, nil
}

// oneLine returns text on one line, so that it cannot imitate another line.
func oneLine(text string) string { return strings.Join(strings.Fields(visible.Text(text)), " ") }
