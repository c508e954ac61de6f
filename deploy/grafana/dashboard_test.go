package grafana_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// columns is the width of Grafana's grid.
const columns = 24

// TestDashboards holds the rules of a good dashboard, which are those of Grafana's own linter and some more.
func TestDashboards(t *testing.T) {
	t.Parallel()
	documented, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var m model
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		if seen[m.UID] || m.UID == "" || len(m.UID) > 40 || m.Title == "" || m.Description == "" || m.Editable ||
			m.Refresh == "" {
			t.Errorf("%s: its head is %q, %q, %q", file, m.UID, m.Title, m.Description)
		}
		seen[m.UID] = true
		for _, problem := range slices.Concat(m.variables(), m.layout(), m.panels(string(documented))) {
			t.Errorf("%s: %s", file, problem)
		}
	}
}

// TestRules shows that the rules can fail.
func TestRules(t *testing.T) {
	t.Parallel()
	bad := panelModel{
		ID: 1, Type: "timeseries", Targets: []target{{Expr: `sum(rate(hako_made_up_total{plugin="x"}[5m]))`},
			{Expr: `hako_calls_total{job=~"$job", instance=~"$instance"}`}},
	}
	m := model{Panels: []panelModel{bad, bad}}
	got := strings.Join(slices.Concat(m.variables(), m.layout(), m.panels("| `hako_calls_total` |")), "\n")
	for _, want := range []string{
		"no variable datasource", "two panels have the id 1", "overlap", "no title", "no description", "no unit",
		"no legend", "$job", "$__rate_interval", "hako_made_up_total",
		"a counter without a rate", "data source",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("nothing about %q in\n%s", want, got)
		}
	}
}

// model is the part of Grafana's model that the rules use.
type model struct {
	UID, Title, Description, Refresh string
	Editable                         bool
	Templating                       struct {
		List []struct {
			Name, Label, Type, AllValue string
			Refresh                     int
			Multi, IncludeAll           bool
		}
	}
	Panels []panelModel
}

type panelModel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ UID string }
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []target
}

type target struct {
	RefID, Expr, LegendFormat string
	Datasource                struct{ UID string }
}

// variables finds what is wrong with the variables: which Prometheus and which processes has to be a choice everywhere.
func (m *model) variables() (problems []string) {
	found := map[string]bool{}
	for _, v := range m.Templating.List {
		found[v.Name] = true
		switch {
		case v.Label == "":
			problems = append(problems, "the variable "+v.Name+" has no label")
		case v.Type == "datasource" && v.Name != "datasource":
			problems = append(problems, "the data source is the variable "+v.Name)
		case v.Type == "query" && (!v.Multi || !v.IncludeAll || v.AllValue != ".+" || v.Refresh != 2):
			problems = append(problems, "the variable "+v.Name+
				" does not choose among all, at every change of the time")
		}
	}
	for _, name := range []string{"datasource", "job", "instance"} {
		if !found[name] {
			problems = append(problems, "no variable "+name)
		}
	}
	return problems
}

// layout finds which panels have the same number, stand outside of the grid, or lie upon each other.
func (m *model) layout() (problems []string) {
	ids := map[int]bool{}
	for i, p := range m.Panels {
		if ids[p.ID] {
			problems = append(problems, "two panels have the id "+string(rune('0'+p.ID)))
		}
		ids[p.ID] = true
		a := p.GridPos
		if a.X < 0 || a.X+a.W > columns {
			problems = append(problems, p.Title+" is outside of the grid")
		}
		for _, other := range m.Panels[:i] {
			b := other.GridPos
			if a == b || a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				problems = append(problems, p.Title+" and "+other.Title+" overlap")
			}
		}
	}
	return problems
}

var (
	metricName = regexp.MustCompile(`\b(?:hako|process|go)_[a-z0-9_]+`)
	selector   = regexp.MustCompile(`\{[^{}]*\}`)
	ranged     = regexp.MustCompile(`(rate|increase)\([^()]*\[([^\]]+)\]`)
	bare       = regexp.MustCompile(`hako_[a-z_]+_(?:total|bucket)\{[^}]*\}(?:\)|\s|$)`)
)

// panels finds what is wrong with single panels. documented is docs/metrics.md.
func (m *model) panels(documented string) (problems []string) {
	for _, p := range m.Panels {
		add := func(text string) { problems = append(problems, p.Title+": "+text) }
		if p.Type == "row" {
			continue
		}
		for what, there := range map[string]bool{
			"no title": p.Title != "", "no description": strings.HasSuffix(p.Description, ".") ||
				strings.HasSuffix(p.Description, "why."),
			"no unit": p.FieldConfig.Defaults.Unit != "", "no query": len(p.Targets) > 0,
			"not from the data source": p.Datasource.UID == "${datasource}",
		} {
			if !there {
				add(what)
			}
		}
		for _, q := range p.Targets {
			for _, text := range q.problems(p.Type, documented) {
				add(text)
			}
		}
	}
	return problems
}

func (q *target) problems(kind, documented string) (list []string) {
	if q.LegendFormat == "" || kind == "timeseries" && q.LegendFormat == "__auto" {
		list = append(list, "no legend")
	}
	if q.Datasource.UID != "${datasource}" {
		list = append(list, "a query not from the data source")
	}
	for _, s := range selector.FindAllString(q.Expr, -1) {
		if !strings.Contains(s, `job=~"$job"`) || !strings.Contains(s, `instance=~"$instance"`) {
			list = append(list, s+" does not hold to $job and $instance")
		}
	}
	for _, r := range ranged.FindAllStringSubmatch(q.Expr, -1) {
		if r[1] == "rate" && r[2] != "$__rate_interval" {
			list = append(list, "a rate over "+r[2]+" and not $__rate_interval")
		}
	}
	if bare.MatchString(q.Expr) {
		list = append(list, "a counter without a rate")
	}
	for _, name := range metricName.FindAllString(q.Expr, -1) {
		if strings.HasPrefix(name, "hako_") && !known(documented, name) {
			list = append(list, "docs/metrics.md does not have "+name)
		}
	}
	return list
}

// known reports whether a metric is documented, under its own name or as a part of a histogram.
func known(documented, name string) bool {
	for _, suffix := range []string{"", "_bucket", "_count", "_sum"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && strings.Contains(documented, "| `"+base+"` |") {
			return true
		}
	}
	return false
}
