package main

import (
	"context"
)

// overtime gives freee's own figures where a pay period is the calendar month. Otherwise it adds up days, and gives
// freee's figures for the periods beside: overtime that only shows over a week or a period, as with flexible hours, is
// in those alone.
func (f *freee) overtime(ctx context.Context, ids []string, m month) ([]result[overtime], error) {
	return eachMonth(ctx, f, ids, m, func(months []payMonth) (overtime, error) { return f.overtimeOf(months, m) })
}

func (f *freee) overtimeOf(months []payMonth, m month) (overtime, error) {
	out := overtime{Basis: vendorSummary}
	var all period
	all, out.Notes = f.covered(months, m)
	for _, p := range months {
		out.days = append(out.days, daysIn(p.days, m.days())...)
		out.IncompleteDays = append(out.IncompleteDays, p.unreadable...)
	}
	if len(months) == 1 && months[0].period == m.days() {
		out.totals = months[0].totals()
		out.VendorValues = freeeFigures(months[0].figures)
		return out, months[0].figures.err
	}
	out.Basis = dailyRecords
	out.totals = sumDays(all, out.days)
	out.Notes = append(out.Notes,
		f.lang.pick(
			"締め日が月末ではないため、日次の勤怠を合計しました。週や清算期間の単位で決まる残業は含まれません。freeeの集計値は、1人だけを employee_id で指定したときの pay_periods にあります。",
			"The pay periods are not calendar months, so days were added up. Overtime that is decided over a week or a longer period is not in the sums; freee's own figures are in the pay_periods of an answer for one employee_id."))
	for _, p := range months {
		out.PayPeriods = append(out.PayPeriods, p.totals())
		if p.figures.err != nil {
			return out, p.figures.err
		}
	}
	return out, nil
}

// totals are freee's figures for the period. The night's overtime is in the days alone.
func (p payMonth) totals() totals {
	o := p.figures
	t := totals{
		Period:          p.period,
		TotalWork:       monthWork.of(o),
		TotalOvertime:   monthOvertime.of(o) + monthOvertimeInNormal.of(o),
		WithinStatutory: monthWithinLegal.of(o),
		WorkingDays:     o.number("work_days"),
		AbsenceDays:     o.optionalNumber("num_absences"),
		PaidLeaveDays:   o.optionalNumber("num_paid_holidays"),
	}
	prescribed, night := monthPrescribedHoliday.of(o), monthNight.of(o)
	t.Breakdown = breakdown{LegalHoliday: monthLegalHoliday.of(o), PrescribedHoliday: &prescribed,
		LateNightWork: &night}
	if p.complete {
		t.setLateNight(*sumDays(p.period, p.days).Breakdown.LateNight)
	}
	return t
}

// freeeFigures are the lengths of a month under freee's names.
func freeeFigures(o object) map[string]float64 {
	values := map[string]float64{}
	for _, m := range []freeeMinutes{monthWork, monthOvertime, monthOvertimeInNormal, monthWithinLegal, monthNight,
		monthLegalHoliday, monthPrescribedHoliday} {
		if _, name := o.find(m); name != "" {
			values[name] = float64(m.of(o))
		}
	}
	return values
}
