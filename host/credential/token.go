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

	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/internal/cause"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/internal/visible"
)

const (
	// tokenTime is the timeout of a request to an authorization server.
	tokenTime = 30 * time.Second
	// maxReply limits the response, in bytes.
	maxReply = 64 << 10
)

// newClient returns a client for requests that must be sent at most once. It uses a new HTTP/1.1 connection for each
// request, so that net/http does not retry, and does not follow redirects. proxy returns the proxy URL or nil.
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
	// CreatedAt is the time of issue, in seconds since 1970, of freee.
	CreatedAt flexible `json:"created_at"`

	// all are all members, from which the public ones are selected.
	all map[string]json.RawMessage
}

// flexible is a number that some servers write as a string. Other values decode to 0.
type flexible int64

func (f *flexible) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err == nil && n > 0 && n < 1<<53 {
		*f = flexible(n)
	}
	return nil
}

// tokenError reports a failed token request.
type tokenError struct {
	// outcome is one of the outcomes of a Renewal.
	outcome string
	// code and description are from the server's error response (RFC 6749, section 5.2), if there is one.
	code, description string
	status            int
	// skew is the offset of the server's clock from ours, if known.
	skew time.Duration
	err  error
}

func (e *tokenError) Error() string {
	switch {
	case e.outcome == Unreachable:
		return "the authorization server cannot be reached: " + e.err.Error()
	case e.outcome == Lost:
		return "the authorization server's response did not arrive: " + e.err.Error()
	case e.code == "":
		return fmt.Sprintf("the authorization server answered with status %d", e.status)
	case e.description == "":
		return fmt.Sprintf("the authorization server answered %s", e.code)
	}
	return fmt.Sprintf("the authorization server answered %s (%s)", e.code, e.description)
}

func (e *tokenError) Unwrap() error { return e.err }

// ask sends a token request once. Every error is a *tokenError. An invalid response counts as Lost, because the server
// may have issued a token.
func (b *Broker) ask(ctx context.Context, address string, form url.Values) (*tokenReply, error) {
	answer, err := b.post(ctx, address, form)
	if err != nil {
		return nil, err
	}
	reply := new(tokenReply)
	if errors.Join(strictjson.Unmarshal(answer, reply), strictjson.Unmarshal(answer, &reply.all)) != nil {
		err = errors.New("it is not JSON as in RFC 6749")
	} else {
		err = reply.check()
	}
	if err != nil {
		return nil, &tokenError{outcome: Lost, err: err}
	}
	return reply, nil
}

// post sends a form to an authorization server once and returns the response body. Every error, including an error
// response, is a *tokenError, which contains no values of the form.
func (b *Broker) post(ctx context.Context, address string, form url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	outcome := Unreachable
	ctx = httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { outcome = Lost }})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, &tokenError{outcome: Unreachable, err: err}
	}
	request.GetBody = nil // prevents retries
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	response, err := b.client.Do(request)
	if err != nil {
		return nil, &tokenError{outcome: outcome, err: cause.WithoutURL(err)}
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

// refusal returns the error in a complete response, or nil.
func refusal(response *http.Response, body []byte, sent url.Values) error {
	var said struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(body, &said) // other bodies have no error code
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

// check checks that the reply contains a token that can be sent in a header.
func (r *tokenReply) check() error {
	if r.TokenType != "" && !strings.EqualFold(r.TokenType, "bearer") {
		return fmt.Errorf("the token has the type %.20q, but only bearer tokens are supported", r.TokenType)
	}
	if err := checkToken(r.AccessToken); err != nil {
		return fmt.Errorf("the access token: %w", err)
	}
	return nil
}

// clean prepares a server's text for a log: short, on one line, with hidden characters marked and without the values
// that were sent.
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

// skew returns the offset of the server's clock from ours, or zero if it is unknown.
func skew(h http.Header) time.Duration {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return time.Until(date).Round(time.Second)
}

// issued returns the time of issue. The server's own value is used only if it is not in the future, and not so old that
// the token would have expired.
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

// expires returns the expiry of the token, or zero if it is unknown.
func (r *tokenReply) expires(now time.Time) time.Time {
	if r.ExpiresIn == 0 {
		return time.Time{}
	}
	return r.issued(now).Add(r.lifetime())
}

// facts returns the members that guests may know: strings and numbers of at most 100 bytes.
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
