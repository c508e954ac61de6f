package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/policy"
)

// explanation is why the policy decides about a call as it does. Prospects are there instead of Action and Rule where
// the arguments are not known and matter.
type explanation struct {
	Tool     string `json:"tool"`
	Plugin   string `json:"plugin"`
	Frontend string `json:"frontend"`
	Tenant   string `json:"tenant,omitempty"`
	User     string `json:"user,omitempty"`
	// Groups are all of the user's: those given and those of the policy.
	Groups []string `json:"groups,omitempty"`
	// Employee is the user's id in the HR tools, by the employees of the policy.
	Employee  string          `json:"employee,omitempty"`
	Token     string          `json:"token,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Listed says that the caller sees the tool.
	Listed    bool       `json:"listed"`
	Decision  *decision  `json:"decision,omitempty"`
	Prospects []decision `json:"prospects,omitempty"`
	// Passed are the rules about the tool that were looked at before.
	Passed []passed `json:"passed,omitempty"`
}

type decision struct {
	Action    policy.Action `json:"action"`
	Rule      string        `json:"rule"`
	Line      int           `json:"line,omitempty"`
	When      string        `json:"when,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	Approvers policy.People `json:"approvers,omitzero"`
	// Remember is a duration, such as "10m0s".
	Remember string `json:"remember,omitempty"`
	// Doubt says why the condition could not be worked out.
	Doubt string `json:"doubt,omitempty"`
}

type passed struct {
	Rule string `json:"rule"`
	Line int    `json:"line,omitempty"`
	Why  string `json:"why"`
}

func (a *app) policyExplainCommand() *cobra.Command {
	var caller callerFlags
	var given string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "explain TOOL",
		Short: "Say which rule decides about a call, and why",
		Long: `Say what becomes of a caller's call of TOOL, which rule of the policy decides it and why those before it do not. Without --arguments it
says what depends on them.`,
		Example: `  hako policy explain file_write --as ken --group interns
  hako policy explain file_write --token ci --arguments '{"path":"a.txt","content":"x"}'`,
		Args:              arguments(1, 1),
		ValidArgsFunction: a.completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			var input json.RawMessage
			if given != "" {
				var err error
				if input, err = a.callArguments([]string{given}); err != nil {
					return usageError(cmd, err)
				}
			}
			return a.withPolicy(cmd, func(v *view, p *policy.Policy) error {
				if err := caller.resolve(v.config); err != nil {
					return err
				}
				tool, err := v.tool(args[0])
				if err != nil {
					return err
				}
				call := caller.call(tool)
				call.Arguments = input
				e := explain(p, call, v.config.Locale)
				if asJSON {
					return a.printJSON(e)
				}
				err = printf(a.stdout, "%s\n", block(e.text(v.config.Policy)))
				return err
			})
		},
	}
	caller.add(a, cmd)
	cmd.Flags().StringVar(&given, "arguments", "",
		"the arguments, a JSON object, or - to read them from standard input")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func explain(p *policy.Policy, c *policy.Call, locale string) *explanation {
	e := &explanation{
		Tool: c.Tool, Plugin: c.Plugin, Frontend: c.Frontend, Tenant: c.Tenant, User: c.User, Groups: p.GroupsOf(c),
		Employee: p.EmployeeOf(c), Token: c.Token, Arguments: c.Arguments,
		Listed: p.Visible(c),
	}
	if prospects := p.Prospects(c); c.Arguments == nil && len(prospects) > 1 {
		for _, prospect := range prospects {
			e.Prospects = append(e.Prospects, decided(prospect.Decision, prospect.Line, prospect.When, locale))
		}
	}
	result, steps := p.Explain(c)
	for _, step := range steps {
		if !step.Decided {
			e.Passed = append(e.Passed, passed{step.Rule, step.Line, step.Why})
		}
	}
	if e.Prospects == nil {
		last := steps[len(steps)-1]
		d := decided(result, last.Line, "", locale)
		d.Doubt = last.Why
		e.Decision = &d
	} else {
		e.Passed = nil // which are passed depends on the arguments too
	}
	return e
}

func decided(d policy.Decision, line int, when, locale string) decision {
	made := decision{Action: d.Action, Rule: d.Rule, Line: line, When: when, Reason: d.Reason.In(locale),
		Approvers: d.Approvers}
	if d.Remember > 0 {
		made.Remember = d.Remember.String()
	}
	return made
}

// maxPassed bounds the rules that the text names.
const maxPassed = 8

// text is the explanation in a paragraph.
func (e *explanation) text(file string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of the plugin %s, called by %s, ", e.Tool, e.Plugin, e.caller())
	if e.Decision != nil {
		b.WriteString(verbs[e.Decision.Action] + " by " + e.Decision.text(file) + ".")
	} else {
		b.WriteString("depends on the arguments: it ")
		for i, d := range e.Prospects {
			if i > 0 {
				b.WriteString("; else it ")
			}
			b.WriteString(verbs[d.Action] + " by " + d.text(file))
		}
		b.WriteString(".")
	}
	if !e.Listed {
		b.WriteString(" The caller does not see the tool in lists.")
	}
	for i, p := range e.Passed {
		switch {
		case i == maxPassed:
			fmt.Fprintf(&b, "; and %d more, which --json lists", len(e.Passed)-maxPassed)
		case i > maxPassed:
			continue
		case i == 0:
			fmt.Fprintf(&b, " Looked at before, and passed: %q (line %d), because of its %s", p.Rule, p.Line, p.Why)
		default:
			fmt.Fprintf(&b, "; %q (line %d), because of its %s", p.Rule, p.Line, p.Why)
		}
	}
	if len(e.Passed) > 0 {
		b.WriteString(".")
	}
	return b.String()
}

var verbs = map[policy.Action]string{policy.Allow: "is allowed", policy.Ask: "waits for a person's yes",
	policy.Deny: "is denied"}

func (d *decision) text(file string) string {
	text := ruleName(d.Rule, d.Line, file)
	if d.When != "" {
		text += " where " + d.When
	}
	if d.Action == policy.Ask {
		who := "the caller"
		if !d.Approvers.IsZero() {
			who = strings.ReplaceAll(d.Approvers.In("en"), ", ", " or ")
		}
		text += ", which " + who + " may give"
		if d.Remember != "" {
			remember, _ := time.ParseDuration(d.Remember)
			text += " for " + shortDuration(remember)
		}
	}
	if d.Doubt != "" {
		text += ", because its " + d.Doubt
	}
	if d.Reason != "" {
		text += fmt.Sprintf(" (%s)", d.Reason)
	}
	return text
}

// shortDuration leaves out what is zero: "10m" instead of "10m0s".
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (e *explanation) caller() string {
	text := "a caller without a name"
	if e.User != "" {
		text = e.User
	}
	if len(e.Groups) > 0 {
		text += " of " + strings.Join(e.Groups, ", ")
	}
	if e.Employee != "" {
		text += ", employee " + e.Employee + ","
	}
	text += " at " + e.Frontend
	if e.Tenant != "" {
		text += " for the tenant " + e.Tenant
	}
	return text
}
