package main

import (
	"context"
	"net/url"
	"slices"

	"github.com/hako-run/hako/pdk"
)

// freee is freee HR (人事労務), API version 2022-02-01. Sources: the published OpenAPI schema
// (github.com/freee/freee-api-schema, hr/open-api-3) and developer.freee.co.jp. It has all three capabilities, for all
// companies of the connected user.
type freee struct {
	client

	withEmployment bool   // read kinds of employment
	company        string // the id of the company; empty until it is asked for or resolved
	user           *freeeUser
	// offsets say in which pay months the calendar month was found for the last person: the same ones are asked first
	// for the next.
	offsets []int
	people  map[string]*freeePerson // by id, once the list was read
}

var (
	_ companies          = (*freee)(nil)
	_ employeeLister     = (*freee)(nil)
	_ attendanceLister   = (*freee)(nil)
	_ overtimeCalculator = (*freee)(nil)
)

func newFreee(s *session) (vendor, error) {
	f := &freee{client: s.newClient("freee", s.FreeeURL), withEmployment: s.IncludeEmploymentType}
	f.explain = f.explainStatus
	return f, nil
}

func (f *freee) title() string { return f.name }

// selectCompany checks a company id; an empty one leaves the choice to resolveCompany.
func (f *freee) selectCompany(id string) error {
	if id != "" && !digits(id) {
		return f.lang.errorf("company_id の値 %q は数字ではありません。freeeの事業所IDは整数です。",
			"company_id is %q, and freee's company ids are integers", clip(id))
	}
	f.company = id
	return nil
}

func (f *freee) selectedCompany() string { return f.company }

// freeeUser is the owner of the credential (GET users/me).
type freeeUser struct {
	companies []freeeMembership
	// chosen is the company that was chosen when the credential was connected, if the host knows it.
	chosen string
}

// freeeMembership is a user's place in one company.
type freeeMembership struct {
	id, name, role string
	employee       string // the user's own employee id; empty if freee does not say it
}

// selfOnly is the role of a user who may read nobody's records but their own.
const selfOnly = "self_only"

// me reads the connected user, once per call.
func (f *freee) me(ctx context.Context) (*freeeUser, error) {
	if f.user != nil {
		return f.user, nil
	}
	response, err := f.get(ctx, "/api/v1/users/me", nil)
	if err != nil {
		return nil, err
	}
	d := f.document()
	user := &freeeUser{chosen: companyOf(response)}
	for _, c := range d.parse(response.Body).children("companies") {
		m := freeeMembership{id: c.id("id"), name: deref(c.optionalText("name")), role: deref(c.optionalText("role"))}
		if c.has("employee_id") {
			m.employee = c.id("employee_id")
		}
		user.companies = append(user.companies, m)
	}
	if d.err != nil {
		return nil, d.err
	}
	f.user = user
	return user, nil
}

// resolveCompany finds the default company where none was asked for: the one chosen at consent, else the only one there
// is.
func (f *freee) resolveCompany(ctx context.Context) error {
	if f.company != "" {
		return nil
	}
	user, err := f.me(ctx)
	if err != nil {
		return err
	}
	switch {
	case digits(user.chosen):
		f.company = user.chosen
	case len(user.companies) == 1:
		f.company = user.companies[0].id
	case len(user.companies) == 0:
		return f.lang.errorf("freeeに接続したユーザーは、どの事業所にも属していません。", "the user connected to freee belongs to no company")
	default:
		return f.lang.errorf("freeeの事業所が複数あります。company_id で指定してください: %s",
			"there are several companies in freee; name one with company_id: %s", f.lang.list(user.names()))
	}
	return nil
}

// names lists the companies with their ids.
func (u *freeeUser) names() []string {
	names := make([]string, len(u.companies))
	for i, c := range u.companies {
		names[i] = c.id + " " + clip(c.name)
	}
	return names[:min(len(names), maxNames)]
}

// membership returns the user's place in the company of the call, if the user is known.
func (f *freee) membership() (freeeMembership, bool) {
	if f.user == nil {
		return freeeMembership{}, false
	}
	i := slices.IndexFunc(f.user.companies, func(m freeeMembership) bool { return m.id == f.company })
	if i < 0 {
		return freeeMembership{}, false
	}
	return f.user.companies[i], true
}

// query starts a query with the company.
func (f *freee) query(pairs ...string) url.Values {
	q := url.Values{"company_id": {f.company}}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q
}

// companyOf is the company that the host's credential was connected for.
func companyOf(r *pdk.HTTPResponse) string { return r.Credential["company_id"] }
