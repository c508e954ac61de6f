package main

import (
	"testing"

	freeefake "github.com/hako-run/hako/dev/fakes/freee"
	kotfake "github.com/hako-run/hako/dev/fakes/kot"
)

// Ids of the made-up people.
const (
	kotPerson      = "8b6ee646a9620b286499c3df6918c488"
	freeePerson102 = "102"
)

// TestAnswers compares whole answers with testdata/answers: every tool of every vendor.
func TestAnswers(t *testing.T) {
	t.Parallel()
	_, freee := fakeFreee(t, nil)
	_, closing20 := fakeFreee(t, nil)
	closing20.CompanyID = "67890"
	_, unreadable := fakeFreee(t, func(o *freeefake.Options) {
		o.Companies[0].Employees[1].Days["2026-05-21"] = freeefake.Day{TwoSpecial: true}
	})
	_, kot := fakeKOT(t, nil)
	_, kot20 := fakeKOT(t, func(o *kotfake.Options) { o.ClosingDay = 20 })
	_, smarthr := fakeSmartHR(t, nil)
	for _, test := range []struct {
		name   string
		config settings
		id     string // of the employee; without one, list_employees
		lang   language
	}{
		{"freee", freee, "", japanese},
		{"freee-day-work", freee, freeePerson102, japanese},
		{"freee-night-work", freee, "103", english},
		{"freee-closing-20", closing20, "201", english},
		{"freee-unreadable-day", unreadable, freeePerson102, japanese},
		{"kot", kot, "", english},
		{"kot-month", kot, kotPerson, japanese},
		{"kot-closing-20", kot20, kotPerson, english},
		{"smarthr", smarthr, "", english},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.id == "" {
				compare(t, test.name+"-employees", listEmployees, employeesQuery{}, test.config, test.lang)
				return
			}
			query := monthQuery{EmployeeID: test.id, Month: "2026-05"}
			compare(t, test.name+"-attendance", listAttendance, query, test.config, test.lang)
			compare(t, test.name+"-overtime", calculateOvertime, overtimeQuery{monthQuery: query}, test.config,
				test.lang)
		})
	}
}

func compare[In any](t *testing.T, name string, run tool[In], in In, config settings, lang language) {
	t.Helper()
	answer, err := callAny(t, run, in, config, lang)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, name, answer)
}
