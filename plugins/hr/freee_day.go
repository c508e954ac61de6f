package main

import (
	"slices"
	"time"
)

// freeeDays maps day_pattern. The words mislead: national holidays are usually 所定休日, Sundays 法定休日; the raw value is
// beside them.
var freeeDays = map[string]string{
	"normal_day":         weekday,
	"prescribed_holiday": weekend,
	"legal_holiday":      holiday,
}

// freeeDay reads one daily record. freee has no field for time worked or for breaks: normal_work_mins is the plan.
func freeeDay(o object) record {
	r := record{
		Date:              o.date("date"),
		DayType:           unknown,
		DayTypeRaw:        clipped(o.text("day_pattern")),
		ScheduleRaw:       o.optionalText("schedule_pattern"),
		WithinStatutory:   dayWithinLegal.of(o),
		LateNightOvertime: dayNightOvertime.of(o),
		LateMinutes:       o.optionalMinutes("lateness_mins"),
		EarlyLeaveMinutes: o.optionalMinutes("early_leaving_mins"),
	}
	if known, ok := freeeDays[*r.DayTypeRaw]; ok {
		r.DayType = known
	}
	absent, legal, prescribed := o.flag("is_absence"), dayLegalHoliday.of(o), dayPrescribedHoliday.of(o)
	r.IsAbsent, r.LegalHolidayWork, r.PrescribedHoliday = &absent, &legal, &prescribed
	r.OvertimeMinutes = dayOvertime.of(o)
	if o.has("not_auto_calc_work_time") && o.flag("not_auto_calc_work_time") {
		r.OvertimeMinutes = dayOvertimeByHand.of(o)
	}
	night := dayNight.of(o)
	r.lateNightWork = night
	r.setClock(o)
	r.setPaidLeave(o)
	if o.has("special_holiday") {
		days := o.number("special_holiday")
		r.SpecialLeaveDays = &days
	}
	if o.has("use_half_compensatory_holiday") && o.flag("use_half_compensatory_holiday") {
		r.Notes = append(r.Notes, o.lang.pick("代休（半日）", "half a day of compensatory leave"))
	}
	return r
}

func clipped(s string) *string {
	s = clip(s)
	return &s
}

// stretch is a segment of work or a break; a nil end has not happened.
type stretch struct{ from, to *time.Time }

func stretches(o object, name string) (list []stretch) {
	if !o.has(name) {
		return nil
	}
	for _, child := range o.children(name) {
		list = append(list, stretch{child.optionalTime("clock_in_at"), child.optionalTime("clock_out_at")})
	}
	return list
}

// sum adds up the stretches that have both ends, and notes faults of the others.
func (r *record) sum(lang language, list []stretch, noStart, noEnd string) (minutes int) {
	for _, s := range list {
		switch {
		case s.from == nil:
			r.addFault(lang, noStart)
		case s.to == nil:
			r.addFault(lang, noEnd)
		case s.to.Before(*s.from):
			r.addFault(lang, impossibleTime)
		default:
			minutes += int(s.to.Sub(*s.from).Minutes())
		}
	}
	return minutes
}

// setClock fills in clock-in and clock-out, work and breaks. Bodies from before segments existed have one stretch. Work
// that cannot be told is nil.
func (r *record) setClock(o object) {
	in, out := o.optionalTime("clock_in_at"), o.optionalTime("clock_out_at")
	work := stretches(o, "work_record_segments")
	if len(work) == 0 && (in != nil || out != nil) {
		work = []stretch{{in, out}}
	}
	r.IsOpen = slices.ContainsFunc(work, func(s stretch) bool { return s.from != nil && s.to == nil })
	worked := r.sum(o.lang, work, missingClockIn, missingClockOut)
	breaks := r.sum(o.lang, stretches(o, "break_records"), missingBreak, missingBreak)
	net := worked - breaks
	if net < 0 && len(r.faults) == 0 {
		r.addFault(o.lang, impossibleTime)
	}
	r.BreakMinutes = &breaks
	if len(r.faults) == 0 {
		r.WorkMinutes = &net
	}
	r.ClockIn, r.ClockOut = r.clock(o, in), r.clock(o, out)
}

// clock shows a time of the record's day, and notes one that lies outside of what HH:MM can show.
func (r *record) clock(o object, t *time.Time) *string {
	if t == nil || o.err != nil {
		return nil
	}
	text, ok := clock(r.Date, *t)
	if !ok {
		r.Notes = append(r.Notes, o.lang.sprintf("打刻 %s は、この日から48時間の外です",
			"the clock time %s is outside of the 48 hours from this day on", t.Format(time.RFC3339)))
		return nil
	}
	return &text
}

// setPaidLeave reads paid_holidays, or the fields that were in its place until January 2025. Leave by the hour has
// minutes and no days.
func (r *record) setPaidLeave(o object) {
	var days float64
	var minutes int
	if o.has("paid_holidays") {
		for _, leave := range o.children("paid_holidays") {
			r.IsPaidLeave = true
			days += leave.number("days")
			minutes += leave.minutes("mins")
		}
	} else {
		days = o.number("paid_holidays", "paid_holiday")
		for _, part := range []string{"half_paid_holiday_mins", "hourly_paid_holiday_mins"} {
			if m := o.optionalMinutes(part); m != nil {
				minutes += *m
			}
		}
		r.IsPaidLeave = days > 0 || minutes > 0
	}
	r.PaidLeaveDays, r.PaidLeaveMinutes = &days, &minutes
}
