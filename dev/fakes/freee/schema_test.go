package freee

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// openAPI is the vendor's published schema. It is not part of the project: where it is absent, tests that need it are
// skipped.
func openAPI(t *testing.T) map[string]any {
	t.Helper()
	root := cmp.Or(os.Getenv("HAKO_REFERENCE"), filepath.Join("..", "..", "..", "..", "shared", "reference"))
	data, err := os.ReadFile(filepath.Join(root, "data", "freee", "freee-hr-openapi3.json"))
	if os.IsNotExist(err) {
		t.Skip("freee's schema is not here; HAKO_REFERENCE says where it is")
	}
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return document.(map[string]any)
}

// tighten turns OpenAPI 3.0 into JSON Schema, and makes it stricter: an object has all its properties and no other.
func tighten(value any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			tighten(item)
		}
	case map[string]any:
		for _, member := range value {
			tighten(member)
		}
		if kind, ok := value["type"].(string); ok && value["nullable"] == true {
			value["type"] = []any{kind, "null"}
			if enum, ok := value["enum"].([]any); ok {
				value["enum"] = append(enum, nil)
			}
		}
		if properties, ok := value["properties"].(map[string]any); ok && value["type"] == "object" {
			value["additionalProperties"] = false
			required := []any{}
			for _, name := range slices.Sorted(maps.Keys(properties)) {
				required = append(required, name)
			}
			value["required"] = required
		}
	}
}

// TestAgainstTheSchema holds every kind of answer, and the parameters of the requests that are accepted, against
// freee's schema.
func TestAgainstTheSchema(t *testing.T) {
	t.Parallel()
	document := openAPI(t)
	paths := document["paths"].(map[string]any)
	tighten(document["components"])
	tighten(paths)
	// Some fields of these are optional by their nature.
	schemas := document["components"].(map[string]any)["schemas"].(map[string]any)
	for _, name := range []string{"unauthorizedError", "accessDeniedError", "error", "forbiddenError"} {
		delete(schemas[name].(map[string]any), "required")
		delete(schemas[name].(map[string]any), "additionalProperties")
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("freee.json", document); err != nil {
		t.Fatal(err)
	}
	people := Demo()
	people[0].Employees[1].Days["2026-05-25"] = Day{Paid: []PaidLeave{{"half", 240, 0.5}, {"hourly", 60, 0}},
		LegacyLeave: true}
	people[1].Employees[0].Days["2026-05-25"] = Day{TwoSpecial: true}
	fake := New(&Options{Companies: people})
	token := fake.Issue(0).Access
	for _, test := range []struct {
		path, template string
		status         int
	}{
		{"users/me", "users/me", 200},
		{"companies/12345/employees?limit=2&offset=1&with_no_payroll_calculation=true",
			"companies/{company_id}/employees", 200},
		{"employees?company_id=12345&year=2026&month=4&limit=100", "employees", 200},
		{"employee_group_memberships?company_id=12345&base_date=2026-05-01&employee_ids=101,102",
			"employee_group_memberships", 200},
		{"employees/102/work_record_summaries/2026/6?company_id=12345&work_records=true",
			"employees/{employee_id}/work_record_summaries/{year}/{month}", 200},
		{"employees/102/work_record_summaries/2026/6?company_id=12345",
			"employees/{employee_id}/work_record_summaries/{year}/{month}", 200},
		{"employees/103/work_records/2026-05-12?company_id=12345", "employees/{employee_id}/work_records/{date}", 200},
		{"employees/102/work_records/2026-05-25?company_id=12345", "employees/{employee_id}/work_records/{date}", 200},
		{"employees/201/work_records/2026-05-25?company_id=67890", "employees/{employee_id}/work_records/{date}", 400},
		{"companies/67890/employees", "companies/{company_id}/employees", 403},
		{"companies/1/employees", "companies/{company_id}/employees", 403},
		{"employees?company_id=12345", "employees", 400},
		{"employees?company_id=12345&year=2026&month=13", "employees", 400},
		{"employees?company_id=12345&year=2026&month=4&limit=101", "employees", 400},
		{"employees?company_id=12345&year=2026&month=4&page=1", "employees", 400},
		{"employee_group_memberships?company_id=12345", "employee_group_memberships", 400},
		{"employees/102/work_records/20260512?company_id=12345", "employees/{employee_id}/work_records/{date}", 400},
		{"employees/abc/work_records/2026-05-12?company_id=12345", "employees/{employee_id}/work_records/{date}", 400},
	} {
		t.Run(fmt.Sprint(test.status, " ", test.path), func(t *testing.T) {
			answer := fetch(t, fake, "/hr/api/v1/"+test.path, token)
			if answer.Code != test.status {
				t.Fatalf("%d %s, want %d", answer.Code, answer.Body, test.status)
			}
			operation := paths["/api/v1/"+test.template].(map[string]any)["get"].(map[string]any)
			checkBody(t, compiler, test.template, operation, answer)
			if test.status == http.StatusOK {
				checkParameters(t, operation, test.path)
			}
		})
	}
}

func fetch(t *testing.T, fake *Server, target, token string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	fake.ServeHTTP(w, r)
	return w
}

func checkBody(t *testing.T, compiler *jsonschema.Compiler, template string, operation map[string]any,
	answer *httptest.ResponseRecorder) {
	t.Helper()
	kind, _, _ := strings.Cut(answer.Header().Get("Content-Type"), ";")
	status := fmt.Sprint(answer.Code)
	content := operation["responses"].(map[string]any)[status].(map[string]any)["content"].(map[string]any)
	if content[kind] == nil {
		t.Fatalf("the schema has no %s for %s", kind, status)
	}
	pointer := strings.NewReplacer("~", "~0", "/", "~1")
	schema, err := compiler.Compile("freee.json#/paths/" + url.PathEscape(pointer.Replace("/api/v1/"+template)) +
		"/get/responses/" + status + "/content/" + pointer.Replace(kind) + "/schema")
	if err != nil {
		t.Fatal(err)
	}
	body, err := jsonschema.UnmarshalJSON(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(body); err != nil {
		t.Errorf("%v", err)
	}
}

// checkParameters holds that a request that the fake accepts has the parameters that the schema requires, and no
// others.
func checkParameters(t *testing.T, operation map[string]any, path string) {
	t.Helper()
	_, text, _ := strings.Cut(path, "?")
	query, err := url.ParseQuery(text)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := operation["parameters"].([]any)
	for _, parameter := range list {
		p := parameter.(map[string]any)
		name := p["name"].(string)
		if p["in"] == "query" && p["required"] == true && !query.Has(name) {
			t.Errorf("%s is required", name)
		}
		query.Del(name)
	}
	if len(query) > 0 {
		t.Errorf("parameters that the schema does not have: %v", query)
	}
}

// TestErrorForms compares the refusals with those that were seen or are documented.
func TestErrorForms(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options Options
		prepare func(*Server)
		token   func(Tokens) string
		status  int
		body    string
	}{
		"no token": {Options{}, nil, func(Tokens) string { return "" }, 401, `{"message":"ログインをしてください。"}`},
		"expired": {Options{}, (*Server).ExpireAccess, access, 401,
			`{"code":"expired_access_token","message":"アクセスする権限がありません"}`},
		"expired, as 403": {Options{Expired403: true}, (*Server).ExpireAccess, access, 403,
			`{"code":"expired_access_token","error":"access_denied","message":"アクセスする権限がありません"}`},
		"revoked": {Options{}, (*Server).Revoke, access, 401, `{"message":"ログインをしてください。"}`},
		"over the limit": {Options{RateLimit: 1}, func(s *Server) { s.admit(httptest.NewRecorder(), s.options.Now()) },
			access, 429, ""},
		"a refresh token": {Options{}, nil, func(p Tokens) string { return p.Refresh }, 401,
			`{"message":"ログインをしてください。"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := New(&test.options)
			pair := fake.Issue(0)
			if test.prepare != nil {
				test.prepare(fake)
			}
			answer := fetch(t, fake, "/hr/api/v1/users/me", test.token(pair))
			if answer.Code != test.status || test.body != "" && answer.Body.String() != test.body {
				t.Errorf("%d %s, want %d %s", answer.Code, answer.Body, test.status, test.body)
			}
			for _, header := range []string{"X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
				if answer.Header().Get(header) == "" {
					t.Errorf("no %s", header)
				}
			}
		})
	}
}

func access(p Tokens) string { return p.Access }

func decode[T any](t *testing.T, data []byte) (value T) {
	t.Helper()
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return value
}
