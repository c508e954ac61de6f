package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/hako-run/hako/pdk/abi"
)

// kotWindow is the longest period that KING OF TIME serves at once, in days.
const kotWindow = 62

// days reads an employee's entries of a list by day, which comes for the whole company: the entries of others are skipped unread. The
// period is asked for in windows that KING OF TIME accepts, and in halves of these where an answer is too large.
func (k *kot) days(ctx context.Context, path, employee string, in period) (entries []object, err error) {
	for start := in.Start; start <= in.End; start = start.add(kotWindow) {
		window := period{start, min(in.End, start.add(kotWindow-1))}
		more, err := k.window(ctx, path, employee, window)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return entries, nil
}

func (k *kot) window(ctx context.Context, path, employee string, in period) ([]object, error) {
	response, err := k.get(ctx, path, url.Values{"start": {string(in.Start)}, "end": {string(in.End)}})
	var limit *abi.Error
	if errors.As(err, &limit) && limit.Code == abi.CodeLimit && in.Start < in.End {
		first, second := in.halves()
		entries, err := k.window(ctx, path, employee, first)
		if err != nil {
			return nil, err
		}
		more, err := k.window(ctx, path, employee, second)
		return append(entries, more...), err
	}
	if err != nil {
		return nil, err
	}
	return k.entriesOf(response.Body, path, employee)
}

// entriesOf finds the entries of one employee in [{date, dailyWorkings: [{employeeKey, ...}]}].
func (k *kot) entriesOf(body []byte, path, employee string) (entries []object, err error) {
	var days []struct {
		DailyWorkings []json.RawMessage `json:"dailyWorkings"`
	}
	d := k.document()
	if err := json.Unmarshal(body, &days); err != nil {
		d.malformed(path, "[{dailyWorkings: [...]}]")
		return nil, d.err
	}
	for _, day := range days {
		for _, raw := range day.DailyWorkings {
			var entry struct {
				EmployeeKey string `json:"employeeKey"`
			}
			if json.Unmarshal(raw, &entry) == nil && entry.EmployeeKey == employee {
				entries = append(entries, d.object("dailyWorkings["+employee+"]", raw))
			}
		}
	}
	return entries, d.err
}

// halves divides a period of at least two days.
func (p period) halves() (first, second period) {
	days := int(p.End.midnight().Sub(p.Start.midnight()).Hours() / 24)
	middle := p.Start.add(days / 2)
	return period{p.Start, middle}, period{middle.add(1), p.End}
}

// kotDays maps workdayTypeName. Companies may call their kinds of days otherwise.
var kotDays = map[string]string{
	"平日":    weekday,
	"法定外休日": weekend,
	"法定休日":  holiday,
}

// records reads the days of a period, with the clock times of the other list.
func (k *kot) records(ctx context.Context, employee string, in period) ([]record, error) {
	workings, err := k.days(ctx, "/daily-workings", employee, in)
	if err != nil {
		return nil, err
	}
	if len(workings) == 0 {
		return nil, k.lang.errorf("KING OF TIMEには、従業員 %s の %s から %s までの勤怠がありません。IDは list_employees で調べてください。",
			"KING OF TIME has no attendance of employee %s from %s to %s: list_employees finds ids", clip(employee), in.Start, in.End)
	}
	var all []record
	for _, o := range workings {
		if all = append(all, k.record(o)); o.err != nil {
			return nil, o.err
		}
	}
	slices.SortStableFunc(all, func(a, b record) int { return cmp.Compare(a.Date, b.Date) })
	return all, nil
}

// record reads a daily working.
func (k *kot) record(o object) record {
	r := record{
		Date:              o.date("date"),
		DayType:           unknown,
		DayTypeRaw:        clipped(o.text("workdayTypeName")),
		OvertimeMinutes:   o.minutes("overtime") + o.minutes("lateNightOvertime"),
		WithinStatutory:   o.minutes("unassigned") + o.minutes("lateNightUnassigned"),
		LateNightOvertime: o.minutes("lateNightOvertime"),
		LateMinutes:       o.optionalMinutes("late"),
		EarlyLeaveMinutes: o.optionalMinutes("earlyLeave"),
	}
	work, breaks := o.minutes("totalWork"), o.minutes("breakTime")
	r.WorkMinutes, r.BreakMinutes = &work, &breaks
	if known, ok := kotDays[*r.DayTypeRaw]; ok {
		r.DayType = known
	}
	r.setKOTHoliday(work)
	r.setKOTLeave(o)
	if o.has("isError") && o.flag("isError") {
		r.Notes = append(r.Notes, o.lang.pick("KING OF TIMEでエラー勤務になっています（打刻漏れなど）",
			"KING OF TIME marks this day as faulty, for example because a clock time is missing"))
	}
	return r
}

// setKOTHoliday counts work on a day off by the kind of day. Work on a legal holiday is no overtime, as freee and the law have it.
func (r *record) setKOTHoliday(work int) {
	var legal, prescribed int
	switch r.DayType {
	case holiday:
		legal = work
		r.OvertimeMinutes, r.WithinStatutory, r.LateNightOvertime = 0, 0, 0
	case weekend:
		prescribed = work
	case unknown:
		return // nobody can say what kind of work it is
	}
	r.LegalHolidayWork, r.PrescribedHoliday = &legal, &prescribed
}

// kotPaidLeave are names of 年次有給休暇; the codes of leave are each company's own.
var kotPaidLeave = []string{"有休", "有給", "有給休暇", "年次有給休暇", "年次有休", "年休"}

func isPaidLeave(name string) bool { return slices.Contains(kotPaidLeave, name) }

// setKOTLeave reads holidaysObtained. Leave that is not paid leave by its name is in the notes.
func (r *record) setKOTLeave(o object) {
	var days float64
	var minutes int
	whole := false
	add := func(leave object, share float64, length int) {
		name := leave.text("name")
		if !isPaidLeave(name) {
			r.Notes = append(r.Notes, o.lang.sprintf("休暇: %s", "leave: %s", clip(name)))
			return
		}
		r.IsPaidLeave = true
		days, minutes, whole = days+share, minutes+length, whole || share > 0
	}
	if o.has("holidaysObtained") {
		taken := o.child("holidaysObtained")
		if taken.has("fulltimeHoliday") {
			add(taken.child("fulltimeHoliday"), 1, 0)
		}
		for _, leave := range taken.optionalChildren("halfdayHolidays") {
			add(leave, 0.5, 0)
		}
		for _, leave := range taken.optionalChildren("hourHolidays") {
			add(leave, 0, leave.minutes("minutes"))
		}
	}
	r.PaidLeaveDays = &days
	if !whole {
		r.PaidLeaveMinutes = &minutes
	}
}

// Codes of clock times (timeRecord[].code).
const (
	kotIn  = "1"
	kotOut = "2"
)

// addClocks fills in the first clock-in and the last clock-out of each day.
func (k *kot) addClocks(ctx context.Context, employee string, in period, records []record) error {
	list, err := k.days(ctx, "/daily-workings/timerecord", employee, in)
	if err != nil {
		return err
	}
	byDate := map[date]*record{}
	for i := range records {
		byDate[records[i].Date] = &records[i]
	}
	for _, o := range list {
		if r := byDate[o.date("date")]; r != nil {
			r.setKOTClock(o)
		}
		if o.err != nil {
			return o.err
		}
	}
	return nil
}

func (r *record) setKOTClock(o object) {
	var in, out *time.Time
	started, ended := 0, 0
	for _, clock := range o.optionalChildren("timeRecord") {
		at := clock.optionalTime("time")
		if at == nil {
			continue
		}
		switch clock.code("code") {
		case kotIn:
			started++
			if in == nil || at.Before(*in) {
				in = at
			}
		case kotOut:
			ended++
			if out == nil || at.After(*out) {
				out = at
			}
		}
	}
	r.ClockIn, r.ClockOut = r.clock(o, in), r.clock(o, out)
	if r.IsOpen = started > ended; r.IsOpen {
		r.WorkMinutes = nil
		r.Notes = append(r.Notes, o.lang.pick("退勤が記録されていません", "an end of work is not recorded"))
	}
}
