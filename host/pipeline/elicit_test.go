package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/secretscan"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// elicitingBackend is a backend that asks questions.
type elicitingBackend func(ctx context.Context,
	ask func(context.Context, *elicitation.Request) (elicitation.Answer, error)) string

func (c elicitingBackend) Call(ctx context.Context, invocation *catalog.Invocation) (*abi.Response, error) {
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: c(ctx, invocation.Elicit)}}}, ctx.Err()
}

type ledger struct{ events []*audit.Event }

func (l *ledger) Ready() error { return nil }
func (l *ledger) Append(_ context.Context, event *audit.Event) error {
	l.events = append(l.events, event)
	return nil
}
func (l *ledger) Digest([]byte) string { return "digest" }

// askedCall calls a backend that asks, and returns the text of the result and the audit event.
func askedCall(t *testing.T, backend elicitingBackend,
	fill func(context.Context, *elicitation.Question) (elicitation.Answer, error)) (string, *audit.Event, error) {
	t.Helper()
	c, log := new(catalog.Catalog), new(ledger)
	m := &manifest.Manifest{Name: "crm", Version: "1.0.0", Description: manifest.Text{"en": "x"},
		Tools: []manifest.Tool{{
			Name: "find", Description: manifest.Text{"en": "x"}, InputSchema: json.RawMessage(`{"type":"object"}`),
		}}}
	if err := errors.Join(m.Validate(), c.Put(catalog.Source{Name: "crm", Upstream: true, Backend: backend},
		m)); err != nil {
		t.Fatal(err)
	}
	scanner, err := secretscan.New(&secretscan.Rules{Arguments: secretscan.Refuse})
	if err != nil {
		t.Fatal(err)
	}
	p := New(c, &Options{Governance: Governance{Audit: log, Scanner: func() *secretscan.Scanner { return scanner }}})
	result, err := p.Call(t.Context(), &Call{Request: abi.Request{Method: abi.CallTool, Name: "find"},
		Prompter: approval.Prompter{Fill: fill}})
	if err != nil {
		return "", log.events[0], err
	}
	return result.Response.Content[0].Text, log.events[0], nil
}

func nameForm(message string) *elicitation.Request {
	return &elicitation.Request{Message: message,
		Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)}
}

func outcomes(e *audit.Event) (list []string) {
	for _, a := range e.Elicited {
		list = append(list, a.Mode+" "+a.Outcome)
	}
	return list
}

func TestElicit(t *testing.T) {
	t.Parallel()
	answer := func(action string, content map[string]any, err error) func(context.Context,
		*elicitation.Question) (elicitation.Answer, error) {
		return func(context.Context, *elicitation.Question) (elicitation.Answer, error) {
			return elicitation.Answer{Action: action, Content: content}, err
		}
	}
	once := func(r *elicitation.Request) elicitingBackend {
		return func(ctx context.Context, ask func(context.Context, *elicitation.Request) (elicitation.Answer,
			error)) string {
			a, err := ask(ctx, r)
			return fmt.Sprintf("%s%v%v", a.Action, a.Content, err)
		}
	}
	// Made up, in parts so that no scanner takes this file for a leak.
	key := "ghp" + "_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3gH5"
	for name, test := range map[string]struct {
		request *elicitation.Request
		fill    func(context.Context, *elicitation.Question) (elicitation.Answer, error)
		want    string
		outcome string
	}{
		"accepted": {nameForm("who?"), answer("accept", map[string]any{"name": "Aki"}, nil),
			"acceptmap[name:Aki]<nil>", "form accept"},
		"declined": {nameForm("who?"), answer("decline", map[string]any{"name": "Aki"}, nil),
			"declinemap[]<nil>", "form decline"},
		"cancelled":      {nameForm("who?"), answer("cancel", nil, nil), "cancelmap[]<nil>", "form cancel"},
		"something else": {nameForm("who?"), answer("", nil, nil), "cancelmap[]<nil>", "form cancel"},
		"a page": {&elicitation.Request{URL: "https://example.com/"},
			answer("accept", map[string]any{"x": 1}, nil), "acceptmap[]<nil>", "url accept"},
		"does not fit": {nameForm("who?"), answer("accept", map[string]any{"name": 1.0}, nil),
			"cancelmap[]the answer does not match", "form invalid"},
		"a secret in it": {nameForm("who?"), answer("accept", map[string]any{"name": key}, nil),
			"cancelmap[]the answer contains what looks like a secret", "form invalid"},
		"cannot be shown": {nameForm("who?"), answer("", nil, errors.New("x")), "declinemap[]the caller's frontend cannot ask anybody",
			"form nobody"},
		"nobody there": {nameForm("who?"), nil, "declinemap[]the caller's frontend cannot ask anybody", "form nobody"},
		"breaks the rules": {&elicitation.Request{URL: "ftp://example.com"}, answer("accept", nil, nil),
			"cancelmap[]its url must begin", " refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, event, err := askedCall(t, once(test.request), test.fill)
			if err != nil || !strings.HasPrefix(text, test.want) || strings.Contains(text, key) {
				t.Errorf("%q, %v", text, err)
			}
			if got := strings.Join(outcomes(event), ","); test.outcome != "" && got != test.outcome {
				t.Errorf("recorded %q", got)
			}
			recorded, err := json.Marshal(event)
			if err != nil || strings.Contains(string(recorded), "who?") || strings.Contains(string(recorded), "Aki") ||
				strings.Contains(string(recorded), key) {
				t.Errorf("recorded: %s", recorded)
			}
		})
	}
}

// TestElicitLimit checks that a call may ask ten questions and that a declined question is not asked again.
func TestElicitLimit(t *testing.T) {
	t.Parallel()
	shown := 0
	text, event, err := askedCall(t, func(ctx context.Context,
		ask func(context.Context, *elicitation.Request) (elicitation.Answer, error)) string {
		last := ""
		for i := range 20 {
			a, err := ask(ctx, nameForm(fmt.Sprint("question ", i/2)))
			last = fmt.Sprint(a.Action, err)
		}
		return last
	}, func(context.Context, *elicitation.Question) (elicitation.Answer, error) {
		shown++
		return elicitation.Answer{Action: elicitation.Decline}, nil
	})
	if err != nil || shown != 5 || len(event.Elicited) != 5 ||
		text != "cancelit has asked more than 10 questions in one call" {
		t.Errorf("%q, %d shown, %v, %v", text, shown, outcomes(event), err)
	}
}

// TestElicitTimeout checks that all questions of a call together wait no longer than an approval, and that an
// unanswered one is canceled.
func TestElicitTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		text, event, err := askedCall(t, func(ctx context.Context,
			ask func(context.Context, *elicitation.Request) (elicitation.Answer, error)) string {
			said := ""
			for i := range 3 {
				a, err := ask(ctx, nameForm(fmt.Sprint(i)))
				said += fmt.Sprint(a.Action, " ", err, "; ")
			}
			return said
		}, func(ctx context.Context, q *elicitation.Question) (elicitation.Answer, error) {
			if q.Message == "0" {
				time.Sleep(2 * time.Minute)
				return elicitation.Answer{Action: elicitation.Accept}, nil
			}
			<-ctx.Done()
			return elicitation.Answer{}, ctx.Err()
		})
		want := "accept <nil>; cancel nobody answered in time; cancel nobody answered in time; "
		if waited := time.Since(began); err != nil || text != want || waited != defaultElicitTimeout ||
			strings.Join(outcomes(event), ",") != "form accept,form expired,form expired" {
			t.Errorf("%q, %v, %v, %v", text, waited, outcomes(event), err)
		}
	})
}
