package main

import (
	"context"
	"net/url"
	"strings"
)

func (k *kot) statuses() []string { return []string{active, retired, upcoming} }

// employees reads everybody, also those who have left.
func (k *kot) employees(ctx context.Context) (*roster, error) { return k.members(ctx, dateOf(k.now)) }

func (k *kot) members(ctx context.Context, on date) (*roster, error) {
	response, err := k.get(ctx, "/employees", url.Values{
		"date":             {string(on)},
		"includeResigner":  {"true"},
		"additionalFields": {"hiredDate,resignationDate"},
	})
	if err != nil {
		return nil, err
	}
	d := k.document()
	all := &roster{about: k.unmapped}
	for _, o := range d.parseList(response.Body, "employees") {
		all.people = append(all.people, k.employee(o))
	}
	return all, d.err
}

// unmapped notes the employment types of those who are shown that the setting does not map.
func (k *kot) unmapped(shown []employee) []string {
	types := map[string]bool{}
	for _, e := range shown {
		if e.Type == unknown && e.TypeRaw != nil {
			types[*e.TypeRaw] = true
		}
	}
	if len(types) == 0 {
		return nil
	}
	return []string{k.lang.sprintf("雇用区分 %s の対応が設定 kot_employment_types にないため、unknown にしました。",
		"The setting kot_employment_types does not map these employment types, so they are unknown: %s",
		k.lang.list(sortedKeys(types)))}
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
	e.setStatus(dateOf(k.now))
	if e.Department != nil {
		e.main = append(e.main, *e.Department)
		e.departments = append(e.departments, *e.Department)
	}
	for _, group := range o.optionalChildren("employeeGroups") {
		if name := group.optionalText("name"); name != nil {
			e.departments = append(e.departments, *name)
		}
	}
	return e
}
