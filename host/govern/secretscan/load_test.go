package secretscan

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"testing"

	"github.com/pelletier/go-toml/v2"
	gitleaks "github.com/zricethezav/gitleaks/v8/config"
)

var update = flag.Bool("update", false, "write the rules of the gitleaks module")

// TestRulesAreCurrent compares the rules in the program with those of the module. Run it with -update after go.mod has
// another version of the module.
func TestRulesAreCurrent(t *testing.T) {
	t.Parallel()
	var file ruleFile
	if err := toml.Unmarshal([]byte(gitleaks.DefaultConfig), &file); err != nil {
		t.Fatal(err)
	}
	file.License = "from gitleaks, copyright (c) 2019 Zachary Rice, with the license in gitleaks.LICENSE"
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(&file); err != nil {
		t.Fatal(err)
	}
	lines := bytes.ReplaceAll(want.Bytes(), []byte(`},{"ID":`), []byte("},\n{\"ID\":")) // a rule a line
	if bytes.Equal(lines, gitleaksRules) {
		return
	}
	if !*update {
		t.Fatal("gitleaks.json is not what the module in go.mod has: go generate ./host/govern/secretscan")
	}
	if err := os.WriteFile("gitleaks.json", lines, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRules: every rule that came with the module can be used here, and one whose form changes is noticed.
func TestRules(t *testing.T) {
	t.Parallel()
	set := loaded()
	if n := len(set.rules); n < 200 {
		t.Errorf("%d rules", n)
	}
	for _, r := range set.rules {
		if e := r.expression(); r.SecretGroup > e.NumSubexp() {
			t.Errorf("%s: no group %d", r.ID, r.SecretGroup)
		}
		for _, a := range r.Allowlists {
			a.expressions()
			a.stop()
		}
		for _, k := range r.Keywords {
			if short := regexp.MustCompile(`^(jwt|azure-ad-client-secret|vault-service-token|twilio-api-key)$`); len(
				k) <= shortKeyword && !short.MatchString(r.ID) {
				t.Errorf("%s has the keyword %q: see that the rule still finds what it should, behind continues", r.ID,
					k)
			}
		}
	}
}

// BenchmarkLoad measures the first text, which loads the rules.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		load()
	}
}
