package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
)

// employee is one person, in terms that all vendors share. Nothing else about a person is ever shown.
type employee struct {
	ID         string  `json:"id"`
	Code       *string `json:"code"`
	Name       string  `json:"name"`
	Department *string `json:"department"`
	Position   *string `json:"position"`
	Type       string  `json:"employment_type"`
	TypeRaw    *string `json:"employment_type_raw"`
	Status     string  `json:"status"`
	StatusRaw  *string `json:"status_raw"`
	HireDate   *date   `json:"hire_date"`
	RetireDate *date   `json:"retire_date"`
	// IsSecondary reports whether the requested department is not the person's main one.
	IsSecondary bool `json:"is_secondary_member,omitempty"`

	main        []string // the names of the main department, those above it included
	departments []string // the names of every department that the person belongs to, for the filter
}

// Kinds of employment.
const (
	fullTime  = "full_time"
	partTime  = "part_time"
	contract  = "contract"
	executive = "executive"
	otherType = "other"
)

// unknown stands for a value of the vendor's that has no counterpart; the value itself is beside it.
const unknown = "unknown"

// Statuses.
const (
	active   = "active"
	onLeave  = "on_leave"
	retired  = "retired"
	upcoming = "upcoming" // hired, and not at work yet
)

// setStatus sets the status by the dates: the last day of work is still one of work. Vendors list people before their
// first day.
func (e *employee) setStatus(today date) {
	switch {
	case e.RetireDate != nil && *e.RetireDate < today:
		e.Status = retired
	case e.HireDate != nil && *e.HireDate > today:
		e.Status = upcoming
	}
}

// roster is a vendor's list of its company's people.
type roster struct {
	company string // the id of the company, where the vendor has one
	people  []employee
	notes   []string
	// about returns notes on some of the people, those that an answer shows. It may be nil.
	about func(shown []employee) []string
}

// employeesQuery are the arguments of list_employees; the manifest says what they mean.
type employeesQuery struct {
	CompanyID  string `json:"company_id,omitempty"`
	Department string `json:"department,omitempty"`
	Status     string `json:"status,omitempty"`
	Name       string `json:"name,omitempty"`
	Limit      int    `json:"limit,omitempty"`
	Offset     int    `json:"offset,omitempty"`
}

// employeesAnswer is the structured content of list_employees.
type employeesAnswer struct {
	Vendor     string     `json:"vendor"`
	CompanyID  string     `json:"company_id,omitempty"`
	AsOf       date       `json:"as_of"`
	TotalCount int        `json:"total_count"`
	NextOffset *int       `json:"next_offset"`
	Notes      []string   `json:"notes"`
	Employees  []employee `json:"employees"`
}

func listEmployees(ctx context.Context, s *session, in employeesQuery) (any, error) {
	lister, ok := s.vendor.(employeeLister)
	if !ok {
		return nil, s.unsupported("list_employees")
	}
	if err := s.chooseCompany(in.CompanyID); err != nil {
		return nil, err
	}
	if in.Status != "" && !slices.Contains(lister.statuses(), in.Status) {
		return nil, s.lang.errorf("%sは在籍ステータス %s を公開していないため、絞り込めません。使えるのは %s です。",
			"%s does not expose the status %s, so it cannot be filtered by. It has: %s", s.vendor.title(),
			clip(in.Status), s.lang.list(lister.statuses()))
	}
	all, err := lister.employees(ctx)
	if err != nil {
		return nil, err
	}
	matching := in.filter(all.people)
	shown, next := pageOf(matching, in.Offset, cmp.Or(in.Limit, defaultLimit))
	out := &employeesAnswer{Vendor: s.Vendor, CompanyID: all.company, AsOf: dateOf(s.now), TotalCount: len(matching),
		NextOffset: next,
		Notes:      orEmpty(all.notes), Employees: orEmpty(shown)}
	if all.about != nil {
		out.Notes = append(out.Notes, all.about(shown)...)
	}
	switch {
	case len(matching) > 0:
	case in.Name != "" && len(employeesQuery{Name: in.Name}.filter(all.people)) == 0:
		out.Notes = append(out.Notes, s.noName(in.Name, len(all.people)))
	case in.Department != "":
		out.Notes = append(out.Notes, s.noDepartment(in.Department, all.people))
	}
	return out, nil
}

// filter returns the people that the query asks for, in the order of their codes.
func (q employeesQuery) filter(people []employee) []employee {
	matching := slices.DeleteFunc(slices.Clone(people), func(e employee) bool {
		return q.Status != "" && e.Status != q.Status ||
			q.Department != "" && !hasName(e.departments, q.Department) ||
			!hasWords(e.Name, q.Name)
	})
	for i := range matching {
		matching[i].IsSecondary = q.Department != "" && !hasName(matching[i].main, q.Department)
	}
	slices.SortStableFunc(matching, func(a, b employee) int {
		return cmp.Or(compareCodes(a.Code, b.Code), cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID))
	})
	return matching
}

// hasWords reports whether a name has each of the words, in any order and with any spaces between them.
func hasWords(name, words string) bool {
	for word := range strings.FieldsSeq(words) {
		if !strings.Contains(fold(name), fold(word)) {
			return false
		}
	}
	return true
}

func hasName(names []string, name string) bool {
	return slices.ContainsFunc(names, func(other string) bool { return fold(other) == fold(name) })
}

// fold makes names comparable: without spaces, and in one case.
func fold(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), "")) }

// compareCodes orders employee numbers, those without one last; numbers of digits alone are compared as numbers.
func compareCodes(a, b *string) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	case decimal(*a) && decimal(*b):
		return cmp.Or(cmp.Compare(len(*a), len(*b)), strings.Compare(*a, *b))
	}
	return strings.Compare(*a, *b)
}

// sortedKeys lists the members of a set.
func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// maxNames bounds the names that a note lists.
const maxNames = 50

// noName is the message for a name that nobody in the company has.
func (s *session) noName(asked string, people int) string {
	return s.lang.sprintf("氏名に「%s」を含む従業員はいません（全%d人）。氏名の一部や別の表記（漢字、かな、ローマ字）で調べるか、name を指定せずに一覧を確認してください。",
		"nobody's name contains %q (of %d people). Try a part of it or another spelling (kanji, kana, Latin letters), or leave out name.",
		clip(asked), people)
}

// noDepartment says which departments there are, for a caller that named none of them.
func (s *session) noDepartment(asked string, people []employee) string {
	var names []string
	for _, e := range people {
		names = append(names, e.departments...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return s.lang.sprintf("部署「%s」に該当する従業員はいません。登録されている部署: %s", "nobody is in a department called %q. There are: %s",
		clip(asked), s.lang.list(names[:min(len(names), maxNames)]))
}
