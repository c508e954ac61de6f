package main

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	freeefake "github.com/hako-run/hako/dev/fakes/freee"
	kotfake "github.com/hako-run/hako/dev/fakes/kot"
)

// vendorDays returns what a vendor tells of people's days in May 2026, before anything is left out.
func vendorDays(t *testing.T, config settings, ids ...string) ([]result[attendance], error) {
	t.Helper()
	run := func(ctx context.Context, s *session, in monthQuery) (any, error) {
		who, m, err := in.people(ctx, s)
		if err != nil {
			return nil, err
		}
		return s.vendor.(attendanceLister).attendance(ctx, idsOf(who.people), m)
	}
	results, err := callAny(t, run, monthQuery{EmployeeIDs: ids, Month: "2026-05"}, config, english)
	if err != nil {
		return nil, err
	}
	return results.([]result[attendance]), nil
}

// expand reads a condensed answer as its schema describes it, and returns each day with all its fields, those that are
// not known as nil.
func expand(t *testing.T, a attendance) (days []map[string]any) {
	t.Helper()
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		NotKnown       []string            `json:"not_known"`
		WithoutEntries map[string][]string `json:"days_without_entries"`
		Records        []map[string]any    `json:"records"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		t.Fatal(err)
	}
	for dayType, dates := range answer.WithoutEntries {
		for _, date := range dates {
			answer.Records = append(answer.Records, map[string]any{"date": date, "day_type": dayType})
		}
	}
	for _, r := range answer.Records {
		notKnown := slices.Clone(answer.NotKnown)
		if own, ok := r["not_known"].([]any); ok {
			for _, name := range own {
				notKnown = append(notKnown, name.(string))
			}
		}
		delete(r, "not_known")
		for name, zero := range zeros() {
			if _, ok := r[name]; ok {
				continue
			}
			if r[name] = zero; slices.Contains(notKnown, name) {
				r[name] = nil
			}
		}
		days = append(days, r)
	}
	slices.SortFunc(days, func(a, b map[string]any) int { return cmp.Compare(a["date"].(string), b["date"].(string)) })
	return days
}

// zeros returns what a field of a record stands for that is left out.
func zeros() map[string]any {
	fields := map[string]any{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[record]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch kind := f.Type; {
		case name == "" || name == "date" || name == "day_type" || name == "not_known":
		case kind == reflect.TypeFor[*string]() || kind.Kind() == reflect.Slice:
			fields[name] = nil
		case kind == reflect.TypeFor[bool]() || kind == reflect.TypeFor[*bool]():
			fields[name] = false
		default:
			fields[name] = 0.0
		}
	}
	return fields
}

// full returns each day of an answer that is not condensed, with all its fields.
func full(t *testing.T, a attendance) (days []map[string]any) {
	t.Helper()
	for _, r := range a.Records {
		fields, day := reflect.ValueOf(r), map[string]any{}
		for _, f := range reflect.VisibleFields(fields.Type()) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "not_known" || name == "day_type_raw" && r.DayType != unknown {
				continue
			}
			data, err := json.Marshal(fields.FieldByIndex(f.Index).Interface())
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := json.Unmarshal(data, &value); err != nil {
				t.Fatal(err)
			}
			day[name] = value
		}
		if r.DayType != unknown {
			day["day_type_raw"] = nil
		}
		days = append(days, day)
	}
	return days
}

// TestCondense holds that the short form of days loses no figure: read by its description, it gives all that the vendor
// told and what it did not tell.
func TestCondense(t *testing.T) {
	t.Parallel()
	_, freee := fakeFreee(t, func(o *freeefake.Options) {
		o.Companies[0].Employees[1].Days["2026-05-22"] = freeefake.Day{Work: []freeefake.Span{{In: "09:00"}}}
	})
	freee.CompanyID = "12345"
	_, kot := fakeKOT(t, func(o *kotfake.Options) {
		o.Employees = kotfake.Demo()
		o.Employees[0].Days["2026-05-25"] = kotfake.Day{Type: "創立記念日", In: "09:00", Out: "12:00"}
		o.Employees[0].Days["2026-05-26"] = kotfake.Day{Type: "創立記念日"}
	})
	for name, test := range map[string]struct {
		config settings
		ids    []string
	}{
		"freee": {freee, []string{"101", "102", "103"}},
		"kot":   {kot, []string{kotPerson}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results, err := vendorDays(t, test.config, test.ids...)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range results {
				if r.err != nil {
					t.Fatal(r.err)
				}
				a := r.value
				want := full(t, a)
				before, sums := len(a.Records), sumDays(a.Period, a.Records)
				a.condense()
				if got := expand(t, a); !reflect.DeepEqual(got, want) {
					for n := range want {
						if n >= len(got) || !reflect.DeepEqual(got[n], want[n]) {
							t.Errorf("%s: a day is\n%v, want\n%v", test.ids[i], got[min(n, len(got)-1)], want[n])
						}
					}
				}
				if again := sumDays(a.Period, a.Records); !reflect.DeepEqual(again, sums) {
					t.Errorf("%s: sums %+v, want %+v", test.ids[i], again, sums)
				}
				if len(a.Records) > before*3/4 {
					t.Errorf("%s: %d of %d days have a record", test.ids[i], len(a.Records), before)
				}
			}
		})
	}
}
