package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hako-run/hako/host/broker/outbound"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/internal/visible"
)

const (
	// tokenTime bounds one request to an authorization server.
	tokenTime = 30 * time.Second
	// maxReply is the most that is read of its answer, in bytes.
	maxReply = 64 << 10
)

// newClient sends what must arrive at most once: on a new connection of HTTP/1.1, so that net/http has no reason to send anything
// again, and without following redirects. proxy returns the one to go through, or nil.
func newClient(proxy func() *url.URL) *http.Client {
	var once http.Protocols
	once.SetHTTP1(true)
	transport := outbound.NewTransport(nil)
	transport.DisableKeepAlives, transport.Protocols, transport.MaxResponseHeaderBytes = true, &once, maxReply
	outbound.UseProxy(transport, outbound.Through(proxy))
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// tokenReply is a token (RFC 6749, section 5.1).
type tokenReply struct {
	AccessToken  string   `json:"access_token"`
	TokenType    string   `json:"token_type"`
	ExpiresIn    flexible `json:"expires_in"`
	RefreshToken string   `json:"refresh_token"`
	// CreatedAt is freee's: when the token was issued, in seconds since 1970.
	CreatedAt flexible `json:"created_at"`

	// all members, for those that are public.
	all map[string]json.RawMessage
}

// flexible is a number that some servers write as a text. What is neither is 0.
type flexible int64

func (f *flexible) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err == nil && n > 0 && n < 1<<53 {
		*f = flexible(n)
	}
	return nil
}

// tokenError is a request for a token that gave none.
type tokenError struct {
	// outcome is one of the outcomes of a Renewal.
	outcome string
	// code and description are the server's (RFC 6749, section 5.2), if it answered so.
	code, description string
	status            int
	// skew is how far the server's clock is ahead of ours, if the answer says.
	skew time.Duration
	err  error
}

func (e *tokenError) Error() string {
	switch {
	case e.outcome == Unreachable:
		return "the authorization server cannot be reached: " + e.err.Error()
	case e.outcome == Lost:
		return "the answer of the authorization server did not arrive: " + e.err.Error()
	case e.code == "":
		return fmt.Sprintf("the authorization server answered with status %d", e.status)
	case e.description == "":
		return fmt.Sprintf("the authorization server answered %s", e.code)
	}
	return fmt.Sprintf("the authorization server answered %s (%s)", e.code, e.description)
}

func (e *tokenError) Unwrap() error { return e.err }

// ask asks for a token, once. Every error is a *tokenError. An answer that is no token is lost: the server may well have made one.
func (b *Broker) ask(ctx context.Context, address string, form url.Values) (*tokenReply, error) {
	answer, err := b.post(ctx, address, form)
	if err != nil {
		return nil, err
	}
	reply := new(tokenReply)
	if errors.Join(strictjson.Unmarshal(answer, reply), strictjson.Unmarshal(answer, &reply.all)) != nil {
		err = errors.New("it is not the JSON of RFC 6749")
	} else {
		err = reply.check()
	}
	if err != nil {
		return nil, &tokenError{outcome: Lost, err: err}
	}
	return reply, nil
}

// post sends a form to an authorization server, once, and returns the body of its answer. Every error is a *tokenError: an answer that
// says that it is one is an error too. Values of the form are not in it.
func (b *Broker) post(ctx context.Context, address string, form url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	outcome := Unreachable
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { outcome = Lost }})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, &tokenError{outcome: Unreachable, err: err}
	}
	request.GetBody = nil // cannot be sent again
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	response, err := b.client.Do(request)
	if err != nil {
		return nil, &tokenError{outcome: outcome, err: withoutURL(err)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	if err != nil && response.StatusCode == http.StatusOK {
		return nil, &tokenError{outcome: Lost, err: err}
	}
	if err := refusal(response, body, form); err != nil {
		return nil, err
	}
	return body, nil
}

// withoutURL takes the URL off, which says nothing to whoever reads it.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// refusal is the error that a complete answer means, or nil.
func refusal(response *http.Response, body []byte, sent url.Values) error {
	var said struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(body, &said) // what is no JSON says nothing
	if response.StatusCode == http.StatusOK && said.Error == "" {
		return nil
	}
	failure := &tokenError{outcome: Refused, code: clean(said.Error, sent), description: clean(said.Description, sent),
		status: response.StatusCode, skew: skew(response.Header)}
	if said.Error == "invalid_grant" {
		failure.outcome = Revoked
	}
	return failure
}

// check holds that the reply is a token that can be sent.
func (r *tokenReply) check() error {
	if r.TokenType != "" && !strings.EqualFold(r.TokenType, "bearer") {
		return fmt.Errorf("the token is of the type %.20q, and only bearer tokens can be sent", r.TokenType)
	}
	if err := checkToken(r.AccessToken); err != nil {
		return fmt.Errorf("the access token: %w", err)
	}
	return nil
}

// clean makes the words of a server fit for a log: short, on one line, with hidden characters marked and without what was sent to it.
func clean(text string, sent url.Values) string {
	for _, values := range sent {
		for _, value := range values {
			if len(value) >= minSecret {
				text = strings.ReplaceAll(text, value, "***")
			}
		}
	}
	text = strings.Join(strings.Fields(visible.Text(text)), " ")
	if runes := []rune(text); len(runes) > 200 {
		text = string(runes[:200]) + "…"
	}
	return text
}

// skew is how far the server's clock is ahead of ours; zero if it does not say.
func skew(h http.Header) time.Duration {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return time.Until(date).Round(time.Second)
}

// issued is when the token was made. The server's own statement counts only as far as our clock can follow it: not for the future,
// and not so far back that the token would have expired already.
func (r *tokenReply) issued(now time.Time) time.Time {
	created := time.Unix(int64(r.CreatedAt), 0)
	if r.CreatedAt == 0 || created.After(now) || !created.Add(r.lifetime()).After(now) {
		return now
	}
	return created
}

func (r *tokenReply) lifetime() time.Duration {
	return time.Duration(min(r.ExpiresIn, 1<<31)) * time.Second
}

// expires is when the token expires; zero if the server does not say.
func (r *tokenReply) expires(now time.Time) time.Time {
	if r.ExpiresIn == 0 {
		return time.Time{}
	}
	return r.issued(now).Add(r.lifetime())
}

// facts returns the members that guests may know: texts and numbers, of at most 100 bytes.
func (r *tokenReply) facts(names []string) map[string]string {
	facts := map[string]string{}
	for _, name := range names {
		var text string
		var number json.Number
		if raw := r.all[name]; json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &number) == nil {
			text = number.String()
		}
		if text != "" && len(text) <= 100 {
			facts[name] = text
		}
	}
	return facts
}
