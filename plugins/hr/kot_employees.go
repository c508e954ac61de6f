package main

import (
	"context"
	"net/url"
	"strings"
)

func (k *kot) statuses() []string { return []string{active, retired} }

// employees reads everybody, also those who have left.
func (k *kot) employees(ctx context.Context) (*roster, error) {
	response, err := k.get(ctx, "/employees", url.Values{
		"date":             {string(dateOf(k.now))},
		"includeResigner":  {"true"},
		"additionalFields": {"hiredDate,resignationDate"},
	})
	if err != nil {
		return nil, err
	}
	d := k.document()
	all := &roster{}
	unmapped := map[string]bool{}
	for _, o := range d.parseList(response.Body, "employees") {
		e := k.employee(o)
		if e.Type == unknown && e.TypeRaw != nil {
			unmapped[*e.TypeRaw] = true
		}
		all.people = append(all.people, e)
	}
	if len(unmapped) > 0 {
		all.notes = append(all.notes, k.lang.sprintf("雇用区分 %s の対応が設定 kot_employment_types にないため、unknown にしました。",
			"The setting kot_employment_types does not say what these employment types stand for, so they are unknown: %s", k.lang.list(sortedKeys(unmapped))))
	}
	return all, d.err
}

func (k *kot) employee(o object) employee {
	e := employee{
		ID:         o.key("key"),
		Code:       o.optionalText("code"),
		Name:       strings.TrimSpace(o.text("lastName") + " " + deref(o.optionalText("firstName"))),
		Department: o.optionalText("divisionName"),
		Type:       unknown,
		TypeRaw:    o.optionalText("typeName"),
		Status:     active,
		HireDate:   o.optionalDate("hiredDate"),
		RetireDate: o.optionalDate("resignationDate"),
	}
	if e.Name == "" {
		o.missing(o.place("lastName"))
	}
	if kind, ok := k.kinds[deref(e.TypeRaw)]; ok {
		e.Type = kind
	}
	if e.RetireDate != nil && *e.RetireDate < dateOf(k.now) {
		e.Status = retired
	}
	if e.Department != nil {
		e.departments = append(e.departments, *e.Department)
	}
	for _, group := range o.optionalChildren("employeeGroups") {
		if name := group.optionalText("name"); name != nil {
			e.departments = append(e.departments, *name)
		}
	}
	return e
}
