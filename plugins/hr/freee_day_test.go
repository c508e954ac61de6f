package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// dayJSON is a daily record, changed: a value of nil takes a field away.
func dayJSON(t testing.TB, changes map[string]any) []byte {
	t.Helper()
	day := map[string]any{
		"date": "2026-05-14", "day_pattern": "normal_day", "schedule_pattern": "",
		"work_record_segments": []any{map[string]any{"clock_in_at": "2026-05-14T09:00:00.000+09:00",
			"clock_out_at": "2026-05-14T18:30:00.000+09:00"}},
		"break_records": []any{map[string]any{"clock_in_at": "2026-05-14T12:00:00.000+09:00",
			"clock_out_at": "2026-05-14T13:00:00.000+09:00"}},
		"clock_in_at": "2026-05-14T09:00:00.000+09:00", "clock_out_at": "2026-05-14T18:30:00.000+09:00",
		"normal_work_mins": 480, "is_absence": false, "paid_holidays": []any{}, "lateness_mins": 0,
		"early_leaving_mins":       0,
		"total_overtime_work_mins": 30, "total_overtime_except_normal_work_mins": 31,
		"total_excess_statutory_work_mins": 5,
		"total_latenight_work_mins":        0, "total_latenight_overtime_except_normal_work_min": 0,
		"total_holiday_work_mins":            0,
		"total_prescribed_holiday_work_mins": 0, "not_auto_calc_work_time": false,
	}
	for name, value := range changes {
		if day[name] = value; value == nil {
			delete(day, name)
		}
	}
	data, err := json.Marshal(day)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func readDay(t testing.TB, data []byte) (record, error) {
	t.Helper()
	d := &document{lang: english, vendor: "freee"}
	r := freeeDay(d.parse(data))
	return r, d.err
}

func span(in, out any) map[string]any { return map[string]any{"clock_in_at": in, "clock_out_at": out} }

func TestFreeeDay(t *testing.T) {
	t.Parallel()
	null := json.RawMessage("null")
	for _, test := range []struct {
		name    string
		changes map[string]any
		want    map[string]any // of the record as JSON
	}{
		{"ordinary", nil, map[string]any{"clock_in": "09:00", "clock_out": "18:30", "work_minutes": 510.0,
			"break_minutes": 60.0, "overtime_minutes": 30.0,
			"within_statutory_overtime_minutes": 5.0, "day_type": "weekday", "is_open": false, "is_paid_leave": false,
			"paid_leave_days": 0.0}},
		{"date as a time", map[string]any{"date": "2026-05-14T00:00:00.000+09:00"},
			map[string]any{"date": "2026-05-14"}},
		{"other zone", map[string]any{"clock_in_at": "2026-05-14T00:00:00Z"}, map[string]any{"clock_in": "09:00"}},
		{"past midnight", map[string]any{"clock_out_at": "2026-05-15T01:30:00.000+09:00"},
			map[string]any{"clock_out": "25:30"}},
		{"starts past midnight", map[string]any{"clock_in_at": "2026-05-15T00:10:00.000+09:00"},
			map[string]any{"clock_in": "24:10"}},
		{"last minute", map[string]any{"clock_out_at": "2026-05-15T23:59:00.000+09:00"},
			map[string]any{"clock_out": "47:59"}},
		{"too late to show", map[string]any{"clock_out_at": "2026-05-16T00:00:00.000+09:00"},
			map[string]any{"clock_out": nil}},
		{"before its day", map[string]any{"clock_in_at": "2026-05-13T23:59:30.000+09:00"},
			map[string]any{"clock_in": nil}},
		{"two segments", map[string]any{"work_record_segments": []any{span("2026-05-14T09:00:00+09:00",
			"2026-05-14T12:00:00+09:00"), span("2026-05-14T22:00:00+09:00", "2026-05-15T02:00:00+09:00")},
			"break_records": []any{}}, map[string]any{"work_minutes": 420.0, "break_minutes": 0.0}},
		{"still working", map[string]any{"work_record_segments": []any{span("2026-05-14T09:00:00+09:00", nil)},
			"clock_out_at": null},
			map[string]any{"work_minutes": nil, "is_open": true, "clock_out": nil, "clock_in": "09:00"}},
		{"open break", map[string]any{"break_records": []any{span("2026-05-14T12:00:00+09:00", nil)}},
			map[string]any{"break_minutes": 0.0, "work_minutes": nil, "is_open": false,
				"notes": []any{"the start or end of a break is not recorded"}}},
		{"no clock-in", map[string]any{"work_record_segments": []any{}, "clock_in_at": null, "break_records": []any{}},
			map[string]any{"work_minutes": nil, "is_open": false, "notes": []any{"a start of work is not recorded"}}},
		{"ends before it starts",
			map[string]any{"work_record_segments": []any{span("2026-05-14T18:00:00+09:00",
				"2026-05-14T09:00:00+09:00")}},
			map[string]any{"work_minutes": nil,
				"notes": []any{"an end lies before its start, or the breaks are longer than the work"}}},
		{"breaks longer than the work",
			map[string]any{"break_records": []any{span("2026-05-14T09:00:00+09:00", "2026-05-14T20:00:00+09:00")}},
			map[string]any{"work_minutes": nil,
				"notes": []any{"an end lies before its start, or the breaks are longer than the work"}}},
		{"before segments existed", map[string]any{"work_record_segments": nil}, map[string]any{"work_minutes": 510.0}},
		{"before segments, no work", map[string]any{"work_record_segments": nil, "clock_in_at": null,
			"clock_out_at": null, "break_records": []any{}}, map[string]any{"work_minutes": 0.0, "is_open": false}},
		{"day off", map[string]any{"day_pattern": "prescribed_holiday", "total_prescribed_holiday_work_mins": 120},
			map[string]any{"day_type": "weekend", "prescribed_holiday_work_minutes": 120.0}},
		{"legal holiday", map[string]any{"day_pattern": "legal_holiday", "total_holiday_work_mins": 60},
			map[string]any{"day_type": "holiday", "legal_holiday_work_minutes": 60.0}},
		{"unknown pattern", map[string]any{"day_pattern": "moon_day"},
			map[string]any{"day_type": "unknown", "day_type_raw": "moon_day"}},
		{"substitute holiday", map[string]any{"schedule_pattern": "substitute_holiday"},
			map[string]any{"schedule_raw": "substitute_holiday"}},
		{"by hand", map[string]any{"not_auto_calc_work_time": true, "total_overtime_work_mins": 0},
			map[string]any{"overtime_minutes": 31.0}},
		{"absent", map[string]any{"is_absence": true}, map[string]any{"is_absent": true}},
		{"full leave", map[string]any{"paid_holidays": []any{map[string]any{"type": "full", "mins": 480, "days": 1}}},
			map[string]any{"is_paid_leave": true, "paid_leave_days": 1.0, "paid_leave_minutes": 480.0}},
		{"half leave", map[string]any{"paid_holidays": []any{map[string]any{"type": "afternoon_off", "mins": 240,
			"days": 0.5}}}, map[string]any{"is_paid_leave": true, "paid_leave_days": 0.5}},
		{"leave by the hour", map[string]any{"paid_holidays": []any{map[string]any{"type": "hourly", "mins": 60,
			"days": 0}}}, map[string]any{"is_paid_leave": true, "paid_leave_days": 0.0, "paid_leave_minutes": 60.0}},
		{"leave until 2025", map[string]any{"paid_holidays": nil, "paid_holiday": 0.5, "half_paid_holiday_mins": 240,
			"hourly_paid_holiday_mins": 60}, map[string]any{"is_paid_leave": true, "paid_leave_days": 0.5,
			"paid_leave_minutes": 300.0}},
		{"hourly leave until 2025", map[string]any{"paid_holidays": nil, "paid_holiday": 0,
			"hourly_paid_holiday_mins": 60}, map[string]any{"is_paid_leave": true}},
		{"special leave", map[string]any{"special_holiday": 0.5}, map[string]any{"special_leave_days": 0.5,
			"is_paid_leave": false}},
		{"half compensatory leave", map[string]any{"use_half_compensatory_holiday": true},
			map[string]any{"notes": []any{"half a day of compensatory leave"}}},
		{"night overtime, old and new name", map[string]any{"total_latenight_overtime_except_normal_work_min": null,
			"total_latenight_overtime_except_normal_work_mins": 7}, map[string]any{"late_night_overtime_minutes": 7.0}},
		{"night overtime, renamed", map[string]any{"total_latenight_overtime_except_normal_work_min": nil,
			"total_latenight_overtime_except_normal_work_mins": 7}, map[string]any{"late_night_overtime_minutes": 7.0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r, err := readDay(t, dayJSON(t, test.changes))
			if err != nil {
				t.Fatal(err)
			}
			got := full(t, attendance{Records: []record{r}})[0]
			for name, want := range test.want {
				if encode(t, got[name]) != encode(t, want) {
					t.Errorf("%s is %v, want %v", name, got[name], want)
				}
			}
		})
	}
}

// TestUnknownDayFields checks that a field that is missing or of another type is an error with its name, and never 0.
func TestUnknownDayFields(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"date", "day_pattern", "is_absence", "paid_holidays", "total_overtime_work_mins", "total_excess_statutory_work_mins",
		"total_latenight_work_mins", "total_latenight_overtime_except_normal_work_min", "total_holiday_work_mins",
		"total_prescribed_holiday_work_mins"} {
		_, err := readDay(t, dayJSON(t, map[string]any{name: nil}))
		wantError(t, err, name)
		if strings.HasPrefix(name, "total_") {
			wantError(t, err, "unknown overtime field", "update the plugin")
		}
		_, err = readDay(t, dayJSON(t, map[string]any{name: json.RawMessage("null")}))
		wantError(t, err, name)
		_, err = readDay(t, dayJSON(t, map[string]any{name: map[string]any{}}))
		wantError(t, err, name, " is not ")
	}
	_, err := readDay(t, dayJSON(t, map[string]any{"not_auto_calc_work_time": true,
		"total_overtime_except_normal_work_mins": nil}))
	wantError(t, err, "unknown overtime field", "total_overtime_except_normal_work_mins")
	for name, value := range map[string]any{
		"total_overtime_work_mins": 1.5, "total_holiday_work_mins": 1e9, "date": "2026-02-30", "clock_in_at": "9:00",
		"clock_out_at":         1800,
		"work_record_segments": "x", "break_records": []any{1}, "paid_holidays": []any{map[string]any{"type": "full"}},
		"special_holiday": "1", "use_half_compensatory_holiday": 1, "not_auto_calc_work_time": "no",
		"lateness_mins": "0",
	} {
		_, err := readDay(t, dayJSON(t, map[string]any{name: value}))
		wantError(t, err, name)
	}
}

// TestClock holds the notation of times past midnight.
func TestClock(t *testing.T) {
	t.Parallel()
	day := date("2026-03-31")
	for text, after := range map[string]time.Duration{"00:00": 0, "23:59": 24*time.Hour - time.Second, "24:00": 24 * time.Hour, "47:59": 48*time.Hour - time.Second} {
		if got, ok := clock(day, day.midnight().Add(after)); !ok || got != text {
			t.Errorf("%s after midnight is %s, want %s", after, got, text)
		}
	}
	for _, outside := range []time.Duration{-time.Second, 48 * time.Hour} {
		if got, ok := clock(day, day.midnight().Add(outside)); ok {
			t.Errorf("%s after midnight is %s", outside, got)
		}
	}
}
