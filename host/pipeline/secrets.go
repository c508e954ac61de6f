package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/secretscan"
	"github.com/hako-run/hako/pdk/abi"
)

// secretError means that arguments or a result are withheld because they contain a secret. To a model it is the tool's
// error.
type secretError struct {
	name  string
	place secretscan.Place
	rules []string
}

func (e *secretError) Error() string {
	rules := strings.Join(e.rules, ", ")
	if e.place == secretscan.Arguments {
		return fmt.Sprintf("the arguments of %s contain what looks like a secret (%s), so it was not called. "+
			"Do not pass secrets to tools: the host stores credentials and applies them itself", e.name, rules)
	}
	return fmt.Sprintf("the result of %s contains what looks like a secret (%s), so it is withheld", e.name, rules)
}

// scanner returns the current scanner, or nil.
func (p *Pipeline) scanner() *secretscan.Scanner {
	if p.options.Scanner == nil {
		return nil
	}
	return p.options.Scanner()
}

// maskSecrets masks secrets in text of a client, for records.
func (p *Pipeline) maskSecrets(text string) string {
	const shortest = 10 // length of a secret that a rule finds
	if s := p.scanner(); s != nil && len(text) >= shortest {
		return s.Masked(text)
	}
	return text
}

// recordedCaller returns the caller for records, with secrets masked in the client's claims.
func (p *Pipeline) recordedCaller(c *Caller) Caller {
	recorded := *c
	recorded.Toolset = p.toolsetName(c)
	recorded.SessionSecret = ""
	recorded.Client = p.maskSecrets(c.Client)
	recorded.ClientVersion = p.maskSecrets(c.ClientVersion)
	recorded.RequestID = p.maskSecrets(c.RequestID)
	return recorded
}

// scanArguments masks secrets in the arguments of a call, or refuses them.
func (p *Pipeline) scanArguments(_ context.Context, c *served) (err error) {
	if len(c.request.Arguments) > 0 {
		c.request.Arguments, err = p.maskArguments(c.record.Name, c.request.Arguments, c.record)
	}
	return err
}

// maskArguments masks secrets in arguments, or refuses them.
func (p *Pipeline) maskArguments(name string, arguments json.RawMessage, record *openRecord) (json.RawMessage, error) {
	s := p.scanner()
	if s == nil {
		return arguments, nil
	}
	masked, found := s.JSON(secretscan.Arguments, arguments)
	return masked, record.addFindings(name, secretscan.Arguments, found)
}

// scanResult masks secrets in a response, or refuses it.
func (p *Pipeline) scanResult(_ context.Context, c *served) error {
	s, response := p.scanner(), c.response
	if s == nil {
		return nil
	}
	texts, labels := modelTexts(response)
	found := s.Texts(secretscan.Results, texts)
	for _, label := range labels {
		found = append(found, s.Texts(secretscan.Results, []*string{label})...)
	}
	for _, value := range jsonValues(response) {
		masked, more := s.JSON(secretscan.Results, *value)
		*value, found = masked, append(found, more...)
	}
	return c.record.addFindings(c.record.Name, secretscan.Results, found)
}

// jsonValues returns the values in JSON of a response that are not empty.
func jsonValues(r *abi.Response) (values []*json.RawMessage) {
	add := func(value *json.RawMessage) {
		if len(*value) > 0 {
			values = append(values, value)
		}
	}
	addContent := func(c *abi.Content) {
		if add(&c.Meta); c.Resource != nil {
			add(&c.Resource.Meta)
		}
	}
	add(&r.StructuredContent)
	add(&r.Meta)
	for i := range r.Content {
		addContent(&r.Content[i])
	}
	for i := range r.Contents {
		add(&r.Contents[i].Meta)
	}
	for i := range r.Messages {
		addContent(&r.Messages[i].Content)
	}
	return values
}

// modelTexts returns the texts of a response that a model reads, list by list, and the labels that stand beside them:
// names, descriptions, types and URIs.
func modelTexts(r *abi.Response) (texts, labels []*string) {
	add := func(c *abi.Content) {
		if c.Type == abi.Text {
			texts = append(texts, &c.Text)
		}
		labels = append(labels, &c.Name, &c.Title, &c.Description, &c.URI, &c.MIMEType)
		if a := c.Annotations; a != nil {
			labels = append(labels, &a.LastModified)
			for i := range a.Audience {
				labels = append(labels, &a.Audience[i])
			}
		}
		if c.Resource != nil {
			texts, labels = append(texts, &c.Resource.Text), append(labels, &c.Resource.URI, &c.Resource.MIMEType)
		}
	}
	for i := range r.Content {
		add(&r.Content[i])
	}
	for i := range r.Contents {
		texts, labels = append(texts, &r.Contents[i].Text), append(labels, &r.Contents[i].URI, &r.Contents[i].MIMEType)
	}
	labels = append(labels, &r.Description)
	for i := range r.Messages {
		add(&r.Messages[i].Content)
	}
	if r.Completion != nil {
		for i := range r.Completion.Values {
			labels = append(labels, &r.Completion.Values[i])
		}
	}
	return texts, labels
}

// scanFailure masks secrets in the text of an error for the caller.
func (p *Pipeline) scanFailure(err error, record *openRecord) error {
	s := p.scanner()
	if s == nil || err == nil {
		return err
	}
	masked, found := s.Text(secretscan.Results, err.Error())
	_ = record.addFindings("", secretscan.Results, found)
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

// addFindings records findings and returns an error if one of them is to be refused.
func (r *openRecord) addFindings(name string, place secretscan.Place, found []secretscan.Finding) error {
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

// hideSecrets masks secrets in a question: people can judge a call without them.
func (p *Pipeline) hideSecrets(q *approval.Question) {
	if s := p.scanner(); s != nil {
		q.Hide(s.MaskedJSON(q.Arguments), s.Masked(q.Detail))
	}
}
