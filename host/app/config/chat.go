package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/internal/strictyaml"
)

// LLM configures the models.
type LLM struct {
	// Default names the model that is asked first. Then the others are asked in the order of Models. Empty means the
	// first of Models.
	Models  []llm.Spec
	Default string
	// Currency is the currency of the prices.
	Currency string
}

func (l *LLM) table() []setting {
	return []setting{
		{key: "llm.default", value: &l.Default},
		{key: "llm.currency", value: &l.Currency, fallback: "USD"},
	}
}

// Chat configures conversations with models.
type Chat struct {
	// Tools is false for plain chat.
	Tools bool
	// System is the system prompt.
	System string
	// Zone is the name of a time zone; empty means the machine's.
	Zone    string
	Retain  time.Duration
	Limits  chat.Limits
	Budgets chat.Budgets
}

func (c *Chat) table() []setting {
	budget := func(name string, b *chat.Budget) []setting {
		return []setting{
			{key: "chat.budget." + name + ".tokens", value: &b.Tokens},
			{key: "chat.budget." + name + ".cost", value: &b.Cost},
		}
	}
	return slices.Concat([]setting{
		{key: "chat.tools", value: &c.Tools, fallback: "true", variables: []string{"MCP_ENABLED"}},
		{key: "chat.system", value: &c.System},
		{key: "chat.zone", value: &c.Zone},
		{key: "chat.retain", value: &c.Retain},
		{key: "chat.limits.rounds", value: &c.Limits.Rounds, fallback: "10"},
		{key: "chat.limits.calls", value: &c.Limits.Calls, fallback: "16"},
		{key: "chat.limits.parallel", value: &c.Limits.Parallel, fallback: "8"},
		{key: "chat.limits.toolTimeout", value: &c.Limits.ToolTimeout, fallback: "30s"},
	}, budget("conversation", &c.Budgets.Conversation), budget("user", &c.Budgets.User), budget("day", &c.Budgets.Day))
}

// models reads what is below "llm.models". No values of secrets are in the file.
func (r reader) models(v strictyaml.Value) {
	v.List(func(_ int, v strictyaml.Value) {
		s := r.model(v)
		if err := s.Check(); err != nil {
			v.Problem("%v", err)
		}
		name := cmp.Or(s.Name, s.Model)
		if slices.ContainsFunc(r.config.LLM.Models,
			func(other llm.Spec) bool { return cmp.Or(other.Name, other.Model) == name }) {
			v.Problem("there is a model %q already: give one of them another name", name)
		}
		r.config.LLM.Models = append(r.config.LLM.Models, s)
		r.note("llm.models."+name, fmt.Sprintf("%s %s", s.Provider, s.Model), v)
	})
}

func (r reader) model(v strictyaml.Value) (s llm.Spec) {
	v.Object(strictyaml.Fields{
		"name":          strictyaml.String(&s.Name),
		"provider":      strictyaml.String(&s.Provider),
		"model":         strictyaml.String(&s.Model),
		"baseUrl":       strictyaml.String(&s.BaseURL),
		"key":           r.source(&s.Key),
		"maxTokens":     strictyaml.Count(&s.MaxTokens),
		"contextWindow": strictyaml.Count(&s.ContextWindow),
		"timeout":       strictyaml.Duration(&s.Timeout),
		"retries": func(v strictyaml.Value) {
			if s.Retries = int(r.number("llm.models[].retries", v, 0, maxRetries, true)); s.Retries == 0 {
				s.Retries = -1 // which is none there
			}
		},
		"images":     strictyaml.Bool(&s.Images),
		"deferTools": strictyaml.BoolPointer(&s.DeferTools),
		"prices": func(v strictyaml.Value) {
			v.Object(strictyaml.Fields{
				"input":      amount(&s.Prices.Input),
				"output":     amount(&s.Prices.Output),
				"cacheRead":  amount(&s.Prices.CacheRead),
				"cacheWrite": amount(&s.Prices.CacheWrite),
			})
		},
	})
	return s
}

// amount reads an amount of money.
func amount(dst *float64) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		var n float64
		if raw := v.JSON(); raw != nil && (json.Unmarshal(raw, &n) != nil || n < 0 || string(raw) == "null") {
			v.Problem("must be an amount, such as 2.5")
			return
		}
		*dst = n
	}
}
