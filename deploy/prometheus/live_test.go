// Package prometheus_test holds the rules beside it, and the dashboards, against a real Prometheus that scrapes a real
// hako.
package prometheus_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testprogram"
)

var out = flag.String("hako.panels", "", "write how many series each panel shows to this file")

const (
	// loadTime is the duration of the load before the panels are read.
	loadTime = 15 * time.Second
	// rounds bounds the repetitions: on a busy machine, an event that a rule expects twice may happen only once in
	// one.
	rounds = 6
)

// TestPanels uses hako for a while and asks a Prometheus that scrapes it for every panel of every dashboard: each has
// to show something.
func TestPanels(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	t.Parallel() // most of its time it waits; TestRules computes
	prometheus := testprogram.Find(t, "prometheus")
	s := serveHako(t)
	p := scrape(t, prometheus, s)
	var report string
	for round := 1; ; round++ {
		s.load(loadTime)
		time.Sleep(2 * time.Second) // the last scrape, and the rules after it
		var missing []string
		if report, missing = p.lookAtAll(t); len(missing) == 0 {
			break
		}
		if round == rounds {
			t.Error(strings.Join(missing, "\n"))
			break
		}
	}
	checkScrape(t, s)
	p.checkRules(t)
	p.checkExemplars(t)
	if *out != "" {
		if err := os.WriteFile(*out, []byte(report), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// server is a Prometheus.
type server struct{ url string }

// scrape starts a Prometheus that scrapes hako every second, with the rules.
func scrape(t *testing.T, program string, s *subject) *server {
	t.Helper()
	rules, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir, address := t.TempDir(), freeAddress(t)
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%[1]s/recording.yml, %[1]s/alerts.yml]\n"+
		"scrape_configs: [{job_name: hako, static_configs: [{targets: [%[2]q, %[3]q]}]}]\n", rules, host(s.metrics),
		host(s.agents))
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, nil, program, "--config.file=prometheus.yml", "--storage.tsdb.path=data",
		"--web.listen-address="+address,
		"--enable-feature=exemplar-storage", "--log.level=warn")
	awaitOK(t, p, "http://"+address+"/-/ready")
	return &server{"http://" + address}
}

// host returns the address in a metrics URL.
func host(url string) string {
	return strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/metrics")
}

// checkScrape holds what hako serves against Prometheus' rules for metrics.
func checkScrape(t *testing.T, s *subject) {
	t.Helper()
	response, err := http.Get(s.metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	check := exec.CommandContext(t.Context(), testprogram.Find(t, "promtool"), "check", "metrics")
	check.Stdin = response.Body
	text, err := check.CombinedOutput()
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "hako_") {
			t.Errorf("promtool check metrics: %s", line)
		}
	}
	if err != nil && check.ProcessState.ExitCode() != 3 { // 3: somebody else's metrics could have better names
		t.Errorf("promtool check metrics: %v\n%s", err, text)
	}
}

// dashboards are the paths of all.
func dashboards(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../grafana/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	return paths
}

// dashboard is the part of Grafana's model that the test uses.
type dashboard struct {
	Title  string
	Panels []struct {
		Type, Title string
		Targets     []struct{ Expr, RefID string }
	}
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
}

// lookAtAll evaluates the queries of all dashboards and recording rules. It returns a line for each panel, and what
// shows nothing.
func (p *server) lookAtAll(t *testing.T) (report string, missing []string) {
	t.Helper()
	for _, path := range dashboards(t) {
		lines, empty := p.look(t, path)
		report, missing = report+lines, append(missing, empty...)
	}
	for _, r := range p.rules(t) {
		if n, _ := p.query(t, r.Name); r.Type == "recording" && n == 0 {
			missing = append(missing, fmt.Sprintf("the rule %s records nothing", r.Name))
		}
	}
	return report, missing
}

// look evaluates all queries of a dashboard. It returns a line for each panel, and which of them show nothing.
func (p *server) look(t *testing.T, path string) (report string, missing []string) {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, path)), &d); err != nil {
		t.Fatal(err)
	}
	for _, v := range d.Templating.List {
		if query, ok := v.Query.(map[string]any); ok {
			p.checkVariable(t, d.Title, v.Name, fmt.Sprint(query["query"]))
		}
	}
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			_, n := p.query(t, fill(target.Expr))
			report += fmt.Sprintf("%-24s %-32s %s %4d series\n", d.Title, panel.Title, target.RefID, n)
			if n == 0 {
				missing = append(missing, fmt.Sprintf("%s, %s (%s): no data for %s", d.Title, panel.Title, target.RefID,
					fill(target.Expr)))
			}
		}
	}
	return report, missing
}

// fill puts values in the place of variables, as Grafana does when all are chosen.
func fill(expr string) string {
	return strings.NewReplacer(
		"$__rate_interval", "2m", "$__interval", "5s", "$__range", "2m", "$job", ".+", "$instance", ".+", "$plugin",
		".+", "$tool", ".+",
	).Replace(expr)
}

// checkVariable holds that there is something to choose: label_values(SERIES, LABEL) is all that variables ask for.
func (p *server) checkVariable(t *testing.T, dashboard, name, query string) {
	t.Helper()
	inner, ok := strings.CutPrefix(query, "label_values(")
	at := strings.LastIndex(inner, ", ")
	if !ok || at < 0 {
		t.Fatalf("%s: the variable %s asks for %s", dashboard, name, query)
	}
	series, label := fill(inner[:at]), strings.TrimSuffix(inner[at+2:], ")")
	if n, _ := p.query(t, "count by ("+label+") ("+series+")"); n == 0 {
		t.Errorf("%s: there is nothing to choose for %s", dashboard, name)
	}
}

// query evaluates an expression, and returns how many series it has and how many of them have a number: what divides
// nothing by nothing has none, and shows nothing.
func (p *server) query(t *testing.T, expr string) (series, numbers int) {
	t.Helper()
	var answer struct {
		Data  struct{ Result []struct{ Value []any } }
		Error string
	}
	p.get(t, "/api/v1/query", url.Values{"query": {expr}}, &answer)
	if answer.Error != "" {
		t.Errorf("%s: %s", expr, answer.Error)
	}
	for _, r := range answer.Data.Result {
		if len(r.Value) == 2 && r.Value[1] != "NaN" {
			numbers++
		}
	}
	return len(answer.Data.Result), numbers
}

func (p *server) get(t *testing.T, path string, parameters url.Values, into any) {
	t.Helper()
	response, err := http.Get(p.url + path + "?" + parameters.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body.Bytes(), into); err != nil {
		t.Fatalf("%s: %v: %s", path, err, body.String())
	}
}

// rule is one as Prometheus has evaluated it.
type rule struct{ Name, Type, Health, LastError, State string }

func (p *server) rules(t *testing.T) (list []rule) {
	t.Helper()
	var answer struct {
		Data struct{ Groups []struct{ Rules []rule } }
	}
	p.get(t, "/api/v1/rules", nil, &answer)
	for _, group := range answer.Data.Groups {
		list = append(list, group.Rules...)
	}
	return list
}

// checkRules holds that every rule is healthy, and that the alerts that the load causes are at least pending while
// others are not.
func (p *server) checkRules(t *testing.T) {
	t.Helper()
	var active []string
	for _, r := range p.rules(t) {
		if r.Health != "ok" {
			t.Errorf("the rule %s is %s: %s", r.Name, r.Health, r.LastError)
		}
		if r.Type == "alerting" && r.State != "inactive" {
			active = append(active, r.Name)
		}
	}
	for _, name := range []string{"HakoSecretsFound"} {
		if !slices.Contains(active, name) {
			t.Errorf("%s is not active: %v are", name, active)
		}
	}
	for _, name := range []string{"HakoDown", "HakoInternalErrors", "HakoAuditFailing", "HakoPolicyBroken", "HakoUpstreamDown"} {
		if slices.Contains(active, name) {
			t.Errorf("%s is active", name)
		}
	}
}

// checkExemplars holds that the traces that calls belong to have come with the histograms of their durations.
func (p *server) checkExemplars(t *testing.T) {
	t.Helper()
	now := time.Now()
	var answer struct {
		Data []struct {
			Exemplars []struct{ Labels map[string]string }
		}
	}
	p.get(t, "/api/v1/query_exemplars", url.Values{
		"query": {"hako_call_duration_seconds_bucket"}, "start": {fmt.Sprint(now.Add(-time.Hour).Unix())},
		"end": {fmt.Sprint(now.Unix() + 1)},
	}, &answer)
	for _, series := range answer.Data {
		for _, exemplar := range series.Exemplars {
			if exemplar.Labels["trace_id"] == trace {
				return
			}
		}
	}
	t.Errorf("no exemplar has the trace %s", trace)
}
