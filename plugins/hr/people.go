package main

import (
	"context"
	"slices"
)

// monthQuery are the arguments of list_attendance and calculate_overtime; the manifest says what they mean.
type monthQuery struct {
	CompanyID   string   `json:"company_id,omitempty"`
	EmployeeID  string   `json:"employee_id,omitempty"`
	EmployeeIDs []string `json:"employee_ids,omitempty"`
	Department  string   `json:"department,omitempty"`
	Month       string   `json:"month"`
	Limit       int      `json:"limit,omitempty"`
	Offset      int      `json:"offset,omitempty"`
}

// overtimeQuery are the arguments of calculate_overtime.
type overtimeQuery struct {
	monthQuery
	OverMinutes *int `json:"over_minutes,omitempty"`
}

// How many people a page has where the caller does not say. The days of one person are some twenty entries.
const (
	defaultLimit           = 50
	defaultAttendanceLimit = 10
)

// identity is a person's part of a list entry, beside the figures.
type identity struct {
	Code        *string `json:"code"`
	Name        string  `json:"name"`
	Department  *string `json:"department"`
	IsSecondary bool    `json:"is_secondary_member,omitempty"`
}

// subject is a person whose month is asked for. Without a list of the company's people, only the id is known.
type subject struct {
	id string
	*identity
}

func idsOf(people []subject) []string {
	ids := make([]string, len(people))
	for i, p := range people {
		ids[i] = p.id
	}
	return ids
}

// selection are the people that a query asks for.
type selection struct {
	people []subject
	one    bool // asked for by employee_id, and answered without a list
	notes  []string
}

// result holds the data of one person, or why it could not be read.
type result[T any] struct {
	value T
	err   error
}

// header begins the answers about a month.
type header struct {
	Vendor    string `json:"vendor"`
	CompanyID string `json:"company_id,omitempty"`
	Month     string `json:"month"`
	AsOf      date   `json:"as_of"`
}

func (s *session) header(m month) header {
	h := header{Vendor: s.Vendor, Month: m.String(), AsOf: dateOf(s.now)}
	if c, ok := s.vendor.(companies); ok {
		h.CompanyID = c.selectedCompany()
	}
	return h
}

// page begins the answers about several people.
type page struct {
	header
	IsFinal    bool         `json:"is_final"`
	Total      int          `json:"total"`
	NextOffset *int         `json:"next_offset"`
	Notes      []string     `json:"notes"`
	Failed     []failedRead `json:"failed"`
}

// failedRead is a person whose month could not be read.
type failedRead struct {
	EmployeeID string `json:"employee_id"`
	Name       string `json:"name,omitempty"`
	Reason     string `json:"reason"`
}

func (s *session) page(m month, who *selection, next *int) page {
	p := page{header: s.header(m), IsFinal: true, Total: len(who.people), NextOffset: next, Notes: orEmpty(who.notes),
		Failed: []failedRead{}}
	if s.runs(m) {
		p.IsFinal, p.Notes = false, append(p.Notes, s.monthRuns(m))
	}
	return p
}

// add reports whether there is something to show of a person, and notes the failure otherwise.
func (p *page) add(who subject, err error) bool {
	if err == nil {
		return true
	}
	f := failedRead{EmployeeID: who.id, Reason: err.Error()}
	if who.identity != nil {
		f.Name = who.Name
	}
	p.Failed, p.IsFinal = append(p.Failed, f), false
	return false
}

// pageOf returns a part of a list and the offset of what follows, nil at its end.
func pageOf[T any](all []T, offset, limit int) (part []T, next *int) {
	from := min(offset, len(all))
	to := min(from+limit, len(all))
	if to < len(all) {
		next = &to
	}
	return all[from:to], next
}

// people selects the company, reads the month and finds the people that the query asks for: one, several, a department,
// or everybody who is employed on a day of the month.
func (q monthQuery) people(ctx context.Context, s *session) (*selection, month, error) {
	if err := s.chooseCompany(q.CompanyID); err != nil {
		return nil, month{}, err
	}
	m, err := parseMonth(s.lang, q.Month)
	if err == nil {
		err = s.begun(m)
	}
	if err != nil {
		return nil, month{}, err
	}
	given := 0
	for _, is := range []bool{q.EmployeeID != "", len(q.EmployeeIDs) > 0, q.Department != ""} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, month{}, s.lang.errorf("employee_id、employee_ids、department は、どれか1つだけを指定してください。",
			"give one of employee_id, employee_ids and department, or none for the whole company")
	case q.EmployeeID != "":
		return &selection{people: []subject{{id: q.EmployeeID}}, one: true}, m, nil
	case len(q.EmployeeIDs) > 0:
		return &selection{people: subjectsOf(q.EmployeeIDs)}, m, nil
	}
	who, err := s.employedIn(ctx, m, q.Department)
	return who, m, err
}

func subjectsOf(ids []string) (people []subject) {
	seen := map[string]bool{}
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			people = append(people, subject{id: id})
		}
	}
	return people
}

// employedIn finds those who are employed on a day of the month, in a department if one is named.
func (s *session) employedIn(ctx context.Context, m month, department string) (*selection, error) {
	lister, ok := s.vendor.(employeeLister)
	if !ok {
		return nil, s.unsupported("list_employees")
	}
	all, err := lister.members(ctx, min(m.days().End, dateOf(s.now)))
	if err != nil {
		return nil, err
	}
	people := slices.DeleteFunc(slices.Clone(all.people), func(e employee) bool { return !e.employedIn(m.days()) })
	matching := employeesQuery{Department: department}.filter(people)
	who := &selection{notes: slices.Clone(all.notes)}
	if len(matching) == 0 && department != "" {
		who.notes = append(who.notes, s.noDepartment(department, people))
	}
	for _, e := range matching {
		who.people = append(who.people, subject{e.ID, &identity{e.Code, e.Name, e.Department, e.IsSecondary}})
	}
	return who, nil
}

// employedIn reports whether the person is employed on a day of the period, as far as that is known.
func (e *employee) employedIn(p period) bool {
	return (e.HireDate == nil || *e.HireDate <= p.End) && (e.RetireDate == nil || *e.RetireDate >= p.Start)
}

// byID finds the people of a list by their ids.
func byID(ids []string) map[string]int {
	index := make(map[string]int, len(ids))
	for i, id := range ids {
		index[id] = i
	}
	return index
}
