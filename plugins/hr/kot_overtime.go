package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
)

// kotMonth is KING OF TIME's figures for a month, which may close on any day.
type kotMonth struct {
	period
	figures object
}

// overtime gives KING OF TIME's own figures where its month is the calendar month; otherwise it adds up days, with the
// figures beside. The time worked in all is not among the figures of a month, so the days are read in both cases.
func (k *kot) overtime(ctx context.Context, ids []string, m month) ([]result[overtime], error) {
	months, err := k.months(ctx, ids, m)
	if err != nil {
		return nil, err
	}
	results := make([]result[overtime], len(ids))
	span := m.days()
	read := false
	for i, found := range months {
		if results[i].err = found.err; found.err == nil {
			span, read = period{min(span.Start, found.list[0].Start), max(span.End, found.list[len(found.list)-1].End)},
				true
		}
	}
	if !read {
		return results, nil
	}
	days, err := k.records(ctx, ids, span)
	if err != nil {
		return nil, err
	}
	for i, found := range months {
		if results[i].err = cmp.Or(results[i].err, days[i].err); results[i].err == nil {
			results[i].value, results[i].err = k.overtimeOf(found.list, days[i].records, m)
		}
	}
	return results, nil
}

func (k *kot) overtimeOf(months []kotMonth, days []record, m month) (overtime, error) {
	out := overtime{Basis: vendorSummary, worth: worth{Notes: k.uncounted(months)}, days: daysIn(days, m.days())}
	if len(months) == 1 && months[0].period == m.days() {
		out.totals, out.VendorValues = months[0].totals(days), kotFigures(months[0].figures)
		return out, months[0].figures.err
	}
	counted, _ := period{months[0].Start, months[len(months)-1].End}.overlap(m.days())
	out.Basis = dailyRecords
	out.totals = sumDays(counted, daysIn(days, counted))
	out.Notes = append(out.Notes, k.unknownDays(daysIn(days, counted))...)
	out.AbsenceDays, out.Breakdown.LateNightWork = nil, nil
	out.Notes = append(out.Notes,
		k.lang.pick("締め日が月末ではないため、日別データを合計しました。KING OF TIMEの月別集計値は、1人だけを employee_id で指定したときの pay_periods にあります。",
			"The months of KING OF TIME are not calendar months here, so days were added up; its own figures are in the pay_periods of an answer for one employee_id."))
	for _, month := range months {
		out.PayPeriods = append(out.PayPeriods, month.totals(days))
		if month.figures.err != nil {
			return out, month.figures.err
		}
	}
	return out, nil
}

// kotMonthsOf are the months of one person that share days with a calendar month, in order, or why there are none.
type kotMonthsOf struct {
	list []kotMonth
	err  error
}

// months reads the month of people, and its neighbours where these have the rest of the calendar month.
func (k *kot) months(ctx context.Context, ids []string, m month) ([]kotMonthsOf, error) {
	people, index, want := make([]kotMonthsOf, len(ids)), byID(ids), m.days()
	anyLacks := func(has func(kotMonth) bool) bool {
		return slices.ContainsFunc(people,
			func(p kotMonthsOf) bool { return p.err == nil && !slices.ContainsFunc(p.list, has) })
	}
	err := k.addMonth(ctx, index, m, want, people)
	if err == nil && anyLacks(func(f kotMonth) bool { return f.End >= want.End }) {
		err = k.addMonth(ctx, index, m.add(1), want, people)
	}
	if err == nil && anyLacks(func(f kotMonth) bool { return f.Start <= want.Start }) {
		err = k.addMonth(ctx, index, m.add(-1), want, people)
	}
	for i := range people {
		p := &people[i]
		if p.err == nil && len(p.list) == 0 {
			p.err = &dataError{k.lang.errorf("KING OF TIMEには、従業員 %s の %s の月別データがありません。IDは list_employees で調べてください。",
				"KING OF TIME has no month %[2]s of employee %[1]s: list_employees finds ids", clip(ids[i]), m)}
		}
		slices.SortFunc(p.list, func(a, b kotMonth) int { return cmp.Compare(a.Start, b.Start) })
	}
	return people, err
}

// addMonth reads the figures of the whole company for a month, and adds those of the people in index that share days
// with want.
func (k *kot) addMonth(ctx context.Context, index map[string]int, m month, want period, people []kotMonthsOf) error {
	response, err := k.get(ctx, "/monthly-workings/"+m.String(), nil)
	if err != nil {
		return err
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(response.Body, &entries); err != nil || entries == nil {
		d := k.document()
		d.malformed("monthly-workings", "an array")
		return d.err
	}
	for _, raw := range entries {
		o := k.document().object("monthly-workings", raw)
		i, ok := index[deref(o.optionalText("employeeKey"))]
		if !ok {
			continue
		}
		found := kotMonth{period{o.date("startDate"), o.date("endDate")}, o}
		if o.err == nil && (found.End < found.Start || found.End > found.Start.add(kotWindow)) {
			o.malformed(o.place("endDate"), "the end of a month")
		}
		people[i].err = cmp.Or(people[i].err, o.err)
		if _, shared := found.overlap(want); shared {
			people[i].list = append(people[i].list, found)
		}
	}
	return nil
}

// kotOvertime are the figures of overtime beyond the legal hours: those that KING OF TIME holds against the general
// limit of the 36 agreement (support.ta.kingoftime.jp, article 20168762476185). The last four exist where the company
// counts overtime at a higher rate.
var (
	kotOvertime      = []string{"overtime", "generalHolidayWork.overtime"}
	kotNightOvertime = []string{"nightOvertime", "generalHolidayWork.nightOvertime"}
	kotHigherRate    = []string{"premiumWork.overtime1", "premiumWork.overtime2"}
	kotNightHigher   = []string{"premiumWork.nightOvertime1", "premiumWork.nightOvertime2"}
	kotLegalHoliday  = []string{"legalHolidayWork.normal", "legalHolidayWork.night", "legalHolidayWork.overtime",
		"legalHolidayWork.nightOvertime", "legalHolidayWork.extra"}
	kotDayOff = []string{"generalHolidayWork.normal", "generalHolidayWork.night", "generalHolidayWork.overtime",
		"generalHolidayWork.nightOvertime", "generalHolidayWork.extra"}
	kotOtherFigures = []string{"assigned", "unassigned", "night", "breakSum", "late", "earlyLeave",
		"holidayWork.normal", "holidayWork.night", "holidayWork.overtime", "holidayWork.nightOvertime"}
)

// totals are the figures of a month; the time worked is added up from its days.
func (m kotMonth) totals(days []record) totals {
	o := m.figures
	nightOvertime := o.sum(kotNightOvertime) + o.optionalSum(kotNightHigher)
	dayOff := o.sum(kotDayOff[:1]) + o.optionalSum(kotDayOff[1:])
	t := totals{
		Period:          m.period,
		TotalWork:       sumDays(m.period, daysIn(days, m.period)).TotalWork,
		TotalOvertime:   o.sum(kotOvertime) + o.optionalSum(kotHigherRate) + nightOvertime,
		WithinStatutory: o.minutes("unassigned"),
		WorkingDays:     o.number("workingDayCount"),
		AbsenceDays:     o.optionalNumber("absentdayCount"),
		Breakdown: breakdown{LegalHoliday: o.sum(kotLegalHoliday[:1]) + o.optionalSum(kotLegalHoliday[1:]),
			PrescribedHoliday: &dayOff},
	}
	t.setLateNight(nightOvertime)
	var paid float64
	for _, leave := range o.optionalChildren("holidaysObtained") {
		if isPaidLeave(leave.text("name")) {
			paid += leave.number("dayCount")
		}
	}
	t.PaidLeaveDays = &paid
	return t
}

// uncounted notes work on days off that the company does not divide into legal holidays and others.
func (k *kot) uncounted(months []kotMonth) []string {
	for _, m := range months {
		if m.figures.optionalSum([]string{"holidayWork.normal", "holidayWork.night", "holidayWork.overtime",
			"holidayWork.nightOvertime"}) > 0 {
			return []string{k.lang.pick("法定休日と法定外休日を区別しない休日労働（holidayWork）があり、どの集計にも含めていません。",
				"There is work on days off that are neither called legal holidays nor others (holidayWork); it is in none of the figures.")}
		}
	}
	return nil
}

// unknownDays notes work on kinds of days that are not known, which sums of days count as work and nothing else.
func (k *kot) unknownDays(days []record) []string {
	kinds := map[string]bool{}
	for _, r := range days {
		if r.DayType == unknown && or0(r.WorkMinutes) > 0 {
			kinds[*r.DayTypeRaw] = true
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	return []string{k.lang.sprintf("勤務日種別 %s は休日かどうか分からないため、その労働は休日労働に含めていません。",
		"It is not known whether these kinds of days are days off, so work on them is in none of the figures of days off: %s", k.lang.list(sortedKeys(kinds)))}
}

// kotFigures are the figures of a month under KING OF TIME's names.
func kotFigures(o object) map[string]float64 {
	values := map[string]float64{}
	for _, path := range slices.Concat(kotOvertime, kotNightOvertime, kotHigherRate, kotNightHigher, kotLegalHoliday,
		kotDayOff, kotOtherFigures) {
		if holder, name := o.at(path); holder.has(name) {
			values[path] = float64(holder.minutes(name))
		}
	}
	return values
}
