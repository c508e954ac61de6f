package policy_test

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/manifest"
)

// TestHostileIdentities checks that nobody becomes an approver by a chosen group or name.
func TestHostileIdentities(t *testing.T) {
	t.Parallel()
	p := parse(t, `
version: 1
groups: {platform: [ops@example.com]}
rules:
  - {name: asks, action: ask, tools: [write], approvers: {users: [mori@example.com], groups: [platform]}}
  - {name: asks a user, action: ask, tools: [single], approvers: {users: [mori@example.com]}}
  - {name: asks a group, action: ask, tools: [grouped], approvers: {groups: [platform]}}`)
	for name, test := range map[string]struct {
		tool, user string
		groups     []string
		may        bool
	}{
		"the user":                                 {"write", "mori@example.com", nil, true},
		"a member by the policy":                   {"write", "ops@example.com", nil, true},
		"a member by the frontend":                 {"write", "ken", []string{"platform"}, true},
		"a group that is called like the user":     {"write", "ken", []string{"mori@example.com"}, false},
		"a user who is called like the group":      {"write", "platform", nil, false},
		"both":                                     {"write", "platform", []string{"mori@example.com"}, false},
		"a group like a member of the group":       {"write", "ken", []string{"ops@example.com"}, false},
		"a user with a line feed":                  {"write", "ken\nmori@example.com", nil, false},
		"a user with a comma":                      {"write", "ken,mori@example.com", nil, false},
		"a group with a comma":                     {"write", "ken", []string{"x, platform"}, false},
		"a group in other letters":                 {"write", "ken", []string{"Platform"}, false},
		"a group with a blank":                     {"write", "ken", []string{"platform "}, false},
		"a group as it is shown":                   {"write", "ken", []string{"the group platform"}, false},
		"a user as the group is shown":             {"write", "the group platform", nil, false},
		"no name":                                  {"write", "", nil, false},
		"no name, an empty group":                  {"write", "", []string{""}, false},
		"a user only, by a group":                  {"single", "ken", []string{"mori@example.com"}, false},
		"a group only, by a user":                  {"grouped", "platform", nil, false},
		"a group only, by a member of another one": {"grouped", "mori@example.com", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := p.Decide(&policy.Call{Tool: test.tool})
			if got := p.MayApprove(d, "somebody", test.user, test.groups); got != test.may {
				t.Errorf("may approve: %t, want %t", got, test.may)
			}
		})
	}
	for name, approvers := range map[string]string{
		"one list":             "[mori@example.com]",
		"one name":             "mori@example.com",
		"one list of mappings": "[{users: [a]}]",
		"a list in users":      "{users: a}",
		"another key":          "{user: [a]}",
		"a key twice":          "{users: [a], users: [b]}",
	} {
		t.Run("written as "+name, func(t *testing.T) {
			t.Parallel()
			_, err := policy.Parse([]byte("version: 1\nrules: [{name: a, action: ask, approvers: " + approvers + "}]"))
			if err == nil || name == "one list" &&
				!strings.Contains(err.Error(), "write {users: [mori@example.com], groups: [hr-admins]}") {
				t.Errorf("error: %v", err)
			}
		})
	}
}

// TestHostileNumbers checks that a condition on an integer distinguishes it from its neighbors.
func TestHostileNumbers(t *testing.T) {
	t.Parallel()
	p := parse(t, `
version: 1
default: deny
rules: [{name: one account, action: allow, when: arguments.id == 9007199254740993}, {name: a fraction, action: allow, when: arguments.n * 2.0 == 3.0}]`)
	for arguments, want := range map[string]policy.Action{
		`{"id":9007199254740993}`:                policy.Allow,
		`{"id":9007199254740992}`:                policy.Deny,
		`{"id":9007199254740994}`:                policy.Deny,
		`{"id":9007199254740993000000}`:          policy.Deny,
		`{"id":123456789012345678901234567890}`:  policy.Deny,
		`{"id":"9007199254740993"}`:              policy.Deny,
		`{"n":1.5}`:                              policy.Allow,
		`{"n":1e400}`:                            policy.Deny,
		`{"n":1.5,"x":{"y":[9007199254740993]}}`: policy.Allow,
	} {
		t.Run(arguments, func(t *testing.T) {
			t.Parallel()
			if d := p.Decide(&policy.Call{Tool: "pay", Arguments: []byte(arguments)}); d.Action != want {
				t.Errorf("%s", d.Action)
			}
		})
	}
}

// TestOwnData checks that callers can be limited to their own data: calls by unknown employees, without an employee and
// about others are refused.
func TestOwnData(t *testing.T) {
	t.Parallel()
	p := parse(t, `
version: 1
groups: {hr-admins: [U0ADMIN01]}
employees: {U0AKI0001: "102", U0ADMIN01: "101", Aki@Example.com: "104", ken@example.com: "103"}
rules:
  - {name: HR sees everybody, action: allow, tools: [hr/*], groups: [hr-admins]}
  - name: own hours only
    action: deny
    tools: [hr/list_attendance, hr/calculate_overtime]
    frontends: [slack]
    when: '!(has(caller.employee) && has(arguments.employee_id) && arguments.employee_id == caller.employee)'`)
	for name, test := range map[string]struct {
		user, email, arguments string
		want                   policy.Action
		listed                 bool
	}{
		"own":                      {"U0AKI0001", "", `{"employee_id":"102","month":"2026-05"}`, policy.Allow, true},
		"somebody else's":          {"U0AKI0001", "", `{"employee_id":"103","month":"2026-05"}`, policy.Deny, true},
		"the whole company":        {"U0AKI0001", "", `{"month":"2026-05"}`, policy.Deny, true},
		"a department":             {"U0AKI0001", "", `{"department":"営業部","month":"2026-05"}`, policy.Deny, true},
		"several":                  {"U0AKI0001", "", `{"employee_ids":["102"],"month":"2026-05"}`, policy.Deny, true},
		"of another type":          {"U0AKI0001", "", `{"employee_id":["102"],"month":"2026-05"}`, policy.Deny, true},
		"a user whom nobody knows": {"U0STRANGE", "", `{"employee_id":"102","month":"2026-05"}`, policy.Deny, false},
		"no user":                  {"", "", `{"employee_id":"102","month":"2026-05"}`, policy.Deny, false},
		"own, by address": {"U0KEN0001", "KEN@example.com", `{"employee_id":"103","month":"2026-05"}`,
			policy.Allow, true},
		"another's, by address": {"U0KEN0001", "ken@example.com", `{"employee_id":"102","month":"2026-05"}`,
			policy.Deny, true},
		"the ID before the address": {"U0AKI0001", "ken@example.com", `{"employee_id":"103","month":"2026-05"}`,
			policy.Deny, true},
		"an address as a user": {"ken@example.com", "", `{"employee_id":"103","month":"2026-05"}`, policy.Allow,
			true},
		"an address that only looks the same": {"U0KEN0001", "\u212Aen@example.com",
			`{"employee_id":"103","month":"2026-05"}`, policy.Deny, false},
		"an address in full-width letters": {"U0KEN0001", "ｋｅｎ@example.com",
			`{"employee_id":"103","month":"2026-05"}`, policy.Deny, false},
		"an address with a space": {"U0KEN0001", "ken@example.com ", `{"employee_id":"103","month":"2026-05"}`,
			policy.Deny, false},
		"own ID in another form": {"U0AKI0001", "", `{"employee_id":"0102","month":"2026-05"}`, policy.Deny, true},
		"own ID as a number":     {"U0AKI0001", "", `{"employee_id":102,"month":"2026-05"}`, policy.Deny, true},
		"an unknown address": {"U0KEN0001", "ken@elsewhere.test", `{"employee_id":"103","month":"2026-05"}`,
			policy.Deny, false},
		"HR": {"U0ADMIN01", "", `{"month":"2026-05"}`, policy.Allow, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &policy.Call{Tool: "calculate_overtime", Plugin: "hr", Frontend: policy.FrontendSlack, User: test.user,
				Email:       test.email,
				Annotations: manifest.Annotations{ReadOnlyHint: &yes}, Arguments: []byte(test.arguments)}
			if d := p.Decide(c); d.Action != test.want {
				t.Errorf("%s by %s, want %s", d.Action, d.Rule, test.want)
			}
			if listed := p.Visible(c); listed != test.listed {
				t.Errorf("listed: %v, want %v", listed, test.listed)
			}
		})
	}
	for file, want := range map[string]string{
		"version: 1\nemployees: {U0AKI0001: ''}\n":                "needs the id of an employee",
		"version: 1\nemployees: {a@b.test: '1', A@B.test: '2'}\n": "only in case",
		"version: 1\nemployees: [U0AKI0001]\n":                    "employees",
		"version: 1\nemployees: {U0AKI0001: [a]}\n":               "employees.U0AKI0001",
	} {
		if _, err := policy.Parse([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
}
