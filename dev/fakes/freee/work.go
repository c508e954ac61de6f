package freee

import (
	"fmt"
	"time"
)

// standard is the agreed and the legal working time of a day, in minutes.
const standard = 480

// times turns a span into points in time; nil is one that was not recorded.
func (s Span) times(day time.Time) (in, out *time.Time) {
	point := func(text string) *time.Time {
		if text == "" {
			return nil
		}
		t := at(day, text)
		return &t
	}
	return point(s.In), point(s.Out)
}

func at(day time.Time, text string) time.Time {
	var hour, minute int
	if _, err := fmt.Sscanf(text, "%d:%d", &hour, &minute); err != nil {
		panic("freee: " + text + " is not HH:MM")
	}
	return day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
}

// stamp writes a time as freee does.
func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000-07:00") }

// nullableStamp is null for a time that was not recorded.
func nullableStamp(t *time.Time) any {
	if t == nil {
		return nil
	}
	return stamp(*t)
}

// minutes returns the length of all closed spans, and of their parts between 22:00 and 05:00.
func minutes(day time.Time, spans []Span) (all, night int) {
	for _, span := range spans {
		in, out := span.times(day)
		if in == nil || out == nil || out.Before(*in) {
			continue
		}
		all += int(out.Sub(*in).Minutes())
		for t := *in; t.Before(*out); t = t.Add(time.Minute) {
			if t.Hour() >= 22 || t.Hour() < 5 {
				night++
			}
		}
	}
	return all, night
}

// figures are freee's totals of a day, in minutes.
type figures struct {
	work, normal, overtime, night, nightOvertime, legalHoliday, prescribedHoliday int
}

// compute follows freee's rules for a day of eight hours: what goes beyond is overtime, all of it on a day off, and
// nothing on a legal holiday, whose work is counted apart. The night's overtime is at the end of the work.
func (d Day) compute(day time.Time) figures {
	work, workNight := minutes(day, d.Work)
	breaks, breaksNight := minutes(day, d.Breaks)
	f := figures{work: max(0, work-breaks), night: max(0, workNight-breaksNight)}
	switch d.pattern(day) {
	case "legal_holiday":
		f.legalHoliday = f.work
		return f
	case "prescribed_holiday":
		f.prescribedHoliday, f.overtime = f.work, f.work
	default:
		f.overtime = max(0, f.work-standard)
	}
	f.normal = f.work - f.overtime
	f.nightOvertime = min(f.overtime, f.night)
	return f
}

func (d Day) pattern(day time.Time) string {
	switch {
	case d.Pattern != "":
		return d.Pattern
	case d.Schedule == "substitute_holiday_work":
		return "normal_day"
	case day.Weekday() == time.Sunday:
		return "legal_holiday"
	case day.Weekday() == time.Saturday:
		return "prescribed_holiday"
	}
	return "normal_day"
}

// record is the day in the form of ApiV1EmployeesWorkRecordSerializer, or of its predecessor with LegacyLeave.
func (d Day) record(day time.Time) map[string]any {
	f := d.compute(day)
	in, out := d.ends(day)
	r := map[string]any{
		"date": day.Format(dateLayout), "day_pattern": d.pattern(day), "schedule_pattern": d.Schedule,
		"work_record_segments": spans(day, d.Work), "break_records": spans(day, d.Breaks), "clock_in_at": in,
		"clock_out_at":       out,
		"early_leaving_mins": d.Early, "lateness_mins": d.Late, "is_absence": d.Absent, "is_editable": true,
		"note":                      Canary,
		"half_special_holiday_mins": 0, "hourly_special_holiday_mins": 0, "special_holiday": d.Special,
		"special_holiday_setting_id": nil,
		"normal_work_clock_in_at":    nil, "normal_work_clock_out_at": nil, "normal_work_mins": 0,
		"use_attendance_deduction": true, "use_default_work_pattern": true, "use_half_compensatory_holiday": false,
		"total_overtime_work_mins": f.overtime, "total_overtime_except_normal_work_mins": f.overtime,
		"total_prescribed_holiday_work_mins": f.prescribedHoliday, "total_holiday_work_mins": f.legalHoliday,
		"total_latenight_work_mins": f.night, "not_auto_calc_work_time": d.Manual,
		"total_excess_statutory_work_mins": 0, "total_latenight_excess_statutory_work_mins": 0,
		"total_latenight_overtime_except_normal_work_min": f.nightOvertime,
	}
	if d.pattern(day) == "normal_day" {
		r["normal_work_clock_in_at"], r["normal_work_clock_out_at"] = stamp(at(day, "09:00")), stamp(at(day, "18:00"))
		r["normal_work_mins"] = standard
	}
	if d.Manual {
		r["total_overtime_work_mins"] = 0
	}
	d.addLeave(r)
	return r
}

func (d Day) addLeave(r map[string]any) {
	if d.LegacyLeave {
		var days float64
		half, hourly := 0, 0
		for _, p := range d.Paid {
			days += p.Days
			switch p.Type {
			case "hourly":
				hourly += p.Mins
			case "half", "morning_off", "afternoon_off":
				half += p.Mins
			}
		}
		r["paid_holiday"], r["half_paid_holiday_mins"], r["hourly_paid_holiday_mins"] = days, half, hourly
		return
	}
	list := []any{}
	for _, p := range d.Paid {
		list = append(list, map[string]any{"type": p.Type, "mins": p.Mins, "days": p.Days})
	}
	r["paid_holidays"] = list
}

// ends are the first clock-in and the last clock-out, null without.
func (d Day) ends(day time.Time) (in, out any) {
	if len(d.Work) == 0 {
		return nil, nil
	}
	first, _ := d.Work[0].times(day)
	_, last := d.Work[len(d.Work)-1].times(day)
	return nullableStamp(first), nullableStamp(last)
}

func spans(day time.Time, list []Span) []any {
	all := []any{}
	for _, s := range list {
		in, out := s.times(day)
		all = append(all, map[string]any{"clock_in_at": nullableStamp(in), "clock_out_at": nullableStamp(out)})
	}
	return all
}
