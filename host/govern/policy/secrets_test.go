package policy_test

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/secretscan"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	token := "ghp" + "_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3gH5"
	for name, test := range map[string]struct {
		section string
		want    secretscan.Action // of a token in arguments; empty: not found
	}{
		"none":         {"", secretscan.Report},
		"a place":      {"secrets: {arguments: refuse}\n", secretscan.Refuse},
		"a rule":       {"secrets: {arguments: refuse, rules: [{id: github-*, action: mask}]}\n", secretscan.Mask},
		"an exception": {"secrets: {allow: ['^ghp_aB3']}\n", ""},
	} {
		p, err := policy.Parse([]byte("version: 1\n" + test.section))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, found := p.Secrets.Text(secretscan.Arguments, token)
		var got secretscan.Action
		if len(found) > 0 {
			got = found[0].Action
		}
		if got != test.want {
			t.Errorf("%s: %v", name, found)
		}
	}
	for section, want := range map[string]string{
		"secrets: {argument: refuse}":                       `did you mean "arguments"`,
		"secrets: {logs: drop}":                             "must be ignore, report, mask or refuse",
		"secrets: {rules: [{id: gitub-pat, action: mask}]}": "there is no such rule",
		"secrets: {allow: ['(']}":                           "allow: error parsing regexp",
	} {
		if _, err := policy.Parse([]byte("version: 1\n" + section)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", section, err)
		}
	}
}
