package freee

import (
	"time"
)

// employee returns the person of the path in the company of the query. Users who are not administrators see only
// themselves, those who manage attendance everybody.
func (p *parameters) employee() (*Company, *Employee) {
	id := p.integer("employee_id", 1, maxInt32)
	company := p.company()
	if company == nil {
		return nil, nil
	}
	if company.Role == "self_only" && company.Self != id {
		p.forbidden()
		p.failed = true
		return nil, nil
	}
	e := company.employee(id)
	if e == nil && !p.failed {
		p.notFound()
		p.failed = true
	}
	return company, e
}

const twoSpecial = "特別休暇が2つ登録されています。Webで確認してください。"

// workRecord serves one day.
func (s *Server) workRecord(c *call) {
	p := c.parameters()
	date := p.date("date")
	_, e := p.employee()
	if !p.done() {
		return
	}
	day := e.Days[date]
	if day.TwoSpecial {
		c.bad(twoSpecial)
		return
	}
	c.ok(day.record(parseDay(date)))
}

// summary serves the period that is paid in a month.
func (s *Server) summary(c *call) {
	p := c.parameters()
	year, month := p.integer("year", 2000, 2100), p.integer("month", 1, 12)
	withDays := p.optionalBool("work_records")
	company, e := p.employee()
	if !p.done() {
		return
	}
	start, end := company.payPeriod(year, time.Month(month))
	if !e.employedIn(start, end) {
		c.notFound()
		return
	}
	out := e.summary(start, end)
	out["year"], out["month"] = year, month
	if withDays {
		records, ok := e.records(start, end)
		if !ok {
			c.bad(twoSpecial)
			return
		}
		out["work_records"] = records
	}
	c.ok(out)
}

// each calls f with every day from start to end.
func each(start, end time.Time, f func(day time.Time)) {
	for day := start; !day.After(end); day = day.AddDate(0, 0, 1) {
		f(day)
	}
}

// records are the days from start to end; ok is false if one of them cannot be given out, which spoils all.
func (e *Employee) records(start, end time.Time) (list []any, ok bool) {
	ok = true
	each(start, end, func(day time.Time) {
		d := e.Days[day.Format(dateLayout)]
		ok = ok && !d.TwoSpecial
		list = append(list, d.record(day))
	})
	return list, ok
}

// summary adds up the days from start to end. Its sums keep to freee's rule: all work is agreed hours, overtime within
// the legal hours, overtime beyond them, and work on legal holidays; night work overlaps with these.
func (e *Employee) summary(start, end time.Time) map[string]any {
	var sum figures
	var days, absences, paid, special float64
	hours, late, substitutes := 0, 0, 0.0
	each(start, end, func(day time.Time) {
		d := e.Days[day.Format(dateLayout)]
		f := d.compute(day)
		sum.work += f.work
		sum.normal += f.normal
		sum.overtime += f.overtime
		sum.night += f.night
		sum.legalHoliday += f.legalHoliday
		sum.prescribedHoliday += f.prescribedHoliday
		if f.work > 0 {
			days++
		}
		if d.Absent {
			absences++
		}
		for _, p := range d.Paid {
			paid += p.Days
			if p.Type == "hourly" {
				hours += p.Mins / 60
			}
		}
		special += d.Special
		late += d.Late + d.Early
		if d.Schedule == "substitute_holiday" {
			substitutes++
		}
	})
	span := func(days float64, hours int) map[string]any { return map[string]any{"days": days, "hours": hours} }
	return map[string]any{
		"start_date": start.Format(dateLayout), "end_date": end.Format(dateLayout), "work_days": days,
		"total_work_mins": sum.work, "total_normal_work_mins": sum.normal, "total_excess_statutory_work_mins": 0,
		"total_overtime_except_normal_work_mins": sum.overtime, "total_overtime_within_normal_work_mins": 0,
		"total_prescribed_holiday_work_mins": sum.prescribedHoliday, "total_holiday_work_mins": sum.legalHoliday,
		"total_latenight_work_mins": sum.night, "num_absences": absences, "num_paid_holidays": paid,
		"num_paid_holidays_and_hours": span(paid, hours), "num_paid_holidays_left": 10.0,
		"num_paid_holidays_and_hours_left": span(10, 0),
		"num_substitute_holidays_used":     substitutes, "num_compensatory_holidays_used": 0.0,
		"num_special_holidays_used":           special,
		"num_special_holidays_and_hours_used": span(special, 0), "total_lateness_and_early_leaving_mins": late,
		"multi_hourly_wages": []any{}, "work_records": []any{}, "total_shortage_work_mins": nil,
		"total_deemed_paid_excess_statutory_work_mins": nil, "total_deemed_paid_overtime_except_normal_work_mins": nil,
	}
}
