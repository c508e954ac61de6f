package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/hako-run/hako/host/govern/quota"
	"github.com/hako-run/hako/host/govern/secretscan"
	"github.com/hako-run/hako/host/judge"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/strictyaml"
)

// maxFile bounds the policy file, in bytes.
const maxFile = 16 << 20

// Parse reads a policy. docs/policy.md describes the format. The error names each wrong place.
func Parse(data []byte) (*Policy, error) {
	var f file
	if err := strictyaml.Read(data, maxFile, f.read, f.check); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	p := &Policy{
		id:       hex.EncodeToString(sum[:8]),
		defaults: f.defaults, rules: f.rules, index: newIndex(f.rules), groups: map[string][]string{},
		employees: f.employees,
		cache:     map[relevantKey][]*Rule{},
		Commands:  f.commands, Quotas: f.quotas, Secrets: f.scanner,
	}
	for name, users := range f.groups {
		for _, user := range users {
			p.groups[user] = append(p.groups[user], name)
		}
	}
	return p, nil
}

// file is the content of a policy file.
type file struct {
	version   int
	defaults  Action
	groups    map[string][]string
	employees employees
	rules     []*Rule
	commands  []judge.Rule
	quotas    []quota.Rule
	secrets   secretscan.Rules
	scanner   *secretscan.Scanner // compiled from secrets
}

func (f *file) read(v strictyaml.Value) {
	f.groups, f.employees = map[string][]string{}, employees{map[string]string{}, map[string]string{}}
	var table []*Rule
	v.Object(strictyaml.Fields{
		"version": strictyaml.Count(&f.version),
		"default": ReadAction(&f.defaults),
		"groups": func(v strictyaml.Value) {
			v.Map(func(name string, v strictyaml.Value) {
				var users []string
				strictyaml.Strings(&users)(v)
				f.groups[name] = users
			})
		},
		"employees": func(v strictyaml.Value) {
			v.Map(func(user string, v strictyaml.Value) {
				var id string
				strictyaml.String(&id)(v)
				if id == "" {
					v.Problem("needs the id of an employee, as list_employees gives it")
				}
				if !f.employees.add(user, id) {
					v.Problem("differs from the address of another entry only in case")
				}
			})
		},
		"rules": func(v strictyaml.Value) {
			v.List(func(i int, v strictyaml.Value) {
				f.rules = append(f.rules,
					readRule(v, strictyaml.Index("rules", i)))
			})
		},
		"tool_permissions": func(v strictyaml.Value) { table = readTable(v) },
		"commands":         strictyaml.List(&f.commands, readCommand),
		"quotas":           strictyaml.List(&f.quotas, readQuota),
		"secrets":          f.readSecrets,
	})
	f.rules = append(f.rules, table...)
	if f.defaults == "" {
		f.defaults = Allow
	}
}

// check validates across fields.
func (f *file) check() error {
	var e strictyaml.Error
	if f.version != 1 {
		e.Add("version", "must be 1, the version of this format")
	}
	seen, conditions := map[string]bool{}, map[string]compiledCondition{}
	for _, rule := range f.rules {
		switch {
		case rule.Name == "":
			e.Add(rule.path, "needs a name: decisions refer to it")
		case seen[rule.Name]:
			e.Add(rule.path, "there is another rule called %q: give each its own name", rule.Name)
		}
		switch {
		case rule.Action == "":
			e.Add(rule.path, "needs an action: allow, ask or deny")
		case rule.Action != Ask && (!rule.Approvers.IsZero() || rule.Remember != 0):
			e.Add(rule.path, "approvers and remember are for the action ask")
		}
		seen[rule.Name] = true
		if err := rule.compile(conditions); err != nil {
			e.Add(rule.path+".when", "%v", err)
		}
	}
	if _, err := judge.New(f.commands, nil); err != nil {
		e.Add("commands", "%v", err)
	}
	var err error
	if f.scanner, err = secretscan.New(&f.secrets); err != nil {
		e.Add("secrets", "%v", err)
	}
	f.checkQuotas(&e)
	return e.Err()
}

func (f *file) checkQuotas(e *strictyaml.Error) {
	seen := map[string]bool{}
	for i := range f.quotas {
		path, rule := strictyaml.Index("quotas", i), &f.quotas[i]
		if err := rule.Check(); err != nil {
			e.Add(path, "%v", err)
		}
		if seen[rule.Name] {
			e.Add(path, "there is another quota called %q: give each its own name", rule.Name)
		}
		seen[rule.Name] = true
	}
}

func readQuota(v strictyaml.Value, r *quota.Rule) {
	var per string
	v.Object(strictyaml.Fields{
		"name":       strictyaml.String(&r.Name),
		"per":        strictyaml.String(&per),
		"tenants":    strictyaml.Strings(&r.Tenants),
		"users":      strictyaml.Strings(&r.Users),
		"tokens":     strictyaml.Strings(&r.Tokens),
		"plugins":    strictyaml.Strings(&r.Plugins),
		"tools":      strictyaml.Strings(&r.Tools),
		"rate":       strictyaml.Count(&r.Rate),
		"burst":      strictyaml.Count(&r.Burst),
		"concurrent": strictyaml.Count(&r.Concurrent),
		"cpu":        strictyaml.Duration(&r.CPU),
	})
	r.Per = quota.Scope(per)
}

func (f *file) readSecrets(v strictyaml.Value) {
	s := &f.secrets
	v.Object(strictyaml.Fields{
		"arguments": readSecretAction(&s.Arguments),
		"results":   readSecretAction(&s.Results),
		"logs":      readSecretAction(&s.Logs),
		"rules": strictyaml.List(&s.Overrides, func(v strictyaml.Value, o *secretscan.Override) {
			v.Object(strictyaml.Fields{"id": strictyaml.String(&o.Rule), "action": readSecretAction(&o.Action)})
		}),
		"allow": strictyaml.Strings(&s.Allow),
	})
}

func readSecretAction(dst *secretscan.Action) func(strictyaml.Value) {
	return func(v strictyaml.Value) { strictyaml.String((*string)(dst))(v) }
}

func readRule(v strictyaml.Value, path string) *Rule {
	r := &Rule{Line: v.Line(), path: path}
	v.Object(strictyaml.Fields{
		"name":          strictyaml.String(&r.Name),
		"action":        ReadAction(&r.Action),
		"tools":         strictyaml.Strings(&r.Tools),
		"via":           strictyaml.Strings(&r.Via),
		"frontends":     strictyaml.Strings(&r.Frontends),
		"tenants":       strictyaml.Strings(&r.Tenants),
		"users":         strictyaml.Strings(&r.Users),
		"groups":        strictyaml.Strings(&r.Groups),
		"tokens":        strictyaml.Strings(&r.Tokens),
		"missingScopes": strictyaml.Strings(&r.MissingScopes),
		"when":          strictyaml.String(&r.When),
		"reason":        manifest.ReadText(&r.Reason),
		"approvers":     func(v strictyaml.Value) { ReadPeople(v, &r.Approvers) },
		"remember":      strictyaml.Duration(&r.Remember),
	})
	return r
}

// ReadAction reads an action: allow, ask or deny.
func ReadAction(dst *Action) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		text, ok := v.Text()
		switch Action(text) {
		case Allow, Ask, Deny:
			*dst = Action(text)
		default:
			if ok {
				v.Problem("must be allow, ask or deny")
			}
		}
	}
}

// permissions are the values of tool_permissions.
var permissions = map[string]Action{permissionAllow: Allow, permissionDeny: Deny, permissionConfirm: Ask}

// readTable reads tool_permissions as rules, each for one tool.
func readTable(v strictyaml.Value) []*Rule {
	var rules []*Rule
	v.Map(func(tool string, v strictyaml.Value) {
		text, ok := v.Text()
		action, known := permissions[text]
		if ok && !known {
			v.Problem("must be allow, deny or requires_confirmation")
		}
		rules = append(rules, &Rule{
			Name: "tool_permissions: " + tool, Action: action, Tools: []string{tool}, Line: v.Line(),
			path: strictyaml.Key("tool_permissions", tool),
		})
	})
	return rules
}

func readCommand(v strictyaml.Value, r *judge.Rule) {
	var action Action
	v.Object(strictyaml.Fields{
		"name":     strictyaml.String(&r.Name),
		"action":   ReadAction(&action),
		"programs": strictyaml.Strings(&r.Programs),
		"flags":    strictyaml.Strings(&r.Flags),
		"args":     strictyaml.Strings(&r.Args),
		"reason":   strictyaml.String(&r.Reason),
	})
	switch {
	case r.Name == "":
		v.Problem("needs a name: decisions refer to it")
	case action == "":
		v.Problem("needs an action: allow, ask or deny")
	}
	r.Action = map[Action]judge.Action{Allow: judge.Allow, Ask: judge.Ask, Deny: judge.Deny}[action]
}

// Rules returns the rules in their order, those of tool_permissions last.
func (p *Policy) Rules() []*Rule { return slices.Clone(p.rules) }

// Groups returns the groups with their users.
func (p *Policy) Groups() map[string][]string {
	groups := map[string][]string{}
	for user, names := range p.groups {
		for _, name := range names {
			groups[name] = append(groups[name], user)
		}
	}
	for _, users := range groups {
		slices.Sort(users)
	}
	return groups
}
