package main

import (
	"reflect"
	"slices"
)

// condense omits the fields of each day that are zero, and the records of days without any other field: WithoutEntries
// has their dates. No figure is lost. It changes Records in place, so it comes after judge, and is called once.
func (a *attendance) condense() {
	a.NotKnown, a.WithoutEntries = []string{}, map[string][]date{}
	for i := range a.Records {
		r := &a.Records[i]
		r.leaveOutZeros()
		if i == 0 {
			a.NotKnown = orEmpty(slices.Clone(r.NotKnown))
		}
		a.NotKnown = slices.DeleteFunc(a.NotKnown, func(name string) bool { return !slices.Contains(r.NotKnown, name) })
	}
	a.Records = slices.DeleteFunc(orEmpty(a.Records), func(r record) bool {
		if !r.isWithoutEntries(a.NotKnown) {
			return false
		}
		a.WithoutEntries[r.DayType] = append(a.WithoutEntries[r.DayType], r.Date)
		return true
	})
	for i := range a.Records {
		r := &a.Records[i]
		r.NotKnown = slices.DeleteFunc(r.NotKnown, func(name string) bool { return slices.Contains(a.NotKnown, name) })
	}
}

// leaveOutZeros sets fields that are zero to nil, and adds those that were nil to NotKnown. DayTypeRaw stays only if
// DayType is unknown.
func (r *record) leaveOutZeros() {
	if r.DayType != unknown {
		r.DayTypeRaw = nil
	}
	leaveOut(r, &r.BreakMinutes, "break_minutes")
	leaveOut(r, &r.WorkMinutes, "work_minutes")
	leaveOut(r, &r.LegalHolidayWork, "legal_holiday_work_minutes")
	leaveOut(r, &r.PrescribedHoliday, "prescribed_holiday_work_minutes")
	leaveOut(r, &r.LateMinutes, "late_minutes")
	leaveOut(r, &r.EarlyLeaveMinutes, "early_leave_minutes")
	leaveOut(r, &r.IsAbsent, "is_absent")
	leaveOut(r, &r.PaidLeaveDays, "paid_leave_days")
	leaveOut(r, &r.PaidLeaveMinutes, "paid_leave_minutes")
	leaveOut(r, &r.SpecialLeaveDays, "special_leave_days")
}

func leaveOut[T comparable](r *record, value **T, name string) {
	var zero T
	switch {
	case *value == nil:
		r.NotKnown = append(r.NotKnown, name)
	case **value == zero:
		*value = nil
	}
}

// isWithoutEntries reports whether a day has no field besides its date and type, after leaveOutZeros. notKnown are the
// fields that the vendor does not report for any day.
func (r *record) isWithoutEntries(notKnown []string) bool {
	bare := record{Date: r.Date, DayType: r.DayType, NotKnown: r.NotKnown}
	return len(r.NotKnown) == len(notKnown) && reflect.DeepEqual(*r, bare)
}
