package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/secretscan"
	"github.com/hako-run/hako/pdk/abi"
)

// secretError says that something is not passed on because it holds a secret. It is the tool's failure to a model, which can act on it.
type secretError struct {
	name  string
	place secretscan.Place
	rules []string
}

func (e *secretError) Error() string {
	rules := strings.Join(e.rules, ", ")
	if e.place == secretscan.Arguments {
		return fmt.Sprintf("the arguments of %s hold what looks like a secret (%s), and so it was not called. Do not pass secrets to tools: the host holds credentials and applies them itself", e.name, rules)
	}
	return fmt.Sprintf("the answer of %s holds what looks like a secret (%s), and so it is withheld", e.name, rules)
}

// scanner is the one in force, or nil.
func (p *Pipeline) scanner() *secretscan.Scanner {
	if p.options.Scanner == nil {
		return nil
	}
	return p.options.Scanner()
}

// masked is what a client wrote, for records: without the secrets in it.
func (p *Pipeline) masked(text string) string {
	const shortest = 10 // of secrets that a rule finds
	if s := p.scanner(); s != nil && len(text) >= shortest {
		return s.Masked(text)
	}
	return text
}

// recordedCaller is the caller for records. What clients say of themselves and of a request may hold a secret.
func (p *Pipeline) recordedCaller(c *Caller) Caller {
	recorded := *c
	recorded.Client, recorded.ClientVersion, recorded.RequestID = p.masked(c.Client), p.masked(c.ClientVersion), p.masked(c.RequestID)
	return recorded
}

// scanArguments looks for secrets in what a caller passes on.
func (p *Pipeline) scanArguments(name string, arguments json.RawMessage, record *Record) (json.RawMessage, error) {
	s := p.scanner()
	if s == nil {
		return arguments, nil
	}
	masked, found := s.JSON(secretscan.Arguments, arguments)
	return masked, record.found(name, secretscan.Arguments, found)
}

// scanResult looks for secrets in an answer.
func (p *Pipeline) scanResult(name string, response *abi.Response, record *Record) error {
	s := p.scanner()
	if s == nil || response == nil {
		return nil
	}
	found := s.Texts(secretscan.Results, texts(response))
	if len(response.StructuredContent) > 0 {
		masked, more := s.JSON(secretscan.Results, response.StructuredContent)
		response.StructuredContent, found = masked, append(found, more...)
	}
	return record.found(name, secretscan.Results, found)
}

// texts are the texts of an answer that a model reads, those of one list after another.
func texts(r *abi.Response) (list []*string) {
	add := func(c *abi.Content) {
		if c.Type == abi.Text {
			list = append(list, &c.Text)
		}
		if c.Resource != nil {
			list = append(list, &c.Resource.Text)
		}
	}
	for i := range r.Content {
		add(&r.Content[i])
	}
	for i := range r.Contents {
		list = append(list, &r.Contents[i].Text)
	}
	for i := range r.Messages {
		add(&r.Messages[i].Content)
	}
	return list
}

// scanFailure masks secrets in the text of an error that the caller gets to see.
func (p *Pipeline) scanFailure(err error, record *Record) error {
	s := p.scanner()
	if s == nil || err == nil {
		return err
	}
	masked, found := s.Text(secretscan.Results, err.Error())
	_ = record.found("", secretscan.Results, found)
	if masked == err.Error() {
		return err
	}
	var wire *abi.Error
	if errors.As(err, &wire) {
		wire.Message = s.Masked(wire.Message)
	}
	return &maskedError{masked, err}
}

// scanProgress masks secrets in the messages of progress reports.
func (p *Pipeline) scanProgress(report func(abi.Progress)) func(abi.Progress) {
	s := p.scanner()
	if s == nil || report == nil {
		return report
	}
	return func(progress abi.Progress) {
		progress.Message, _ = s.Text(secretscan.Results, progress.Message)
		report(progress)
	}
}

// maskedError is an error with another text.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }

func (e *maskedError) Unwrap() error { return e.err }

// found notes what was found, and is an error if it is not to be passed on.
func (r *Record) found(name string, place secretscan.Place, found []secretscan.Finding) error {
	var refused []string
	for _, f := range found {
		if !slices.Contains(r.Findings, f) {
			r.Findings = append(r.Findings, f)
		}
		if f.Action == secretscan.Refuse && !slices.Contains(refused, f.Rule) {
			refused = append(refused, f.Rule)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &secretError{name, place, refused}
}

// hide keeps secrets from people who are asked about a call: what they have to judge is what it does with them.
func (p *Pipeline) hide(q *approval.Question) {
	if s := p.scanner(); s != nil {
		q.Hide(s.MaskedJSON(q.Arguments), s.Masked(q.Detail))
	}
}
