package main

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

func (f *freee) statuses() []string { return []string{active, retired} }

// employees joins three lists by id: everybody, also those who have left (companies/{id}/employees); today's departments and positions
// (employee_group_memberships); and, unless it is configured away, the kind of employment (employees), which comes with pay, bank
// account and dependants that are not read.
func (f *freee) employees(ctx context.Context) (*roster, error) {
	if err := f.resolveCompany(ctx); err != nil {
		return nil, err
	}
	all := &roster{}
	people, err := f.everybody(ctx)
	if err != nil {
		return nil, f.withRole(ctx, err)
	}
	all.company = f.company
	if err := f.addDepartments(ctx, people, all); err != nil {
		return nil, f.withRole(ctx, err)
	}
	if err := f.addEmployment(ctx, people, all); err != nil {
		return nil, f.withRole(ctx, err)
	}
	for _, p := range people {
		if p.Name == "" {
			d := f.document()
			d.missing("display_name")
			return nil, d.err
		}
		all.people = append(all.people, p.employee)
	}
	return all, nil
}

// freeePerson is an employee while the lists are joined.
type freeePerson struct {
	employee
	paidNextMonth bool
	onPayroll     bool
}

func (f *freee) everybody(ctx context.Context) ([]*freeePerson, error) {
	path := "/api/v1/companies/" + f.company + "/employees"
	list, _, err := f.pages(ctx, path, "", url.Values{everyone: {"true"}})
	if err != nil {
		return nil, err
	}
	people := make([]*freeePerson, len(list))
	for i, o := range list {
		if people[i] = f.person(o); o.err != nil {
			return nil, o.err
		}
	}
	return people, nil
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
	// The last day of work is still one of work.
	if p.RetireDate != nil && *p.RetireDate < dateOf(f.now) {
		p.Status = retired
	}
	if pay := o.optionalText("month_of_pay_day"); pay != nil {
		p.onPayroll, p.paidNextMonth = true, *pay == "next_month"
	}
	return p
}

// addDepartments fills in departments and positions as they are today.
func (f *freee) addDepartments(ctx context.Context, people []*freeePerson, all *roster) error {
	list, total, err := f.pages(ctx, "/api/v1/employee_group_memberships", "employee_group_memberships", f.query(everyone, "true", "base_date", string(dateOf(f.now))))
	if err != nil {
		return err
	}
	if len(list) < total {
		all.notes = append(all.notes, f.lang.sprintf("freeeは所属情報を%d件と答えましたが、%d件しか返しませんでした。読み込み中に変更があった可能性があります。",
			"freee counts %d people with departments but returned %d: the list may have changed while it was read", total, len(list)))
	}
	byID := index(people)
	for _, o := range list {
		if p := byID[o.id("id")]; p != nil {
			p.setDepartment(o.children("group_memberships"))
		}
		if o.err != nil {
			return o.err
		}
	}
	return nil
}

func index(people []*freeePerson) map[string]*freeePerson {
	byID := make(map[string]*freeePerson, len(people))
	for _, p := range people {
		byID[p.ID] = p
	}
	return byID
}

// setDepartment takes the main duty, else one that is not marked, else the first.
func (p *freeePerson) setDepartment(memberships []object) {
	slices.SortStableFunc(memberships, func(a, b object) int { return dutyRank(a) - dutyRank(b) })
	for i, o := range memberships {
		if i == 0 {
			p.Department, p.Position = o.optionalText("group_name"), o.optionalText("position_name")
		}
		for _, name := range []*string{o.optionalText("group_name"), o.optionalText("parent_group_name")} {
			if name != nil && !slices.Contains(p.departments, *name) {
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

// addEmployment fills in the kind of employment, titles where there is no position, and names that are missing so far.
func (f *freee) addEmployment(ctx context.Context, people []*freeePerson, all *roster) error {
	if !f.withEmployment {
		all.notes = append(all.notes, f.lang.pick("雇用形態は、設定 include_employment_type が無効のため取得していません。",
			"The kind of employment is not read, because the setting include_employment_type is off."))
		return nil
	}
	m := f.employmentMonth(people)
	list, _, err := f.pages(ctx, "/api/v1/employees", "employees",
		f.query(everyone, "true", "year", strconv.Itoa(m.year), "month", strconv.Itoa(int(m.month))))
	if err != nil {
		return err
	}
	byID := index(people)
	found := 0
	for _, o := range list {
		if p := byID[o.id("id")]; p != nil && o.has("profile_rule") {
			p.setProfile(o.child("profile_rule"))
			found++
		}
		if o.err != nil {
			return o.err
		}
	}
	if left := len(people) - found; left > 0 {
		all.notes = append(all.notes, f.lang.sprintf("%[2]d人中%[1]d人の雇用形態は不明です。freeeは、退職者や未入社の人などの雇用形態を返しません。",
			"The kind of employment is unknown for %d of %d: freee leaves out those who have left or not joined yet, and some others.", left, len(people)))
	}
	return nil
}

// employmentMonth is the month to ask for so that freee answers for the current one: where most are paid in the following month, freee
// answers for the month after the one asked for.
func (f *freee) employmentMonth(people []*freeePerson) month {
	next, same := 0, 0
	for _, p := range people {
		switch {
		case p.paidNextMonth:
			next++
		case p.onPayroll:
			same++
		}
	}
	if next > same {
		return monthOf(f.now).add(-1)
	}
	return monthOf(f.now)
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
		raw := o.text("employment_type")
		shown := clip(raw)
		p.TypeRaw = &shown
		if known, ok := freeeEmployment[raw]; ok {
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
