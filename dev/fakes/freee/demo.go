package freee

import "fmt"

// Text returns a pointer, for Employee.EmploymentType.
func Text(s string) *string { return &s }

// Demo returns a made-up company whose May 2026 has everything that attendance can have, paid in the following month,
// and a second one whose periods close on the 20th.
func Demo() []*Company {
	people := []*Employee{
		{ID: 101, Num: "001", LastName: "架空", FirstName: "太郎", Hired: "2015-04-01", EmploymentType: Text("regular"),
			Title:       "部長",
			Memberships: []Membership{{"営業部", "部長", "", "sub_duty"}, {"経営企画室", "室長", "本社", "main_duty"}}},
		{ID: 102, Num: "002", LastName: "見本", FirstName: "花子", Hired: "2019-10-01", EmploymentType: Text("regular"),
			Memberships: []Membership{{"営業部", "", "", ""}}, Days: demoDays()},
		{ID: 103, Num: "003", LastName: "例示", FirstName: "次郎", Hired: "2022-01-16", EmploymentType: Text("part-time"),
			Memberships: []Membership{{"開発部", "", "", ""}}, Days: nightDays()},
		{ID: 104, Num: "004", LastName: "仮名", FirstName: "三郎", Hired: "2018-04-01", Retired: "2026-03-31",
			EmploymentType: Text("fixed-term"),
			Memberships:    []Membership{{"開発部", "主任", "", ""}}},
		{ID: 105, Num: "005", LastName: "試験", FirstName: "四子", Hired: "2026-04-01",
			EmploymentType: Text("board-member"), Title: "監査役", OffPayroll: true},
	}
	second := &Employee{ID: 201, Num: "A-1", LastName: "架空", FirstName: "五月", Hired: "2020-04-01",
		EmploymentType: Text("fixed-term"), Days: demoDays()}
	return []*Company{
		{ID: 12345, Name: "架空商事株式会社", Role: "company_admin", Self: 101, NextMonth: true, Employees: people},
		{ID: 67890, Name: "見本製作所", Role: "attendance_manager", Self: 201, ClosingDay: 20,
			Employees: []*Employee{second}},
	}
}

// office is an ordinary day with an hour's break, until the given time.
func office(until string) Day {
	return Day{Work: []Span{{"09:00", until}}, Breaks: []Span{{"12:00", "13:00"}}}
}

// demoDays is a month of one person with each kind of day once.
func demoDays() map[string]Day {
	days := map[string]Day{}
	for _, day := range []int{1, 7, 8, 18, 19, 20, 22, 25, 26, 27, 28, 29} {
		days[fmt.Sprintf("2026-05-%02d", day)] = office("18:00")
	}
	add := func(day int, d Day) { days[fmt.Sprintf("2026-05-%02d", day)] = d }
	add(7, office("20:30"))
	add(11, Day{Paid: []PaidLeave{{"full", 480, 1}}})
	afternoon := Day{Work: []Span{{"13:00", "18:00"}}, Paid: []PaidLeave{{"morning_off", 240, 0.5}}}
	add(12, afternoon)
	add(13, Day{Absent: true})
	add(14, office("23:30"))
	add(15, office("25:00"))
	add(16, Day{Work: []Span{{"10:00", "12:00"}}, Schedule: "substitute_holiday_work"})
	add(17, Day{Work: []Span{{"10:00", "13:00"}}})
	add(18, Day{Work: []Span{{"09:00", "12:00"}, {"13:00", "18:00"}}})
	add(19, Day{Schedule: "substitute_holiday"})
	add(20, Day{Work: []Span{{"09:00", "16:00"}}, Breaks: []Span{{"12:00", "13:00"}},
		Paid: []PaidLeave{{"hourly", 120, 0}}})
	add(21, Day{Special: 1, Schedule: "special_holiday"})
	add(22, Day{Work: []Span{{"09:30", "18:00"}}, Breaks: []Span{{"12:00", "13:00"}}, Late: 30})
	return days
}

// nightDays is a month of night work, with one end missing.
func nightDays() map[string]Day {
	return map[string]Day{
		"2026-05-11": {Work: []Span{{"22:00", "31:00"}}, Breaks: []Span{{"26:00", "27:00"}}},
		"2026-05-12": {Work: []Span{{"21:30", "32:15"}}, Breaks: []Span{{"25:00", "25:45"}}},
		"2026-05-13": {Work: []Span{{"22:00", ""}}},
	}
}
