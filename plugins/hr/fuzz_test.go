package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	freeefake "github.com/hako-run/hako/dev/fakes/freee"
	kotfake "github.com/hako-run/hako/dev/fakes/kot"
	smarthrfake "github.com/hako-run/hako/dev/fakes/smarthr"
)

// body is a fake's answer, cut down, as a seed.
func body(f *testing.F, vendor http.Handler, token, target string) []byte {
	f.Helper()
	r := httptest.NewRequestWithContext(f.Context(), http.MethodGet, target, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	vendor.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		f.Fatalf("%s: %d %s", target, w.Code, w.Body)
	}
	var answer any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		f.Fatal(err)
	}
	data, err := json.Marshal(first(answer))
	if err != nil {
		f.Fatal(err)
	}
	return data
}

// first cuts arrays down to one item, so that seeds are small.
func first(value any) any {
	switch value := value.(type) {
	case []any:
		if len(value) > 0 {
			return []any{first(value[0])}
		}
	case map[string]any:
		for name, member := range value {
			if value[name] = first(member); strings.Contains(name, "rule") && name != "profile_rule" {
				delete(value, name)
			}
		}
	}
	return value
}

// checkFuzzed holds that what was read without a fault can be shown.
func checkFuzzed(t *testing.T, value any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil || !utf8.Valid(data) {
		t.Errorf("%v: %q", err, data)
	}
}

// FuzzFreee reads any bytes as each of freee's answers.
func FuzzFreee(f *testing.F) {
	fake := freeefake.New(nil)
	token := fake.Issue(0).Access
	for _, target := range []string{
		"users/me", "companies/12345/employees", "employees?company_id=12345&year=2026&month=4",
		"employee_group_memberships?company_id=12345&base_date=2026-05-01",
		"employees/102/work_record_summaries/2026/6?company_id=12345&work_records=true",
		"employees/103/work_records/2026-05-12?company_id=12345",
	} {
		f.Add(body(f, fake, token, "/hr/api/v1/"+target))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &session{settings: defaultSettings(), lang: english, now: noon}
		v, err := newFreee(s)
		if err != nil {
			t.Fatal(err)
		}
		fr := v.(*freee)
		d := fr.document()
		if r := freeeDay(d.parse(data)); d.err == nil {
			checkFuzzed(t, r)
		}
		d = fr.document()
		p := payMonth{figures: d.parse(data), complete: true}
		if sums := p.totals(); d.err == nil {
			checkFuzzed(t, sums)
			checkFuzzed(t, freeeFigures(p.figures))
		}
		d = fr.document()
		for _, o := range d.parse(data).children("work_records") {
			p.days = append(p.days, freeeDay(o))
		}
		if d.err == nil {
			checkFuzzed(t, sumDays(period{"2026-05-01", "2026-05-31"}, p.days))
		}
		d = fr.document()
		for _, o := range d.parseList(data, "employees") {
			person := fr.person(o)
			person.setDepartment(o.optionalChildren("group_memberships"))
			if o.has("profile_rule") {
				person.setProfile(o.child("profile_rule"))
			}
			if d.err == nil {
				checkFuzzed(t, person.employee)
			}
		}
		var problem freeeProblem
		if json.Unmarshal(data, &problem) == nil {
			checkFuzzed(t, problem.messages())
		}
	})
}

// FuzzKOT reads any bytes as each of KING OF TIME's answers.
func FuzzKOT(f *testing.F) {
	fake := kotfake.New(&kotfake.Options{Now: noonClock})
	for _, target := range []string{"employees?additionalFields=hiredDate,resignationDate&includeResigner=true", "daily-workings?start=2026-05-01&end=2026-05-20",
		"daily-workings/timerecord?start=2026-05-01&end=2026-05-20", "monthly-workings/2026-05"} {
		f.Add(body(f, fake, "kot-token", "/v1.0/"+target))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &session{settings: defaultSettings(), lang: japanese, now: noon}
		v, err := newKOT(s)
		if err != nil {
			t.Fatal(err)
		}
		k := v.(*kot)
		_ = k.entries(data, "/daily-workings", map[string]int{kotPerson: 0}, func(_ int, o object) {
			r := k.record(o)
			if r.setKOTClock(o); o.err == nil {
				checkFuzzed(t, r)
			}
		})
		d := k.document()
		for _, o := range d.parseList(data, "list") {
			e := k.employee(o)
			m := kotMonth{figures: o}
			if sums := m.totals(nil); d.err == nil {
				checkFuzzed(t, e)
				checkFuzzed(t, sums)
				checkFuzzed(t, kotFigures(o))
			}
		}
	})
}

// FuzzSmartHR reads any bytes as a page of SmartHR's.
func FuzzSmartHR(f *testing.F) {
	f.Add(body(f, smarthrfake.New(nil), "smarthr-token", "/api/v1/crews"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h := &smarthr{client{lang: english, name: "SmartHR", now: noon}}
		d := h.document()
		for _, o := range d.parseList(data, "crews") {
			if e := h.employee(o); d.err == nil {
				checkFuzzed(t, e)
			}
		}
	})
}

// FuzzMonth reads any text as a month.
func FuzzMonth(f *testing.F) {
	for _, text := range []string{"2026-05", "2026-5", "0000-00", "2026-05-01", "２０２６-05"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMonth(english, text)
		if err != nil {
			return
		}
		if days := m.days(); m.String() != text || days.Start > days.End || string(days.Start)[:7] != text ||
			string(days.End)[:7] != text {
			t.Errorf("%s is %s with the days %v", text, m, days)
		}
	})
}
