package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	freeefake "github.com/hako-run/hako/dev/fakes/freee"
	"github.com/hako-run/hako/host/manifest"
)

func readManifest(t *testing.T) *manifest.Manifest {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "manifests", "hr.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestManifestDefaults checks that the plugin and its manifest have the same defaults, and that each permission's base
// URL is one.
func TestManifestDefaults(t *testing.T) {
	t.Parallel()
	m := readManifest(t)
	values := map[string]any{}
	for name, key := range m.Config {
		if key.Default != nil {
			values[name] = key.Default
		}
	}
	data, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	var got settings
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	got.FreeeURL, got.KOTURL = strings.TrimRight(got.FreeeURL, "/"), strings.TrimRight(got.KOTURL, "/")
	if want := defaultSettings(); !reflect.DeepEqual(got, want) {
		t.Errorf("the manifest's defaults are %+v, the plugin's %+v", got, want)
	}
	for _, p := range m.Permissions.HTTP {
		if p.Credential != p.Name || p.ConfigKey != p.Name+"_url" || !slices.Equal(p.Methods, []string{"GET"}) {
			t.Errorf("permission %s: credential %s, key %s, methods %s", p.Name, p.Credential, p.ConfigKey, p.Methods)
		}
	}
}

// TestSchemas checks that the arguments and answers of every tool and vendor match the manifest's schemas.
func TestSchemas(t *testing.T) {
	t.Parallel()
	m := readManifest(t)
	freee, freeeConfig := fakeFreee(t, func(o *freeefake.Options) {
		o.Companies[0].Employees[1].Days["2026-05-21"] = freeefake.Day{TwoSpecial: true}
	})
	kot, kotConfig := fakeKOT(t, nil)
	smarthr, smarthrConfig := fakeSmartHR(t, nil)
	smallCompany := freeeConfig
	smallCompany.CompanyID = "67890"
	for _, config := range []settings{freeeConfig, kotConfig, smarthrConfig} {
		checkSchemas(t, &m.Tools[0], listEmployees, employeesQuery{}, config)
		checkSchemas(t, &m.Tools[0], listEmployees, employeesQuery{Department: "営業部", Status: "active", Name: "架",
			Limit: 1}, config)
	}
	for person, config := range map[string]settings{"102": freeeConfig, "103": freeeConfig, "201": smallCompany, kotPerson: kotConfig} {
		query := monthQuery{EmployeeID: person, Month: "2026-05"}
		checkSchemas(t, &m.Tools[1], listAttendance, query, config)
		checkSchemas(t, &m.Tools[2], calculateOvertime, overtimeQuery{monthQuery: query}, config)
	}
	var asked []string
	for _, r := range freee.Requests.All() {
		asked = append(asked, "freee "+strings.TrimPrefix(r.Path, "/hr/"))
	}
	for _, r := range kot.Requests.All() {
		asked = append(asked, "kot "+strings.TrimPrefix(r.Path, "/v1.0/"))
	}
	if len(smarthr.Requests.All()) > 0 {
		asked = append(asked, "smarthr crews")
	}
	for _, request := range asked {
		name, path, _ := strings.Cut(request, " ")
		if !slices.ContainsFunc(m.Permissions.HTTP, func(p manifest.HTTPPermission) bool {
			return p.Name == name && slices.ContainsFunc(p.Paths,
				func(glob string) bool { return doublestar.MatchUnvalidated(glob, path) })
		}) {
			t.Errorf("no permission covers %s", request)
		}
	}
}

// TestOfferedTools checks that callers see the tools that their tenant's vendor can serve, and no others.
func TestOfferedTools(t *testing.T) {
	t.Parallel()
	m := readManifest(t)
	for vendor := range vendors {
		config, err := m.Configure(map[string]any{"vendor": vendor})
		if err != nil {
			t.Fatal(err)
		}
		var offered []string
		for i := range m.Tools {
			if m.Tools[i].OfferedUnder(config) {
				offered = append(offered, m.Tools[i].Name)
			}
		}
		s := &session{settings: settings{Vendor: vendor, SmartHRSubdomain: "example"}, lang: english}
		if err := s.chooseVendor(); err != nil {
			t.Fatal(err)
		}
		if want := s.supported(); !slices.Equal(offered, want) {
			t.Errorf("%s: on offer are %q, and it serves %q", vendor, offered, want)
		}
	}
}

func checkSchemas[In any](t *testing.T, declared *manifest.Tool, run tool[In], in In, config settings) {
	t.Helper()
	arguments, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := declared.Input().Validate(arguments); err != nil {
		t.Errorf("%s %s: %v", declared.Name, arguments, err)
	}
	answer, err := callAny(t, run, in, config, english)
	if err != nil {
		t.Errorf("%s %s: %v", declared.Name, arguments, err)
		return
	}
	data, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	if err := declared.Output().Validate(data); err != nil {
		t.Errorf("%s %s answers %s: %v", declared.Name, arguments, data, err)
	}
}

// TestBadArguments holds what the input schemas refuse before the plugin runs.
func TestBadArguments(t *testing.T) {
	t.Parallel()
	m := readManifest(t)
	for i, list := range [][]string{
		{`{"status":"on leave"}`, `{"limit":0}`, `{"offset":-1}`, `{"company_id":12345}`, `{"dept":"x"}`},
		{`{}`, `{"employee_id":"1"}`, `{"employee_id":"1","month":"2026-13"}`, `{"employee_id":"1","month":"2026-5"}`,
			`{"employee_id":"","month":"2026-05"}`, `{"employee_id":101,"month":"2026-05"}`},
		{`{"employee_ids":[],"month":"2026-05"}`, `{"over_minutes":-1,"month":"2026-05"}`,
			`{"limit":501,"month":"2026-05"}`, `{"employee_id":"1","month":"May 2026"}`,
			`{"employee_id":"1","month":"2026-00"}`},
	} {
		for _, arguments := range list {
			if m.Tools[i].Input().Validate([]byte(arguments)) == nil {
				t.Errorf("%s takes %s", m.Tools[i].Name, arguments)
			}
		}
	}
}
