package main

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

func (f *freee) statuses() []string { return []string{active, retired, upcoming} }

// employees joins three lists by id: everybody, also those who have left (companies/{id}/employees); today's
// departments and positions (employee_group_memberships); and, unless it is configured away, the kind of employment
// (employees), which comes with pay, bank account and dependants that are not read.
func (f *freee) employees(ctx context.Context) (*roster, error) {
	join := f.join(dateOf(f.now))
	return join.read(ctx, join.everybody, join.departments, join.employment)
}

// members does without the kind of employment, and with it without the answers that carry pay.
func (f *freee) members(ctx context.Context, on date) (*roster, error) {
	join := f.join(on)
	return join.read(ctx, join.everybody, join.departments)
}

// freeeJoin is the people so far, while list after list is read.
type freeeJoin struct {
	*freee
	on     date // whose departments are read
	people []*freeePerson
	byID   map[string]*freeePerson
	notes  []string
}

func (f *freee) join(on date) *freeeJoin {
	return &freeeJoin{freee: f, on: on, byID: map[string]*freeePerson{}}
}

func (j *freeeJoin) read(ctx context.Context, lists ...func(context.Context) error) (*roster, error) {
	if err := j.resolveCompany(ctx); err != nil {
		return nil, err
	}
	for _, read := range lists {
		if err := read(ctx); err != nil {
			return nil, j.withRole(ctx, err)
		}
	}
	return j.roster()
}

// freeePerson is an employee while the lists are joined.
type freeePerson struct {
	employee
	paidNextMonth bool
	onPayroll     bool
	closingDay    int // of pay periods; 31 is the end of the month
}

func (j *freeeJoin) roster() (*roster, error) {
	all := &roster{company: j.company, notes: j.notes, about: j.about}
	for _, p := range j.people {
		if p.Name == "" {
			d := j.document()
			d.missing("display_name")
			return nil, d.err
		}
		all.people = append(all.people, p.employee)
	}
	return all, nil
}

func (j *freeeJoin) everybody(ctx context.Context) error {
	_, _, err := j.pages(ctx, "/api/v1/companies/"+j.company+"/employees", "", url.Values{everyone: {"true"}},
		func(o object) {
			p := j.person(o)
			j.people, j.byID[p.ID] = append(j.people, p), p
		})
	if err == nil {
		j.freee.people = j.byID
	}
	return err
}

// everyone is the parameter that includes people outside the payroll: they are employees all the same.
const everyone = "with_no_payroll_calculation"

func (f *freee) person(o object) *freeePerson {
	p := &freeePerson{employee: employee{
		ID:         o.id("id"),
		Code:       o.optionalText("num"),
		HireDate:   o.optionalDate("entry_date"),
		RetireDate: o.nullableDate("retire_date"),
		Type:       unknown,
		Status:     active,
	}}
	if name := o.optionalText("display_name"); name != nil {
		p.Name = *name
	}
	p.setStatus(dateOf(f.now))
	if pay := o.optionalText("month_of_pay_day"); pay != nil {
		p.onPayroll, p.paidNextMonth = true, *pay == "next_month"
		p.closingDay = int(or0(o.optionalNumber("closing_day")))
	}
	return p
}

// departments fills in departments and positions as they are on the day.
func (j *freeeJoin) departments(ctx context.Context) error {
	items, total, err := j.pages(ctx, "/api/v1/employee_group_memberships", "employee_group_memberships",
		j.query(everyone, "true", "base_date", string(j.on)), func(o object) {
			if p := j.byID[o.id("id")]; p != nil {
				p.setDepartment(o.children("group_memberships"))
			}
		})
	if err == nil && items < total {
		j.notes = append(j.notes, j.lang.sprintf("freeeは所属情報を%d件と答えましたが、%d件しか返しませんでした。読み込み中に変更があった可能性があります。",
			"freee counts %d people with departments but returned %d: the list may have changed while it was read",
			total, items))
	}
	return err
}

// setDepartment takes the main duty, else one that is not marked, else the first.
func (p *freeePerson) setDepartment(memberships []object) {
	slices.SortStableFunc(memberships, func(a, b object) int { return dutyRank(a) - dutyRank(b) })
	for i, o := range memberships {
		if i == 0 {
			p.Department, p.Position = o.optionalText("group_name"), o.optionalText("position_name")
		}
		for _, name := range []*string{o.optionalText("group_name"), o.optionalText("parent_group_name")} {
			if name == nil {
				continue
			}
			if i == 0 {
				p.main = append(p.main, *name)
			}
			if !slices.Contains(p.departments, *name) {
				p.departments = append(p.departments, *name)
			}
		}
	}
}

func dutyRank(o object) int {
	switch deref(o.optionalText("main_duty")) {
	case "main_duty":
		return 0
	case "unspecified":
		return 1
	}
	return 2
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// employment fills in the kind of employment, titles where there is no position, and names that are missing so far.
func (j *freeeJoin) employment(ctx context.Context) error {
	if !j.withEmployment {
		j.notes = append(j.notes, j.lang.pick("雇用形態は、設定 include_employment_type が無効のため取得していません。",
			"The kind of employment is not read, because the setting include_employment_type is off."))
		return nil
	}
	m := j.employmentMonth()
	_, _, err := j.pages(ctx, "/api/v1/employees", "employees",
		j.query(everyone, "true", "year", strconv.Itoa(m.year), "month", strconv.Itoa(int(m.month))), func(o object) {
			if p := j.byID[o.id("id")]; p != nil && o.has("profile_rule") {
				p.setProfile(o.child("profile_rule"))
			}
		})
	return err
}

// about notes for how many of those who are shown freee gives no kind of employment.
func (j *freeeJoin) about(shown []employee) []string {
	left := 0
	for _, e := range shown {
		if e.TypeRaw == nil {
			left++
		}
	}
	if left == 0 || !j.withEmployment {
		return nil
	}
	return []string{j.lang.sprintf("%[2]d人中%[1]d人の雇用形態は不明です。freeeは、退職者や未入社の人などの雇用形態を返しません。",
		"The kind of employment is unknown for %d of %d: freee leaves out those who have left or not joined yet, and some others.", left, len(shown))}
}

// employmentMonth is the month to ask for so that freee answers for the current one: where most are paid in the
// following month, freee answers for the month after the one asked for.
func (j *freeeJoin) employmentMonth() month {
	next, same := 0, 0
	for _, p := range j.people {
		switch {
		case p.paidNextMonth:
			next++
		case p.onPayroll:
			same++
		}
	}
	if next > same {
		return monthOf(j.now).add(-1)
	}
	return monthOf(j.now)
}

// freeeEmployment maps profile_rule.employment_type. The schema does not enumerate it, and "" is その他.
var freeeEmployment = map[string]string{
	"regular":      fullTime,
	"part-time":    partTime,
	"fixed-term":   contract,
	"temporary":    contract,
	"board-member": executive,
}

func (p *freeePerson) setProfile(o object) {
	if o.has("employment_type") {
		p.TypeRaw = clipped(o.text("employment_type"))
		if known, ok := freeeEmployment[*p.TypeRaw]; ok {
			p.Type = known
		}
	}
	if p.Position == nil {
		p.Position = o.optionalText("title")
	}
	if p.Name == "" {
		p.Name = strings.TrimSpace(deref(o.optionalText("last_name")) + " " + deref(o.optionalText("first_name")))
	}
}
