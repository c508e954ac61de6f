package script

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/strictyaml"
)

// maxScript bounds a script, in bytes.
const maxScript = 1 << 20

// Parse reads a script in YAML. The error names each place that is wrong.
func Parse(data []byte) (*Script, error) {
	s := &Script{}
	read := func(v strictyaml.Value) { v.Object(strictyaml.Fields{"steps": strictyaml.List(&s.Steps, readStep)}) }
	if err := strictyaml.Read(data, maxScript, read, func() error { return nil }); err != nil {
		return nil, err
	}
	return s, nil
}

func readStep(v strictyaml.Value, s *Step) {
	v.Object(strictyaml.Fields{
		"when":  readPattern(&s.When),
		"after": readPattern(&s.After),
		"times": strictyaml.Count(&s.Times),
		"think": strictyaml.String(&s.Think),
		"say":   strictyaml.String(&s.Say),
		"call":  strictyaml.List(&s.Call, readCall),
		"stop":  readOneOf(&s.Stop, []string{Length, Refusal, Filtered}),
		"fail": func(v strictyaml.Value) {
			s.Fail = &Failure{}
			v.Object(strictyaml.Fields{
				"kind": readOneOf(&s.Fail.Kind, kinds), "retryAfter": strictyaml.String(&s.Fail.RetryAfter),
				"streamed": strictyaml.Bool(&s.Fail.Streamed),
			})
		},
		"cut":  strictyaml.Bool(&s.Cut),
		"wait": strictyaml.Duration(&s.Wait),
		"pace": strictyaml.Duration(&s.Pace),
	})
}

func readPattern(dst **regexp.Regexp) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		var text string
		strictyaml.String(&text)(v)
		pattern, err := regexp.Compile(text)
		if err != nil {
			v.Problem("is not a regular expression: %v", err)
			return
		}
		*dst = pattern
	}
}

func readOneOf(dst *string, known []string) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		strictyaml.String(dst)(v)
		if *dst != "" && !slices.Contains(known, *dst) {
			v.Problem("must be one of %s", strings.Join(known, ", "))
		}
	}
}

// readCall takes arguments as a mapping, or as a text that is sent as it is.
func readCall(v strictyaml.Value, c *Call) {
	c.Arguments = "{}"
	v.Object(strictyaml.Fields{
		"tool": strictyaml.String(&c.Tool),
		"arguments": func(v strictyaml.Value) {
			raw := v.JSON()
			var text string
			if json.Unmarshal(raw, &text) != nil {
				text = string(raw)
			}
			c.Arguments = text
		},
	})
}
