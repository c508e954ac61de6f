package main

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// report is the answer as structured content. The manifest's output schema describes it.
type report struct {
	Location    reportLocation `json:"location"`
	Requested   string         `json:"requested"`
	Publisher   string         `json:"publisher"`
	Reported    time.Time      `json:"reportedAt"`
	WeekUpdated *time.Time     `json:"weekReportedAt,omitempty"`
	Days        []reportDay    `json:"days"`
	OtherAreas  []string       `json:"otherAreas,omitempty"`
	Notes       []string       `json:"notes,omitempty"`
	Overview    *overview      `json:"overview,omitempty"`
	Credit      string         `json:"credit"`
}

type reportLocation struct {
	Name       string `json:"name"`
	Prefecture string `json:"prefecture"`
	Area       string `json:"area"`
	AreaCode   string `json:"areaCode"`
	OfficeCode string `json:"officeCode"`
}

type reportDay struct {
	Date         string       `json:"date"`
	Weather      string       `json:"weather,omitempty"`
	WeatherCode  string       `json:"weatherCode,omitempty"`
	AsIssued     string       `json:"asIssued,omitempty"`
	High         *int         `json:"high,omitempty"`
	Low          *int         `json:"low,omitempty"`
	HighRange    []int        `json:"highRange,omitempty"`
	LowRange     []int        `json:"lowRange,omitempty"`
	Station      string       `json:"station,omitempty"`
	ChanceOfRain *int         `json:"chanceOfRain,omitempty"`
	Slots        []reportSlot `json:"rainSlots,omitempty"`
	Umbrella     string       `json:"umbrella,omitempty"`
	Wind         string       `json:"wind,omitempty"`
	Waves        string       `json:"waves,omitempty"`
	Reliability  string       `json:"reliability,omitempty"`

	date time.Time
}

type reportSlot struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Percent int       `json:"percent"`
}

// Dates that can be asked for.
const (
	today    = "today"
	tomorrow = "tomorrow"
	week     = "week"
)

// Whether to take an umbrella.
const (
	umbrellaYes   = "yes"
	umbrellaMaybe = "maybe"
	umbrellaNo    = "no"
)

// reporter turns a forecast into a report for one caller.
type reporter struct {
	lang language
	now  time.Time
	file *forecast
	at   located
	area areaName // the class10 area
}

func (r reporter) report(requested string, days []*day) *report {
	out := &report{
		Location:  r.location(),
		Requested: requested,
		Publisher: cmp.Or(clean(r.file.short.Office), "気象庁"),
		Reported:  r.file.short.reported(),
		Notes:     slices.Clone(r.at.notes),
		Credit: r.lang.pick("出典：気象庁ホームページ（https://www.jma.go.jp/bosai/forecast/）のデータを加工して作成",
			"Source: Japan Meteorological Agency website (出典：気象庁ホームページ, https://www.jma.go.jp/bosai/forecast/); processed by this tool"),
	}
	if t := r.file.week.reported(); requested == week && !t.IsZero() {
		out.WeekUpdated = &t
	}
	for _, d := range days {
		out.Days = append(out.Days, r.day(d))
	}
	if r.at.level <= officeLevel {
		out.OtherAreas = r.otherAreas()
	}
	out.Notes = append(out.Notes, r.notes(out.Days)...)
	return out
}

func (r reporter) location() reportLocation {
	prefecture := prefectures[r.at.prefecture()-1]
	return reportLocation{
		Name:       r.at.title(r.lang),
		Prefecture: r.lang.pick(prefecture.name, prefecture.en),
		Area:       r.areaTitle(r.area),
		AreaCode:   r.area.Code,
		OfficeCode: fileOf(r.at.office),
	}
}

func (r reporter) areaTitle(name areaName) string {
	if known, ok := areaOf(name.Code); ok && r.lang == english {
		return known.en
	}
	return clean(name.Name)
}

func (r reporter) otherAreas() []string {
	var names []string
	for _, v := range r.file.short.weather().Areas {
		if v.Area.Code != r.area.Code && clean(v.Area.Name) != "" {
			names = append(names, r.areaTitle(v.Area))
		}
	}
	return names
}

func (r reporter) day(d *day) reportDay {
	out := reportDay{
		Date: d.date.Format(dateLayout), date: d.date,
		WeatherCode: d.code,
		High:        d.high, Low: d.low, HighRange: d.highRange, LowRange: d.lowRange,
		Station:      r.stationTitle(d.station),
		ChanceOfRain: d.chanceOfRain(r.now),
		Umbrella:     d.umbrella(r.now),
		Wind:         d.wind, Waves: d.waves,
		Reliability: d.reliability,
	}
	out.Weather, out.AsIssued = r.weather(d)
	for _, s := range d.remaining(r.now) {
		out.Slots = append(out.Slots, reportSlot{s.from, s.from.Add(slotLength), s.percent})
	}
	return out
}

// weather returns a day's weather in the caller's language and, where that is not it, in JMA's own words.
func (r reporter) weather(d *day) (text, asIssued string) {
	t, known := telopOf(d.code)
	if !known {
		t.ja = r.lang.sprintf("（天気コード%s）", "weather code %s", d.code)
		t.en = t.ja
	}
	switch {
	case d.code == "" || r.lang == japanese && d.text != "":
		return d.text, ""
	case r.lang == japanese:
		return t.ja, ""
	}
	return t.en, d.text
}

func (r reporter) stationTitle(name string) string {
	if r.lang == english {
		all := stations()
		if i := slices.IndexFunc(all, func(p place) bool { return p.name == name }); i >= 0 {
			return all[i].en
		}
	}
	return name
}

// umbrella returns whether to take one: from a chance of rain of 50 % on yes, from 30 % on maybe, also at 20 % if rain
// or snow is forecast for somewhere or some time. Without a chance of rain, rain or snow in the forecast means maybe.
// It is "" if nothing is known.
func (d *day) umbrella(now time.Time) string {
	t, _ := telopOf(d.code)
	wet := strings.ContainsAny(d.text+t.ja, "雨雪雷") || strings.Contains(d.text+t.ja, "みぞれ")
	chance := d.chanceOfRain(now)
	switch {
	case chance == nil && wet:
		return umbrellaMaybe
	case chance == nil:
		return ""
	case *chance >= 50:
		return umbrellaYes
	case *chance >= 30 || *chance >= 20 && wet:
		return umbrellaMaybe
	}
	return umbrellaNo
}

// notes explains what is missing, and that the forecast is old if it is: JMA issues one at least every twelve hours.
func (r reporter) notes(days []reportDay) []string {
	var notes []string
	reported := r.file.short.reported()
	for _, d := range days {
		switch {
		case !d.date.Equal(midnight(reported)) || !d.date.Equal(midnight(r.now)) || d.Low != nil:
		case d.High != nil:
			notes = append(notes, r.lang.pick("今日の最低気温は、気象庁のこの予報では発表されません。",
				"This forecast of JMA's never gives today's low."))
		default:
			notes = append(notes, r.lang.pick("今日の気温は、17時以降の発表には含まれません。",
				"Issues from 17:00 on give no temperatures for the day itself."))
		}
	}
	if age := r.now.Sub(reported); age > 13*time.Hour {
		notes = append(notes, r.lang.sprintf("この発表は約%d時間前のものです。新しい発表が届いていない可能性があります。",
			"This issue is about %d hours old; a newer one may be missing.", int(age.Hours())))
	}
	return notes
}
