// Weather is the guest plugin of the tool get_weather: the weather forecast for a place in Japan, from the files behind
// the Japan Meteorological Agency's website.
//
// The tool finds the place in JMA's table of areas (locate.go), reads the forecast file of its office (forecast.go),
// selects the values of its area, weekly area and station (choose.go), merges them by date (day.go) and writes the
// report (report.go, text.go). Areas, offices and stations are built in, so the usual call is one request; JMA's own
// tables are fetched only if they do not match.
package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/pdk"
)

func init() {
	pdk.HandleTool("get_weather", func(ctx context.Context, in arguments) (*pdk.Result, error) {
		return getWeather(ctx, in, time.Now())
	})
}

func main() {}

// arguments are the tool's; the manifest's input schema says what they mean.
type arguments struct {
	Location string `json:"location"`
	Date     string `json:"date,omitempty"`
	Lang     string `json:"lang,omitempty"`
	Overview bool   `json:"overview,omitempty"`
}

// settings are the plugin's configuration.
type settings struct {
	BaseURL  string `json:"base_url"`
	Language string `json:"language"`
}

func getWeather(ctx context.Context, in arguments, now time.Time) (*pdk.Result, error) {
	config := settings{BaseURL: defaultBaseURL}
	if err := pdk.Config(ctx, &config); err != nil {
		return nil, err
	}
	jma := client{strings.TrimRight(config.BaseURL, "/"), languageOf(in.Lang, scriptOf(in.Location), pdk.Locale(ctx),
		config.Language)}
	if in.Date == "" {
		in.Date = today
	}
	at, err := locate(ctx, jma, in.Location)
	if err != nil {
		return nil, err
	}
	office := fileOf(at.office)
	file, err := jma.forecast(ctx, office)
	if err != nil {
		return nil, err
	}
	r := reporter{lang: jma.lang, now: now.In(jst), file: file, at: *at}
	rep, err := r.answer(ctx, jma, in.Date)
	if err != nil {
		return nil, err
	}
	if in.Overview {
		rep.addOverview(ctx, jma, office)
	}
	return pdk.Text(r.text(rep)).WithStructured(rep), nil
}

// answer makes the report of the days that were asked for. It fails if the file has none of them.
func (r *reporter) answer(ctx context.Context, jma client, requested string) (*report, error) {
	choose := chooser{r.file, jma}.choose
	codes := choose(ctx, r.at.place)
	if codes.area == "" {
		codes = choose(ctx, place{class10: r.anyArea()})
	}
	r.area = r.file.short.weather().area(codes.area).Area
	days := r.pick(requested, r.file.days(codes))
	if len(days) == 0 {
		return nil, r.lang.errorf("%sの予報（%s発表）には、その日（%s）の予報がありません。しばらくしてからもう一度試してください。",
			"the forecast for %s (issued on %s) does not cover that day (%s). Try again later.",
			r.at.title(r.lang), r.moment(r.file.short.reported()), requested)
	}
	return r.report(requested, days), nil
}

// anyArea falls back to the file's first area, with a note, where it lacks the one looked for.
func (r *reporter) anyArea() string {
	first := r.file.short.weather().Areas[0].Area
	r.at.notes = append(r.at.notes, r.lang.sprintf("この場所の予報区が予報にないため、%sの予報を示します。",
		"The forecast lacks this place's area; this is the one for %s.", r.areaTitle(first)))
	return first.Code
}

// pick returns the days that were asked for, by their dates in Japan: until five in the morning the file is still
// yesterday's.
func (r *reporter) pick(requested string, days []*day) []*day {
	from, n := midnight(r.now), 8
	switch requested {
	case today:
		n = 1
	case tomorrow:
		from, n = from.AddDate(0, 0, 1), 1
	}
	to := from.AddDate(0, 0, n)
	return slices.DeleteFunc(days, func(d *day) bool { return d.empty() || d.date.Before(from) || !d.date.Before(to) })
}

// addOverview adds JMA's overview, for the region if the week was asked for, or a note that it is not to be had.
func (rep *report) addOverview(ctx context.Context, jma client, office string) {
	text, err := jma.overview(ctx, office, rep.Requested == week)
	if err != nil {
		rep.Notes = append(rep.Notes, jma.lang.sprintf("天気概況はありません: %v", "no overview: %v", err))
		return
	}
	rep.Overview = text
}
