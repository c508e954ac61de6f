package httpbroker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/hako-run/hako/internal/strictjson"
)

// Limits of ParseRecordings.
const (
	maxRecordings = 32 << 20 // bytes
	maxExchanges  = 10_000
)

// Recordings are exchanges that answer requests without a network. docs/recordings.md describes their JSON.
// ParseRecordings reads them. To create them, collect the exchanges of Options.Record and encode them with
// encoding/json.
type Recordings struct {
	// Note describes their origin, for people.
	Note string `json:"note,omitempty"`
	// Clock is the time that guests see during the replay. Zero means the real time.
	Clock     time.Time  `json:"clock,omitzero"`
	Exchanges []Exchange `json:"exchanges"`
}

// Exchange is one request and its response.
type Exchange struct {
	Request  RecordedRequest  `json:"request"`
	Response RecordedResponse `json:"response"`
}

// RecordedRequest describes the requests that an exchange answers. The order of query parameters is ignored.
type RecordedRequest struct {
	Method string `json:"method"`
	URL    string `json:"url"`
	// Body, if not empty, must equal the request's body. JSON bodies are compared as JSON.
	Body string `json:"body,omitempty"`
}

// RecordedResponse is a decompressed response. At most one of Body, for text, and BodyBase64 is set.
type RecordedResponse struct {
	Status     int            `json:"status"`
	Headers    RecordedHeader `json:"headers,omitempty"`
	Body       string         `json:"body,omitempty"`
	BodyBase64 []byte         `json:"bodyBase64,omitempty"`
}

// RecordedHeader is an http.Header. In JSON a single value is a string.
type RecordedHeader map[string][]string

// MarshalJSON writes single values as strings, several as arrays.
func (h RecordedHeader) MarshalJSON() ([]byte, error) {
	out := make(map[string]any, len(h))
	for name, values := range h {
		out[name] = values
		if len(values) == 1 {
			out[name] = values[0]
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads strings and arrays of strings.
func (h *RecordedHeader) UnmarshalJSON(data []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*h = make(RecordedHeader, len(raw))
	for name, value := range raw {
		var one string
		if json.Unmarshal(value, &one) == nil {
			(*h)[name] = []string{one}
			continue
		}
		var several []string
		if err := json.Unmarshal(value, &several); err != nil {
			return fmt.Errorf("header %q: neither a string nor an array of strings", name)
		}
		(*h)[name] = several
	}
	return nil
}

// ParseRecordings parses recordings strictly. It returns an error, with the position, for an unknown key, for more than
// 32 MiB or 10,000 exchanges, and for an impossible exchange.
func ParseRecordings(data []byte) (*Recordings, error) {
	if len(data) > maxRecordings {
		return nil, fmt.Errorf("recordings: %d bytes, more than the limit of %d", len(data), maxRecordings)
	}
	rec := new(Recordings)
	if err := strictjson.UnmarshalKnown(data, rec); err != nil {
		return nil, fmt.Errorf("recordings: %w", err)
	}
	if _, err := rec.index(); err != nil {
		return nil, err
	}
	return rec, nil
}

// recorded maps request keys to their exchanges, in order.
type recorded map[string][]*Exchange

// index validates the recordings and indexes them by request.
func (rec *Recordings) index() (recorded, error) {
	if len(rec.Exchanges) > maxExchanges {
		return nil, fmt.Errorf("recordings: %d exchanges, more than the limit of %d", len(rec.Exchanges), maxExchanges)
	}
	byKey := recorded{}
	for i := range rec.Exchanges {
		x := &rec.Exchanges[i]
		t, err := x.check()
		if err != nil {
			return nil, fmt.Errorf("recordings: exchange %d: %w", i, err)
		}
		key := recordingKey(x.Request.Method, &t)
		byKey[key] = append(byKey[key], x)
	}
	return byKey, nil
}

func (x *Exchange) check() (target, error) {
	t, err := parseTarget(x.Request.URL)
	if err != nil {
		return t, err
	}
	if m := x.Request.Method; !httpguts.ValidHeaderFieldName(m) || m != strings.ToUpper(m) {
		return t, fmt.Errorf("method %q is not an HTTP method in upper case", m)
	}
	if s := x.Response.Status; s < 200 || s > 599 {
		return t, fmt.Errorf("status %d is not between 200 and 599", s)
	}
	for name, values := range x.Response.Headers {
		if !httpguts.ValidHeaderFieldName(name) {
			return t, fmt.Errorf("%q is not a valid header name", name)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return t, fmt.Errorf("the value of header %s has control characters", name)
			}
		}
	}
	if x.Response.Body != "" && x.Response.BodyBase64 != nil {
		return t, errors.New("body and bodyBase64 are both set")
	}
	return t, nil
}

// body returns the recorded body.
func (p *RecordedResponse) body() []byte {
	if p.BodyBase64 != nil {
		return p.BodyBase64
	}
	return []byte(p.Body)
}

// setBody sets Body or BodyBase64.
func (p *RecordedResponse) setBody(body []byte) {
	if utf8.Valid(body) {
		p.Body = string(body)
	} else {
		p.BodyBase64 = body
	}
}

// header returns the recorded headers with canonical names.
func (p *RecordedResponse) header() http.Header {
	h := http.Header{}
	for name, values := range p.Headers {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	return h
}
