package kot

import (
	"fmt"
	"net/http"
	"time"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
)

// Limits of a request for days.
const (
	longestPeriod = 62 // days
	yearsBack     = 3
	standard      = 480 // minutes of a day's agreed and legal working time
)

// days reads the period of a request, or refuses it.
func (s *Server) days(w http.ResponseWriter, r *http.Request) (days []time.Time, ok bool) {
	start, err1 := time.ParseInLocation(dateLayout, r.URL.Query().Get("start"), jst)
	end, err2 := time.ParseInLocation(dateLayout, r.URL.Query().Get("end"), jst)
	switch {
	case err1 != nil || err2 != nil || end.Before(start):
		refuse(w, http.StatusBadRequest, badValue, "start or end is invalid.")
	case end.Sub(start) >= longestPeriod*24*time.Hour:
		refuse(w, http.StatusBadRequest, badValue, "The period is longer than 62 days.")
	case start.Before(s.options.Now().AddDate(-yearsBack, 0, 0)) || end.After(s.options.Now().AddDate(1, 0, 0)):
		refuse(w, http.StatusBadRequest, badValue, "The period is out of range.")
	default:
		for day := start; !day.After(end); day = day.AddDate(0, 0, 1) {
			days = append(days, day)
		}
		return days, true
	}
	return nil, false
}

// byDay answers with an entry of every employee for every day.
func (s *Server) byDay(w http.ResponseWriter, r *http.Request, entry func(*Employee, time.Time) map[string]any) {
	days, ok := s.days(w, r)
	if !ok {
		return
	}
	list := []any{}
	for _, day := range days {
		entries := []any{}
		for _, e := range s.options.Employees {
			if e.Hired <= day.Format(dateLayout) && (e.Resigned == "" || e.Resigned >= day.Format(dateLayout)) {
				more := entry(e, day)
				more["date"], more["employeeKey"] = day.Format(dateLayout), e.Key
				entries = append(entries, more)
			}
		}
		list = append(list, map[string]any{"date": day.Format(dateLayout), "dailyWorkings": entries})
	}
	fakehttp.JSON(w, http.StatusOK, list)
}

func (s *Server) daily(w http.ResponseWriter, r *http.Request) {
	s.byDay(w, r, func(e *Employee, day time.Time) map[string]any { return e.on(day).working(day) })
}

func (e *Employee) on(day time.Time) Day { return e.Days[day.Format(dateLayout)] }

// kind is the day's workdayTypeName.
func (d Day) kind(day time.Time) string {
	switch {
	case d.Type != "":
		return d.Type
	case day.Weekday() == time.Sunday:
		return "法定休日"
	case day.Weekday() == time.Saturday:
		return "法定外休日"
	}
	return "平日"
}

// figures divide the time worked: what is beyond eight hours, or on a day off, is overtime; from 22:00 to 05:00 it is
// late night.
type figures struct{ work, assigned, overtime, nightOvertime int }

func (d Day) compute(day time.Time) figures {
	if d.In == "" || d.Out == "" {
		return figures{}
	}
	in, out := at(day, d.In), at(day, d.Out)
	night := 0
	for t := in; t.Before(out); t = t.Add(time.Minute) {
		if t.Hour() >= 22 || t.Hour() < 5 {
			night++
		}
	}
	work := max(0, int(out.Sub(in).Minutes())-d.Break)
	beyond := max(0, work-standard)
	nightOvertime := min(beyond, night)
	return figures{work: work, assigned: work - beyond, overtime: beyond - nightOvertime, nightOvertime: nightOvertime}
}

func at(day time.Time, text string) time.Time {
	var hour, minute int
	if _, err := fmt.Sscanf(text, "%d:%d", &hour, &minute); err != nil {
		panic("kot: " + text + " is not HH:MM")
	}
	return day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
}

func (d Day) working(day time.Time) map[string]any {
	f := d.compute(day)
	entry := map[string]any{
		"workPlaceDivisionCode": "1000", "workPlaceDivisionName": Canary, "isClosing": false, "isHelp": false,
		"isError":         d.Error,
		"workdayTypeName": d.kind(day), "assigned": f.assigned, "unassigned": 0, "overtime": f.overtime,
		"lateNight": 0, "lateNightUnassigned": 0, "lateNightOvertime": f.nightOvertime, "breakTime": d.Break,
		"late": d.Late, "earlyLeave": 0,
		"totalWork": f.work, "autoBreakOff": 1, "discretionaryVacation": 0, "customDailyWorkings": []any{},
	}
	taken := map[string]any{"halfdayHolidays": []any{}, "hourHolidays": []any{}}
	if d.Full != "" {
		taken["fulltimeHoliday"] = map[string]any{"code": 1, "name": d.Full}
	}
	if d.Half != "" {
		taken["halfdayHolidays"] = []any{map[string]any{"typeName": "AM休", "code": 1, "name": d.Half}}
	}
	if d.Hourly != "" {
		taken["hourHolidays"] = []any{map[string]any{"start": stamp(at(day, "09:00")), "end": stamp(at(day, "11:00")),
			"minutes": d.LeaveMins, "code": 1, "name": d.Hourly}}
	}
	entry["holidaysObtained"] = taken
	return entry
}

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05-07:00") }

func (s *Server) timeRecords(w http.ResponseWriter, r *http.Request) {
	s.byDay(w, r, func(e *Employee, day time.Time) map[string]any {
		d := e.on(day)
		records := []any{}
		for _, clock := range []struct{ text, code, name string }{{d.In, "1", "出勤"}, {d.Out, "2", "退勤"}} {
			if clock.text != "" {
				records = append(records, map[string]any{"time": stamp(at(day, clock.text)), "code": clock.code,
					"name": clock.name, "note": Canary, "latitude": 35.6672237})
			}
		}
		return map[string]any{"timeRecord": records}
	})
}

// monthly serves the figures of the month whose closing day lies in the month of the path.
func (s *Server) monthly(w http.ResponseWriter, r *http.Request) {
	month, err := time.ParseInLocation("2006-01", r.PathValue("month"), jst)
	if err != nil || month.Before(s.options.Now().AddDate(-yearsBack, 0, 0)) ||
		month.After(s.options.Now().AddDate(1, 0, 0)) {
		refuse(w, http.StatusBadRequest, badValue, "date is invalid.")
		return
	}
	start, end := s.closing(month.AddDate(0, -1, 0)).AddDate(0, 0, 1), s.closing(month)
	list := []any{}
	for _, e := range s.options.Employees {
		if e.Hired <= end.Format(dateLayout) && (e.Resigned == "" || e.Resigned >= start.Format(dateLayout)) {
			entry := e.sum(start, end)
			entry["year"], entry["month"], entry["employeeKey"] = month.Year(), int(month.Month()), e.Key
			list = append(list, entry)
		}
	}
	fakehttp.JSON(w, http.StatusOK, list)
}

// closing is the closing day in the month that starts with first.
func (s *Server) closing(first time.Time) time.Time {
	last := time.Date(first.Year(), first.Month()+1, 0, 0, 0, 0, 0, jst)
	return last.AddDate(0, 0, min(0, s.options.ClosingDay-last.Day()))
}

func (e *Employee) sum(start, end time.Time) map[string]any {
	var weekdays, dayOff, legal figures
	var days, paid, special, absent float64
	breaks, late, hours := 0, 0, 0
	for day := start; !day.After(end); day = day.AddDate(0, 0, 1) {
		d := e.on(day)
		f := d.compute(day)
		switch d.kind(day) {
		case "法定休日":
			legal.add(f)
		case "法定外休日":
			dayOff.add(f)
		default:
			weekdays.add(f)
		}
		if f.work > 0 {
			days++
		}
		breaks, late = breaks+d.Break, late+d.Late
		paid += leave(d.Full, 1) + leave(d.Half, 0.5)
		if d.Full == "特休" {
			special++
		}
		if d.Absent {
			absent++
		}
		hours += d.LeaveMins
	}
	return map[string]any{
		"startDate": start.Format(dateLayout), "endDate": end.Format(dateLayout), "workingCount": int(days),
		"weekdayWorkingCount": int(days),
		"workingDayCount":     days, "weekdayWorkingdayCount": days, "absentdayCount": absent, "lateCount": 0,
		"earlyLeaveCount": 0,
		"holidaysObtained": []any{map[string]any{"dayCount": paid, "minutes": hours, "code": 1, "name": "有休"},
			map[string]any{"dayCount": special, "minutes": 0, "code": 2, "name": "特休"}},
		"assigned": weekdays.assigned, "unassigned": 0, "overtime": weekdays.overtime, "night": 0,
		"nightOvertime": weekdays.nightOvertime,
		"breakSum":      breaks, "late": late, "earlyLeave": 0, "isClosing": false, "bind": 0, "regarding": 0,
		"intervalShortageCount": 0, "customMonthlyWorkings": []any{},
		"holidayWork":        figures{}.onHoliday(),
		"legalHolidayWork":   legal.onHoliday(),
		"generalHolidayWork": dayOff.onHoliday(),
	}
}

func (f *figures) add(more figures) {
	f.work += more.work
	f.assigned += more.assigned
	f.overtime += more.overtime
	f.nightOvertime += more.nightOvertime
}

func (f figures) onHoliday() map[string]any {
	return map[string]any{"normal": f.assigned, "night": 0, "overtime": f.overtime, "nightOvertime": f.nightOvertime,
		"extra": 0, "count": 0, "dayCount": 0}
}

func leave(name string, days float64) float64 {
	if name == "有休" {
		return days
	}
	return 0
}
