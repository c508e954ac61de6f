package console

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/policy/policytry"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/pdk/locale"
)

// Policy is the operator's policy. The console shows it and changes nothing.
type Policy interface {
	// Current is the policy in force. Err is the error of its file, if another content than the file's is in force.
	Current() *policy.Policy
	Err() error
	// File is the path of the policy file. Text reads it; it is empty without a file.
	File() string
	Text() (string, error)
	// Site has the names to which a policy can refer.
	Site() *policy.Site
	// Resolve checks the names of a caller and adds what the configuration has for its token.
	Resolve(*policy.Caller) error
}

const (
	// maxPolicyText bounds a policy to try, in bytes of the request.
	maxPolicyText = 2 << 20
	// maxColumns bounds the callers in a table.
	maxColumns = 6
	// maxTryHours bounds the time of a trial, a week.
	maxTryHours = 7 * 24
)

var faultNoPolicy = &fault{code: codeUnavailable, text: manifest.Text{
	"en": "The policy cannot be shown here.", "ja": "ここではポリシーを表示できません。",
}}

// policyOf returns the policy, or a fault if there is none.
func (c *Console) policyOf() (Policy, error) {
	if c.options.Policy == nil {
		return nil, faultNoPolicy
	}
	return c.options.Policy, nil
}

// policyJSON is the policy in force.
type policyJSON struct {
	File    string        `json:"file"`
	Broken  string        `json:"broken,omitempty"`
	Default policy.Action `json:"default"`
	Rules   []*ruleJSON   `json:"rules"`
	// Since is the time at which counting began. Other counts the calls that no rule of the file decided.
	Since time.Time           `json:"since"`
	Other int                 `json:"other"`
	Names map[string][]string `json:"names"`
}

// ruleJSON is a rule. Matches has the fields that restrict it.
type ruleJSON struct {
	Name      string        `json:"name"`
	Action    policy.Action `json:"action"`
	Line      int           `json:"line"`
	Matches   []matchJSON   `json:"matches"`
	When      string        `json:"when,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	Approvers string        `json:"approvers,omitempty"`
	Remember  string        `json:"remember,omitempty"`
	Decided   int           `json:"decided"`
}

type matchJSON struct {
	Field  string   `json:"field"`
	Values []string `json:"values"`
}

func newRuleJSON(r *policy.Rule, language string) *ruleJSON {
	shown := &ruleJSON{Name: r.Name, Action: r.Action, Line: r.Line, Matches: []matchJSON{}, When: r.When,
		Reason: r.Reason.In(language), Approvers: r.Approvers.In(language)}
	if r.Remember > 0 {
		shown.Remember = r.Remember.String()
	}
	for _, m := range []matchJSON{
		{"tools", r.Tools}, {"via", r.Via}, {"frontends", r.Frontends}, {"tenants", r.Tenants}, {"users", r.Users},
		{"groups", r.Groups}, {"tokens", r.Tokens}, {"missingScopes", r.MissingScopes},
	} {
		if len(m.Values) > 0 {
			shown.Matches = append(shown.Matches, m)
		}
	}
	return shown
}

// policy shows the rules in force.
func (c *Console) policy(q *request) (any, error) {
	about, err := c.policyOf()
	if err != nil {
		return nil, err
	}
	p, site := about.Current(), about.Site()
	shown := &policyJSON{File: about.File(), Default: p.Default(), Rules: []*ruleJSON{}, Since: c.started.UTC(),
		Names: map[string][]string{"frontends": site.Frontends, "tenants": append([]string{}, site.Tenants...),
			"tokens": append([]string{}, site.Tokens...), "groups": slices.Sorted(maps.Keys(p.Groups()))}}
	if err := about.Err(); err != nil {
		shown.Broken = err.Error()
	}
	decided := c.options.Traffic.decisions()
	for _, rule := range p.Rules() {
		item := newRuleJSON(rule, q.language)
		item.Decided = decided[rule.Name]
		shown.Rules = append(shown.Rules, item)
	}
	shown.Other = decided[policy.RuleDefault] + decided[policy.RuleChat]
	return shown, nil
}

// columnJSON is a kind of caller in the table: "anyone" without a name, or a "group", "user" or "token" with one.
type columnJSON struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
}

// caller returns a caller of this kind at a frontend.
func (c columnJSON) caller(frontend string) policy.Caller {
	caller := policy.Caller{Frontend: frontend}
	switch c.Kind {
	case "group":
		caller.Groups = []string{c.Name}
	case "user":
		caller.User = c.Name
	case "token":
		caller.Token = c.Name
	}
	return caller
}

// columns returns the kinds of callers that a policy distinguishes, and the tokens of the site.
func columns(p *policy.Policy, site *policy.Site) []columnJSON {
	names := map[columnJSON]bool{}
	add := func(kind string, list []string) {
		for _, name := range list {
			names[columnJSON{kind, name}] = true
		}
	}
	add("group", slices.Collect(maps.Keys(p.Groups())))
	add("token", site.Tokens)
	for _, rule := range p.Rules() {
		add("group", rule.Groups)
		add("user", rule.Users)
	}
	sorted := slices.SortedFunc(maps.Keys(names), func(a, b columnJSON) int {
		return strings.Compare(a.Kind+" "+a.Name, b.Kind+" "+b.Name)
	})
	return append([]columnJSON{{Kind: "anyone"}}, sorted...)
}

// tableJSON is a page of what callers may do with tools.
type tableJSON struct {
	listJSON[*tableRow]
	Columns []columnJSON `json:"columns"`
	// More counts the callers that match the filter and are not among Columns.
	More int `json:"more"`
}

// tableRow has a cell for each column.
type tableRow struct {
	Tool   string      `json:"tool"`
	Plugin string      `json:"plugin"`
	Cells  []tableCell `json:"cells"`
}

type tableCell struct {
	Permission string   `json:"permission"`
	Rules      []string `json:"rules"`
}

// policyTable shows who may call what: the tools and callers that match the filters.
func (c *Console) policyTable(q *request) (any, error) {
	about, err := c.policyOf()
	if err != nil {
		return nil, err
	}
	frontend := q.param("frontend")
	if frontend == "" {
		frontend = pipeline.FrontendHTTP
	}
	p, table := about.Current(), &tableJSON{Columns: []columnJSON{}}
	var callers []policy.Caller
	search := strings.ToLower(q.param("caller"))
	for _, column := range columns(p, about.Site()) {
		if !contains(search, column.Name) {
			continue
		}
		if len(table.Columns) == maxColumns {
			table.More++
			continue
		}
		caller := column.caller(frontend)
		if err := about.Resolve(&caller); err != nil {
			return nil, invalid("%v", err)
		}
		table.Columns, callers = append(table.Columns, column), append(callers, caller)
	}
	rows := []*tableRow{}
	tool := strings.ToLower(q.param("tool"))
	for _, t := range c.options.Host.Catalog().View().Tools {
		if contains(tool, t.Name, t.Source.Name) {
			rows = append(rows, &tableRow{Tool: t.Name, Plugin: t.Source.Name})
		}
	}
	items, err := page(q, rows, func(r *tableRow) string { return r.Tool })
	if err != nil {
		return nil, err
	}
	table.listJSON = *items
	view := c.options.Host.Catalog().View()
	for _, row := range table.Items {
		t, ok := view.Tool(row.Tool)
		if !ok {
			continue // it went meanwhile
		}
		for i := range callers {
			may := p.PermissionOf(callers[i].Call(t.Name, t.Source.Name, t.Hints()), q.language)
			cell := tableCell{Permission: may.Permission}
			for _, prospect := range may.Prospects {
				cell.Rules = append(cell.Rules, prospect.Rule)
			}
			row.Cells = append(row.Cells, cell)
		}
	}
	return table, nil
}

// explainPolicy explains what the policy decides about a call, as hako policy explain does.
func (c *Console) explainPolicy(q *request) (any, error) {
	about, err := c.policyOf()
	if err != nil {
		return nil, err
	}
	var body struct {
		Tool      string
		Caller    policy.Caller
		Arguments json.RawMessage
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	if len(body.Arguments) > 0 && body.Arguments[0] != '{' {
		return nil, invalid("the arguments of a tool must be a JSON object")
	}
	if err := about.Resolve(&body.Caller); err != nil {
		return nil, invalid("%v", err)
	}
	t, ok := c.options.Host.Catalog().View().Tool(body.Tool)
	if !ok {
		return nil, notFound("tool", body.Tool)
	}
	call := body.Caller.Call(t.Name, t.Source.Name, t.Hints())
	call.Arguments = body.Arguments
	return policy.NewExplanation(about.Current(), call, q.language), nil
}

// policyText is the text of the policy file, to begin a change with.
func (c *Console) policyText(*request) (any, error) {
	about, err := c.policyOf()
	if err != nil {
		return nil, err
	}
	text, err := about.Text()
	if err != nil {
		return nil, &fault{code: codeUnavailable, text: said("%v", err)}
	}
	return map[string]string{"text": text}, nil
}

// trialJSON is the result of a trial. Without a Result, Problems say why the text is not a policy.
type trialJSON struct {
	Problems []problemJSON     `json:"problems"`
	Warnings []problemJSON     `json:"warnings"`
	Omitted  int               `json:"omitted,omitempty"`
	Result   *policytry.Result `json:"result,omitempty"`
	// NoLog reports whether there is no audit log to try the policy on.
	NoLog bool `json:"noLog,omitempty"`
}

type problemJSON struct {
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`
}

// tryPolicy checks a text as a policy and tries it on the calls of the audit log. It puts nothing in force.
func (c *Console) tryPolicy(q *request) (any, error) {
	about, err := c.policyOf()
	if err != nil {
		return nil, err
	}
	var body struct {
		Text  string
		Hours int
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	if body.Hours < 1 || body.Hours > maxTryHours {
		return nil, invalid("hours must be a number from 1 to %d", maxTryHours)
	}
	leave, err := c.queue(q)
	if err != nil {
		return nil, err
	}
	defer leave()
	answer := &trialJSON{Problems: []problemJSON{}, Warnings: []problemJSON{}}
	next, err := policy.Parse([]byte(body.Text))
	if err != nil {
		answer.Problems, answer.Omitted = problemsOf(err, q.language)
		return answer, nil
	}
	if warnings := policy.Lint([]byte(body.Text), about.Site()); warnings != nil {
		answer.Warnings, answer.Omitted = problemsOf(warnings, q.language)
	}
	if c.options.Journal == nil {
		answer.NoLog = true
		return answer, nil
	}
	answer.Result, err = c.replay(q.Context(), next, about.Current(), time.Duration(body.Hours)*time.Hour)
	return answer, err
}

// replay decides about the calls of the last time again.
func (c *Console) replay(ctx context.Context, next, now *policy.Policy, last time.Duration) (*policytry.Result, error) {
	view := c.options.Host.Catalog().View()
	hints := func(name string) (manifest.Annotations, bool) {
		t, ok := view.Tool(name)
		if !ok {
			return manifest.Annotations{}, false
		}
		return t.Hints(), true
	}
	return policytry.Run(ctx, c.options.Journal, c.now().Add(-last), next, now, hints)
}

// problemsOf lists the problems of a policy in a language, and how many more there are.
func problemsOf(err error, language string) (list []problemJSON, omitted int) {
	var e *strictyaml.Error
	if !errors.As(err, &e) {
		return []problemJSON{{Text: locale.In(err, language)}}, 0
	}
	for _, p := range e.Problems {
		place := problemJSON{Line: p.Line, Column: p.Column}
		p.Line, p.Column = 0, 0
		place.Text = p.In(language)
		list = append(list, place)
	}
	return list, e.Omitted
}
