package freee

import "time"

func (s *Server) me(c *call) {
	if !c.parameters().done() {
		return
	}
	list := []any{}
	for _, company := range s.options.Companies {
		entry := map[string]any{"id": company.ID, "name": company.Name, "role": company.Role,
			"external_cid": "0000000001",
			"employee_id":  nil, "display_name": nil}
		if e := company.employee(company.Self); e != nil {
			entry["employee_id"], entry["display_name"] = e.ID, e.displayName()
		}
		list = append(list, entry)
	}
	c.ok(map[string]any{"id": 1, "companies": list})
}

func (e *Employee) displayName() string { return e.LastName + " " + e.FirstName }

// nullable is null for an empty text.
func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// admin reads the company and refuses everybody but its administrators.
func (p *parameters) admin() *Company {
	company := p.company()
	if company == nil {
		return nil
	}
	if company.Role != "company_admin" {
		p.forbidden()
		p.failed = true
		return nil
	}
	return company
}

// people reads what all lists of people have: the page, the company, and whether those outside the payroll are among
// them. It is the last to read parameters; if company is nil, it has answered.
func (p *parameters) people() (visible []*Employee, w window, company *Company) {
	w = p.window()
	company = p.admin()
	if company == nil {
		return nil, w, nil
	}
	all := p.optionalBool("with_no_payroll_calculation")
	for _, e := range company.Employees {
		if all || !e.OffPayroll {
			visible = append(visible, e)
		}
	}
	if !p.done() {
		return nil, w, nil
	}
	return visible, w, company
}

// companyEmployees serves everybody, those who have left too.
func (s *Server) companyEmployees(c *call) {
	people, w, company := c.parameters().people()
	if company == nil {
		return
	}
	list := []any{}
	for _, e := range page(people, w) {
		list = append(list, e.inCompany(company))
	}
	c.ok(list)
}

func (e *Employee) inCompany(company *Company) map[string]any {
	entry := map[string]any{
		"id": e.ID, "num": e.Num, "display_name": e.displayName(), "entry_date": e.Hired,
		"retire_date": nullable(e.Retired),
		"user_id":     nil, "email": Canary + "@example.com", "payroll_calculation": !e.OffPayroll,
		"closing_day": nil, "pay_day": nil, "month_of_pay_day": nil,
	}
	if !e.OffPayroll {
		entry["closing_day"], entry["pay_day"], entry["month_of_pay_day"] = company.ClosingDay, 25, "current_month"
		if company.ClosingDay == 0 {
			entry["closing_day"] = 31
		}
		if company.NextMonth {
			entry["month_of_pay_day"] = "next_month"
		}
	}
	return entry
}

// employees serves those employed in a month, with everything that freee knows of them.
func (s *Server) employees(c *call) {
	p := c.parameters()
	year, month := p.integer("year", 2000, 2100), p.integer("month", 1, 12)
	people, w, company := p.people()
	if company == nil {
		return
	}
	first := time.Date(year, time.Month(month), 1, 0, 0, 0, 0, jst)
	if company.NextMonth {
		first = first.AddDate(0, 1, 0)
	}
	var there []*Employee
	for _, e := range people {
		if e.employedIn(first, first.AddDate(0, 1, -1)) {
			there = append(there, e)
		}
	}
	list := []any{}
	for _, e := range page(there, w) {
		list = append(list, e.whole(company))
	}
	c.ok(map[string]any{"employees": list, "total_count": len(there)})
}

// memberships serves the groups of everybody who is there on a day.
func (s *Server) memberships(c *call) {
	p := c.parameters()
	base := p.date("base_date")
	_, _ = p.value("employee_ids")
	people, w, company := p.people()
	if company == nil {
		return
	}
	list := []any{}
	for _, e := range page(people, w) {
		list = append(list, e.withGroups(base))
	}
	c.ok(map[string]any{"employee_group_memberships": list, "total_count": len(people)})
}

func (e *Employee) withGroups(base string) map[string]any {
	groups := []any{}
	for i, m := range e.Memberships {
		if e.Retired != "" && e.Retired < base {
			break
		}
		duty := m.Duty
		if duty == "" {
			duty = "unspecified"
		}
		group := map[string]any{
			"start_date": e.Hired, "end_date": "2099-12-31", "boss_id": nil, "main_duty": duty,
			"group_id": 10 + i, "group_code": "G-" + m.Group, "group_name": m.Group, "level": 1,
			"position_id": nil, "position_code": nil, "position_name": nullable(m.Position),
			"parent_group_id": nil, "parent_group_code": nil, "parent_group_name": nullable(m.Parent),
		}
		groups = append(groups, group)
	}
	return map[string]any{
		"id": e.ID, "num": e.Num, "display_name": e.displayName(), "entry_date": e.Hired,
		"retire_date": nullable(e.Retired),
		"user_id":     nil, "login_email": Canary + "@example.com", "birth_date": CanaryDate, "gender": "unselected",
		"payroll_calculation": !e.OffPayroll, "group_memberships": groups,
	}
}
